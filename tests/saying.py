"""Plugins that give the same answers whenever they are asked."""


def saying(answer):
    """A method that gives one answer, or raises it; a function is asked for it."""

    def method(self, *args):
        if isinstance(answer, BaseException):
            raise answer
        return answer(*args) if callable(answer) else answer

    return method


def make(name, **answers):
    """A plugin class with a method for each answer."""
    methods = {method: saying(answer) for method, answer in answers.items()}
    return type(name, (), {"name": name, **methods})
