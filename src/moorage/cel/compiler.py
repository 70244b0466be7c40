"""The compiler: a checked syntax tree to nested Python closures.

A closure takes a frame, a list: the remaining budget, the device, and a slot per variable. Fixed
costs of a straight piece of code are added up at compile time and charged once, when a branch or a
loop body that contains it is entered; calls whose cost depends on values charge it themselves.
Costs are those of the reference; see `COST_...`.
"""

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from moorage.cel import syntax
from moorage.cel.comprehensions import LOOPS
from moorage.cel.library import strings
from moorage.cel.syntax import Node
from moorage.cel.types import CLASSES, QUANTITY, Overload, is_wildcard
from moorage.cel.values import (
    NONE,
    CelCompileError,
    CelRuntimeError,
    CostLimitExceeded,
    OptionalValue,
    at,
    equal,
    lookup,
    make_map,
    no_such_overload,
    require_order,
)

Frame = list[Any]
Code = Callable[[Frame], Any]

COST_LIST, COST_MAP = 10, 30
# Per iteration, for what the reference's macros do besides the body: conditions and accumulators.
COST_ITERATION = {"all": 3, "exists": 4, "map": 12, "filter": 1, "transformList": 12}

# The reference computes conversions of literals when it compiles; errors are compile errors.
_CONVERSIONS = frozenset(
    ("bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint")
)
_PARSERS = frozenset(("quantity", "semver", "ip", "cidr", "url"))

_SMALL = frozenset(("bool", "int", "uint", "double", "string", "bytes", QUANTITY.name))

