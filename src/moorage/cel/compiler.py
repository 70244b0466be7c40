"""The compiler: a checked syntax tree to nested Python closures.

A closure takes a frame, a list: the remaining budget, the device, and a slot per variable. Fixed
costs of a straight piece of code are added up at compile time and charged once, when a branch or a
loop body that contains it is entered; calls whose cost depends on values charge it themselves.
Costs are those of the reference; see `COST_...`.
"""

import operator
from collections.abc import Callable, Iterable
from typing import Any

from moorage.cel import syntax
from moorage.cel.access import find, get, path, present, unwrapped
from moorage.cel.calls import applied, folded, folded_cost, measured, ordering, validate_regex
from moorage.cel.comprehensions import LOOPS
from moorage.cel.syntax import SyntaxNode
from moorage.cel.types import QUANTITY
from moorage.cel.values import (
    NONE,
    CelRuntimeError,
    Code,
    CostLimitExceeded,
    Frame,
    equal,
    make_map,
    no_such_overload,
)

COST_LIST, COST_MAP = 10, 30
# Per iteration, for what the reference's macros do besides the body: conditions and accumulators.
COST_ITERATION = {"all": 3, "exists": 4, "map": 12, "filter": 1, "transformList": 12}

_SMALL = frozenset(("bool", "int", "uint", "double", "string", "bytes", QUANTITY.name))

_ORDERINGS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class Compiler:
    """Compiles one expression."""

    def __init__(self) -> None:
        self.cost = 0  # of the current straight piece of code
        self.loops = 0  # that the current code is inside of
        self._rules: dict[type, Callable[[Any], Code]] = syntax.rules_of(self)

    def emit(self, node: SyntaxNode) -> Code:
        """The closure of a node; its fixed cost is added to `self.cost`."""
        return self._rules[type(node)](node)

    def block(self, node: SyntaxNode, extra: int = 0) -> Code:
        """The closure of a node that runs conditionally or repeatedly; it charges its cost."""
        outer, self.cost = self.cost, extra
        code, cost, self.cost = self.emit(node), self.cost, outer
        return _charged(code, cost) if cost else code

    def _literal(self, node: syntax.Literal) -> Code:
        return _constant(node.value)

    def _ident(self, node: syntax.Ident) -> Code:
        if node.constant is not None:
            return _constant(node.constant)
        self.cost += 1
        slot = node.slot
        return lambda frame: frame[slot]

    def _select(self, node: syntax.Select) -> Code:
        if node.constant is not None:
            return _constant(node.constant)
        if node.test:
            operand, name = self.emit(node.operand), node.name
            return lambda frame: present(operand(frame), name)
        return self._path(node) or self._lookup(
            node.operand, _constant(node.name), optional=node.optional
        )

    def _index(self, node: syntax.Index) -> Code:
        return self._path(node) or self._lookup(
            node.operand, self.emit(node.key), optional=node.optional
        )

    def _lookup(self, container: SyntaxNode, key: Code, *, optional: bool) -> Code:
        operand = self.emit(container)
        self.cost += 1
        if optional:
            return lambda frame: find(operand(frame), key(frame))
        return lambda frame: get(operand(frame), key(frame))

    def _path(self, node: SyntaxNode) -> Code | None:
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
        return path(node.slot, keys[::-1])

    def _logical(self, node: syntax.Logical) -> Code:
        terms = (self.emit(node.terms[0]), *(self.block(term) for term in node.terms[1:]))
        return _decide(terms, decisive=node.operator == "||")

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
            return _constant(constant)
        items = [(self.emit(item), optional) for item, optional in node.items]
        self.cost += COST_LIST

        def run(frame: Frame) -> Any:
            values = [(code(frame), optional) for code, optional in items]
            return [unwrapped(v) if opt else v for v, opt in values if not (opt and v is NONE)]

        return run

    def _map(self, node: syntax.MapLiteral) -> Code:
        entries = [(self.emit(k), self.emit(v), optional) for k, v, optional in node.entries]
        nodes = [part for k, v, _ in node.entries for part in (k, v)]
        # Like a list, a map of literals is a constant for the reference, and costs nothing.
        self.cost += 0 if all(isinstance(part, syntax.Literal) for part in nodes) else COST_MAP

        def pairs(frame: Frame) -> Iterable[tuple[Any, Any]]:
            for key, value_code, optional in entries:
                value = value_code(frame)
                if not (optional and value is NONE):
                    yield key(frame), unwrapped(value) if optional else value

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
            constant = folded(node, [arg.value for arg in args if isinstance(arg, syntax.Literal)])
            if constant is not None:
                self.cost += folded_cost(node)
                return _constant(constant)
        if node.function == "matches" and isinstance(pattern := args[-1], syntax.Literal):
            validate_regex(pattern)
        codes = [self.emit(arg) for arg in args]
        if node.function in _ORDERINGS:
            self.cost += 1
            return ordering(_ORDERINGS[node.function], *codes)
        # Outside of loops the cost of comparing small values cannot add up.
        small = any(arg.type.name in _SMALL for arg in args)
        if node.function in ("==", "!=") and small and not self.loops:
            return self._equality(node, codes)
        if all(overload.cost is None for overload in node.overloads):
            self.cost += 1
            return applied(node.overloads, args, codes)
        return measured(node.overloads, args, codes)

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

    def _in_constant(self, args: list[SyntaxNode]) -> Code | None:
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


def constant_list(node: SyntaxNode) -> list[Any] | None:
    """The elements of a list literal of literals."""
    if not isinstance(node, syntax.ListLiteral):
        return None
    values = [
        item.value
        for item, optional in node.items
        if isinstance(item, syntax.Literal) and not optional
    ]
    return values if len(values) == len(node.items) else None


def _charged(code: Code, cost: int) -> Code:
    def run(frame: Frame) -> Any:
        frame[0] -= cost
        if frame[0] < 0:
            raise CostLimitExceeded
        return code(frame)

    return run


def _constant(value: Any) -> Code:
    return lambda frame: value


def _decide(terms: tuple[Code, ...], *, decisive: bool) -> Code:
    """`||` (decisive is True) and `&&` (False): an error counts only if no term is decisive."""

    def run(frame: Frame) -> bool:
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

    return run
