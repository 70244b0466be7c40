"""What can be said of a plugin without an example: methods, arguments, attributes, pickles."""

import inspect
import pickle
from collections.abc import Callable
from typing import Any

from moorage.framework import points, registry
from moorage.framework.events import ClusterEvent
from moorage.framework.points import Depends, Plugin
from moorage.nodes.columns import Column
from moorage.testing.checks import hints


def check_shape(plugin: Plugin) -> None:
    """Complain about what cannot work for any pod."""
    name = getattr(plugin, "name", None)
    assert isinstance(name, str), f"{type(plugin).__name__} needs a class attribute `name`, a text"
    assert name, f"{type(plugin).__name__}.name must not be empty"
    _check_methods(plugin)
    _check_attributes(plugin)
    _check_pickles(plugin, name)
    for event, hint in hints.registered(plugin).items():
        assert isinstance(event, ClusterEvent), (
            f"{name}.events_to_register must map ClusterEvents to hints, not {event!r}"
        )
        if hint is not None:
            _check_arguments(f"the hint of {name} for {event.label}", hint, ("pod", "old", "new"))
            _check_pickles(hint, f"the hint of {name} for {event.label}")


def _check_methods(plugin: Plugin) -> None:
    for attribute in dir(plugin):
        if attribute in points.METHODS:
            method = getattr(plugin, attribute)
            arguments = points.METHODS[attribute].arguments
            if method is not None:  # None gives an inherited method up.
                _check_arguments(f"{plugin.name}.{attribute}", method, arguments)
    if (found := registry.misspelt(type(plugin))) is not None:
        raise AssertionError(f"{plugin.name}.{found[0]} is never called; call it {found[1]}")
    assert any(points.implements(plugin, point) for point in points.POINTS), (
        f"{plugin.name} has no method of any extension point; there are " + ", ".join(points.POINTS)
    )


def _check_arguments(what: str, function: Callable[..., Any], arguments: tuple[str, ...]) -> None:
    signature = inspect.signature(function)
    try:
        signature.bind(*arguments)
    except TypeError:
        raise AssertionError(
            f"{what} must take ({', '.join(arguments)}); it takes {signature}"
        ) from None


def _check_attributes(plugin: Plugin) -> None:
    depends = getattr(plugin, "depends", None)
    assert depends is None or isinstance(depends, Depends), (
        f"{plugin.name}.depends must be one of mp.Depends, not {depends!r}"
    )
    for column in getattr(plugin, "columns", ()):
        assert isinstance(column, Column), (
            f"{plugin.name}.columns must be a tuple of mp.Column; {column!r} is none"
        )
    if hasattr(plugin, "normalizer"):
        assert not hasattr(plugin, "normalize_score"), (
            f"{plugin.name} has a normalizer and normalize_score; keep one of them"
        )
        for method in ("summarize", "apply"):
            assert callable(getattr(plugin.normalizer, method, None)), (
                f"{plugin.name}.normalizer has no method {method}; see mp.Normalizer"
            )


def _check_pickles(thing: object, what: str) -> None:
    try:
        pickle.loads(pickle.dumps(thing))
    except Exception as trouble:
        raise AssertionError(
            f"{what} cannot be pickled ({trouble}); keep lambdas, locks and open files out of it, "
            "and define classes and functions at the top of a module"
        ) from trouble