_ORDERINGS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class Compiler:
    """Compiles one expression."""

    def __init__(self) -> None:
        self.cost = 0  # of the current straight piece of code
        self.loops = 0  # that the current code is inside of
        self._rules: dict[type, Callable[[Any], Code]] = {
            syntax.Literal: self._literal,
            syntax.Ident: self._ident,
            syntax.Select: self._select,
            syntax.Index: self._index,
            syntax.Call: self._call,
            syntax.Logical: self._logical,
            syntax.Conditional: self._conditional,
            syntax.ListLiteral: self._list,
            syntax.MapLiteral: self._map,
            syntax.Comprehension: self._comprehension,
        }

    def emit(self, node: Node) -> Code:
        """The closure of a node; its fixed cost is added to `self.cost`."""
        return self._rules[type(node)](node)

    def block(self, node: Node, extra: int = 0) -> Code:
        """The closure of a node that runs conditionally or repeatedly; it charges its cost."""
        outer, self.cost = self.cost, extra
        code, cost, self.cost = self.emit(node), self.cost, outer
        return _charged(code, cost) if cost else code

    def _literal(self, node: syntax.Literal) -> Code:
        value = node.value
        return lambda frame: value

    def _ident(self, node: syntax.Ident) -> Code:
        if node.constant is not None:
            constant = node.constant
            return lambda frame: constant
        self.cost += 1
        slot = node.slot
        return lambda frame: frame[slot]

    def _select(self, node: syntax.Select) -> Code:
        if node.constant is not None:
            constant = node.constant
            return lambda frame: constant
        if node.test:
            operand, name = self.emit(node.operand), node.name
            return lambda frame: _present(operand(frame), name)
        return self._path(node) or self._lookup(node.operand, _constant(node.name), node.optional)

    def _index(self, node: syntax.Index) -> Code:
        return self._path(node) or self._lookup(node.operand, self.emit(node.key), node.optional)

    def _lookup(self, container: Node, key: Code, optional: bool) -> Code:  # noqa: FBT001
        operand = self.emit(container)
        self.cost += 1
        if optional:
            return lambda frame: _find(operand(frame), key(frame))
        return lambda frame: _get(operand(frame), key(frame))

    def _path(self, node: Node) -> Code | None:
        """One closure for constant string keys, such as `device.attributes["d"].x`."""
        keys: list[str] = []
        while True:
            if isinstance(node, syntax.Select) and not node.optional and not node.test:
                keys.append(node.name)
            elif isinstance(node, syntax.Index) and not node.optional:
                if not isinstance(node.key, syntax.Literal) or type(node.key.value) is not str:
                    return None
                keys.append(node.key.value)
            elif isinstance(node, syntax.Ident) and node.slot >= 0:
                break
            else:
                return None
            if node.type.name == "optional_type":
                return None
            node = node.operand
        if node.type.name == "optional_type":
            return None
        self.cost += 1 + len(keys)
        return _path_code(node.slot, keys[::-1])

    def _logical(self, node: syntax.Logical) -> Code:
        terms = (self.emit(node.terms[0]), *(self.block(term) for term in node.terms[1:]))
        decisive = node.operator == "||"
        return lambda frame: _decide(terms, decisive, frame)

    def _conditional(self, node: syntax.Conditional) -> Code:
        test, then, other = self.emit(node.test), self.block(node.then), self.block(node.other)

        def run(frame: Frame) -> Any:
            verdict = test(frame)
            if verdict is True:
                return then(frame)
            if verdict is False:
                return other(frame)
            raise no_such_overload()

        return run

    def _list(self, node: syntax.ListLiteral) -> Code:
        constant = constant_list(node)
        if constant is not None:
            return lambda frame: constant
        items = [(self.emit(item), optional) for item, optional in node.items]
        self.cost += COST_LIST

        def run(frame: Frame) -> Any:
            values = [(code(frame), optional) for code, optional in items]
            return [_unwrapped(v) if opt else v for v, opt in values if not (opt and v is NONE)]

        return run

    def _map(self, node: syntax.MapLiteral) -> Code:
        entries = [(self.emit(k), self.emit(v), optional) for k, v, optional in node.entries]
        self.cost += COST_MAP

        def pairs(frame: Frame) -> Iterable[tuple[Any, Any]]:
            for key, value_code, optional in entries:
                value = value_code(frame)
                if not (optional and value is NONE):
                    yield key(frame), _unwrapped(value) if optional else value

        return lambda frame: make_map(pairs(frame))

    def _comprehension(self, node: syntax.Comprehension) -> Code:
        operand = self.emit(node.operand)
        self.cost += 1
        extra = COST_ITERATION.get(node.macro, 2)
        self.loops += node.macro != "bind"
        where = self.block(node.where, 1) if node.where else None
        body = self.emit(node.body) if node.macro == "bind" else self.block(node.body, extra)
        self.loops -= node.macro != "bind"
        return LOOPS[node.macro](operand, node.slots, where, body)

    def _call(self, node: syntax.Call) -> Code:
        args = ([node.target] if node.target else []) + node.args
        if node.function == "in" and (code := self._in_constant(args)):
            return code
        if all(isinstance(arg, syntax.Literal) for arg in args):
            constant = _folded(node, [arg.value for arg in args if isinstance(arg, syntax.Literal)])
            if constant is not None:
                return _constant(constant)
        if node.function == "matches" and isinstance(pattern := args[-1], syntax.Literal):
            _validate_regex(pattern.value)
        codes = [self.emit(arg) for arg in args]
        if node.function in _ORDERINGS:
            self.cost += 1
            return _ordering(_ORDERINGS[node.function], *codes)
        # Outside of loops the cost of comparing small values cannot add up.
        small = any(arg.type.name in _SMALL for arg in args)
        if node.function in ("==", "!=") and small and not self.loops:
            return self._equality(node, codes)
        if all(overload.cost is None for overload in node.overloads):
            self.cost += 1
            return _applied(node.overloads, args, codes)
        return _measured(node.overloads, args, codes)

    def _equality(self, node: syntax.Call, codes: list[Code]) -> Code:
        left, right = codes
        positive = node.function == "=="
        constant = node.args[1]
        self.cost += 1
        if isinstance(constant, syntax.Literal) and type(constant.value) is str:
            text = constant.value
            # A string equals no value of another type, and Python agrees.
            if positive:
                return lambda frame: left(frame) == text
            return lambda frame: left(frame) != text
        if positive:
            return lambda frame: equal(left(frame), right(frame))
        return lambda frame: not equal(left(frame), right(frame))

    def _in_constant(self, args: list[Node]) -> Code | None:
        """`x in ["a", "b"]` with a set."""
        items = constant_list(args[1])
        if not items or any(type(item) is not str for item in items):
            return None
        texts = frozenset(items)
        code = self.emit(args[0])
        self.cost += 1

        def run(frame: Frame) -> bool:
            value = code(frame)
            return type(value) is str and value in texts

        return run


def constant_list(node: Node) -> list[Any] | None:
    """The elements of a list literal of literals."""
    if not isinstance(node, syntax.ListLiteral):
        return None
    values = [
        item.value
        for item, optional in node.items
        if isinstance(item, syntax.Literal) and not optional
    ]
    return values if len(values) == len(node.items) else None


