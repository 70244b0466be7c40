"""Calls at run time: which overload the values fit, and what the call costs."""

from collections.abc import Callable, Sequence
from typing import Any

from moorage.cel import syntax
from moorage.cel.lexer import syntax_error
from moorage.cel.library import strings
from moorage.cel.syntax import SyntaxNode
from moorage.cel.types import CLASSES, Overload, is_wildcard
from moorage.cel.values import (
    CelCompileError,
    CelRuntimeError,
    Code,
    CostLimitExceeded,
    Frame,
    no_such_overload,
    require_order,
)

# The reference computes conversions of literals when it compiles; errors are compile errors.
_CONVERSIONS = frozenset(
    ("bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint")
)
_PARSERS = frozenset(("quantity", "semver", "ip", "cidr", "url"))

Guards = tuple[tuple[int, type], ...]


def _guards(overload: Overload, args: list[SyntaxNode]) -> Guards:
    """Arguments whose class is known at run time only, and the class that the overload takes."""
    classes = [CLASSES.get(param.name) for param in overload.params]
    unknown = [(index, cls) for index, cls in enumerate(classes) if is_wildcard(args[index].type)]
    return tuple((index, cls) for index, cls in unknown if cls is not None)


def _accepts(guards: Guards, values: Sequence[Any]) -> bool:
    for index, cls in guards:
        # Maps and lists may be of subclasses; bool and Uint are subclasses of int, and no ints.
        value = values[index]
        if type(value) is not cls and not (cls in (dict, list) and isinstance(value, cls)):
            return False
    return True


def applied(overloads: list[Overload], args: list[SyntaxNode], codes: list[Code]) -> Code:
    """A call that charges nothing: its cost is fixed."""
    table = [(_guards(overload, args), overload.run) for overload in overloads]
    guards, call = table[0]
    if not guards and len(codes) == 1:
        (only,) = codes
        return lambda frame: call(only(frame))
    if not guards and len(codes) == 2:
        first, second = codes
        return lambda frame: call(first(frame), second(frame))

    def run(frame: Frame) -> Any:
        values = [code(frame) for code in codes]
        for guards, call in table:
            if _accepts(guards, values):
                return call(*values)
        raise no_such_overload()

    return run


def measured(overloads: list[Overload], args: list[SyntaxNode], codes: list[Code]) -> Code:
    """A call that charges a cost computed from its values, before it is made."""
    table = [(_guards(o, args), o.run, o.cost or _one) for o in overloads]

    def run(frame: Frame) -> Any:
        values = [code(frame) for code in codes]
        for guards, call, cost in table:
            if _accepts(guards, values):
                frame[0] -= cost(*values)
                if frame[0] < 0:
                    raise CostLimitExceeded
                return call(*values)
        raise no_such_overload()

    return run


def _one(*_: Any) -> int:
    return 1


def ordering(holds: Callable[[Any, Any], bool], left: Code, right: Code) -> Code:
    """A comparison such as `left < right`."""

    def run(frame: Frame) -> bool:
        a, b = left(frame), right(frame)
        kind = type(a)
        if kind is not type(b) or (kind is not int and kind is not str):
            require_order([a, b])
        return holds(a, b)

    return run


def folded(node: syntax.Call, values: list[Any]) -> Any:
    """The result of a function of literals, if it is one that reads a text; else None."""
    if node.function not in _CONVERSIONS and node.function not in _PARSERS:
        return None
    try:
        return node.overloads[0].run(*values)
    except CelRuntimeError as error:
        if node.function in _PARSERS:
            return None  # The reference fails at run time.
        if node.function in ("duration", "timestamp"):
            what = f"invalid {node.function} argument"
            raise syntax_error(node.args[0].position, what) from None
        raise CelCompileError(f"program instantiation failed: {error}") from None


def folded_cost(node: syntax.Call) -> int:
    """The cost of a folded call: the reference folds conversions only."""
    cost = node.overloads[0].cost
    values = [arg.value for arg in node.args if isinstance(arg, syntax.Literal)]
    return cost(*values) if cost and node.function in _PARSERS else 0


def validate_regex(pattern: syntax.Literal) -> None:
    """Raise CelCompileError for a literal that is no regular expression."""
    if isinstance(pattern.value, str):
        try:
            strings.compiled(pattern.value)
        except CelRuntimeError:
            raise syntax_error(pattern.position, "invalid matches argument") from None