def _folded(node: syntax.Call, values: list[Any]) -> Any:
    """The result of a function of literals, if it is one that reads a text; else None."""
    if node.function not in _CONVERSIONS and node.function not in _PARSERS:
        return None
    try:
        return node.overloads[0].run(*values)
    except CelRuntimeError as error:
        if node.function in _PARSERS:
            return None  # The reference fails at run time.
        raise CelCompileError(f"program instantiation failed: {error}") from None


def _validate_regex(pattern: Any) -> None:
    if isinstance(pattern, str):
        try:
            strings.compiled(pattern)
        except CelRuntimeError as error:
            raise CelCompileError(
                f"compilation failed: ERROR: invalid matches argument: {error}"
            ) from None


def _charged(code: Code, cost: int) -> Code:
    def run(frame: Frame) -> Any:
        frame[0] -= cost
        if frame[0] < 0:
            raise CostLimitExceeded
        return code(frame)

    return run


def _constant(value: Any) -> Code:
    return lambda frame: value


def _path_code(slot: int, keys: list[str]) -> Code:
    if len(keys) == 1:
        (only,) = keys

        def run(frame: Frame) -> Any:
            try:
                return frame[slot][only]
            except (KeyError, TypeError):
                return _walk(frame[slot], keys)
    elif len(keys) == 3:
        first, second, third = keys

        def run(frame: Frame) -> Any:
            try:
                return frame[slot][first][second][third]
            except (KeyError, TypeError):
                return _walk(frame[slot], keys)
    else:

        def run(frame: Frame) -> Any:
            return _walk(frame[slot], keys)

    return run


def _walk(value: Any, keys: list[str]) -> Any:
    for key in keys:
        value = _get(value, key)
    return value


def _get(container: Any, key: Any) -> Any:
    if isinstance(container, dict):
        return lookup(container, key)
    if isinstance(container, list):
        return at(container, key)
    if isinstance(container, OptionalValue):
        return _find(container, key)
    raise no_such_overload()


def _find(container: Any, key: Any) -> OptionalValue:
    """`container[?key]`."""
    if isinstance(container, OptionalValue):
        return container if container is NONE else _find(container.value, key)
    if not isinstance(container, dict | list):
        raise no_such_overload()
    try:
        return OptionalValue(_get(container, key))
    except CelRuntimeError:
        return NONE


def _present(container: Any, name: str) -> bool:
    """`has(container.name)`."""
    if isinstance(container, OptionalValue):
        return container is not NONE and _present(container.value, name)
    if not isinstance(container, dict):
        raise no_such_overload()
    return _find(container, name) is not NONE


def _unwrapped(value: Any) -> Any:
    if not isinstance(value, OptionalValue):
        raise no_such_overload()
    return value.value


def _decide(terms: tuple[Code, ...], decisive: bool, frame: Frame) -> bool:  # noqa: FBT001
    """`||` (decisive is True) and `&&` (False): an error counts only if no term is decisive."""
    error: CelRuntimeError | None = None
    for term in terms:
        try:
            value = term(frame)
        except CelRuntimeError as problem:
            if problem.fatal:
                raise
            error = error or problem
            continue
        if value is decisive:
            return bool(decisive)
        if type(value) is not bool:
            error = error or no_such_overload()
    if error is not None:
        raise error
    return not decisive


def _ordering(holds: Callable[[Any, Any], bool], left: Code, right: Code) -> Code:
    def run(frame: Frame) -> bool:
        a, b = left(frame), right(frame)
        kind = type(a)
        if kind is not type(b) or (kind is not int and kind is not str):
            require_order([a, b])
        return holds(a, b)

    return run


Guards = tuple[tuple[int, type], ...]


def _guards(overload: Overload, args: list[Node]) -> Guards:
    """Arguments whose class is known at run time only, and the class that the overload takes."""
    classes = [CLASSES.get(param.name) for param in overload.params]
    unknown = [(index, cls) for index, cls in enumerate(classes) if is_wildcard(args[index].type)]
    return tuple((index, cls) for index, cls in unknown if cls is not None)


def _accepts(guards: Guards, values: Sequence[Any]) -> bool:
    for index, cls in guards:
        # The maps of a device are subclasses; bool and Uint are subclasses of int, and no ints.
        value = values[index]
        if type(value) is not cls and not (cls is dict and isinstance(value, dict)):
            return False
    return True


def _applied(overloads: list[Overload], args: list[Node], codes: list[Code]) -> Code:
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


def _measured(overloads: list[Overload], args: list[Node], codes: list[Code]) -> Code:
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
