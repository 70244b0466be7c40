"""The greatest cost that an expression over declared values can have, before there are values.

The rules are the API server's: a definition whose rules could cost too much is refused, so that the
same definitions have to be refused here. What an operation costs depends on the sizes of its
operands; a size is a pair of least and greatest, and comes from a literal, from the declaration
that an operand is a part of, or from the operation that made it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moorage.cel import syntax
from moorage.cel.schemas import Declaration
from moorage.cel.syntax import SyntaxNode
from moorage.cel.types import Type, is_wildcard

Size = tuple[int, int]

UNLIMITED = 2**64 - 1
UNKNOWN: Size = (0, UNLIMITED)
_ONE: Size = (1, 1)
_LIST_COST, _MAP_COST = 10, 30
_NAME_PATTERN_LENGTH, _FORMAT_LENGTH = 128, 64
_SCALARS = frozenset(
    ("bool", "int", "uint", "double", "google.protobuf.Timestamp", "google.protobuf.Duration")
)
_TEXTS = ("string", "bytes")
_CONSTANT_EQUALITY = ("kubernetes.Quantity", "kubernetes.Semver", "net.IP", "net.CIDR")
# Functions of the API server whose cost is that of going through their argument or target.
_SCANS = frozenset(
    ("url", "cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver")
)
_TEXT_SCANS = frozenset(("lowerAscii", "upperAscii", "substring", "trim"))
_LIST_SCANS = frozenset(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"))


def _limited(number: float) -> int:
    return UNLIMITED if number >= UNLIMITED else math.ceil(number)


def _scaled(number: int, factor: float) -> int:
    return _limited(number * factor)


def _times(a: Size, b: Size) -> Size:
    return _limited(a[0] * b[0]), _limited(a[1] * b[1])


def _plus(a: Size, b: Size) -> Size:
    return _limited(a[0] + b[0]), _limited(a[1] + b[1])


def _either(*sizes: Size) -> Size:
    return min(size[0] for size in sizes), max(size[1] for size in sizes)


@dataclass(slots=True)
class _Local:
    """A variable of a macro."""

    path: tuple[str, ...]
    size: Size | None
    entries: Size | None = None


class CostEstimator:
    """Estimates one expression over `self` and `oldSelf`, which have the same declaration."""

    def __init__(self, root: Declaration) -> None:
        self.root = root
        self.locals: dict[str, _Local] = {}
        # By identity of a node, as far as known: where it is in the declaration, its size, and the
        # size of its elements or values.
        self.paths: dict[int, tuple[str, ...]] = {}
        self.sizes: dict[int, Size] = {}
        self.entries: dict[int, Size] = {}
        self._rules: dict[type, Callable[[Any], int]] = syntax.rules_of(self)

    def cost(self, node: SyntaxNode) -> int:
        """The greatest cost of a node."""
        return min(UNLIMITED, self._rules[type(node)](node))

    # Sizes -------------------------------------------------------------------------------------

    def size(self, node: SyntaxNode) -> Size:
        """The size of a node whose cost was estimated before."""
        return self._known_size(node) or UNKNOWN

    def _known_size(self, node: SyntaxNode) -> Size | None:
        if (found := self.sizes.get(id(node))) is not None:
            return found
        match node:
            case syntax.Literal(value=str() | bytes() as value):
                return len(value), len(value)
            case syntax.Literal():
                return _ONE
            case syntax.ListLiteral(items=parts) | syntax.MapLiteral(entries=parts):
                return len(parts), len(parts)
        declared = self._declared_size(self._path(node))
        if declared is not None:
            self.sizes[id(node)] = declared
            return declared
        if _is_scalar(node.type):
            return _ONE
        local = self.locals.get(node.name) if isinstance(node, syntax.Ident) else None
        return local.size if local else None

    def _declared_size(self, path: tuple[str, ...]) -> Size | None:
        # The first step is the variable. Of a value that was computed the API server knows only
        # the steps after it, and takes the first of them for the variable. So do we.
        if not path:
            return None
        found: Declaration | None = self.root
        for step in path[1:]:
            if found is None:
                return None
            if step == "@keys":  # Keys have no declared length.
                return (0, 0) if found.type.name == "map" else None
            found = found.element if step in ("@items", "@values") else found.fields.get(step)
        return None if found is None else (0, found.max_elements)

    def _path(self, node: SyntaxNode) -> tuple[str, ...]:
        if isinstance(node, syntax.Ident) and node.name in self.locals:
            return self.locals[node.name].path
        return self.paths.get(id(node), ())

    def _entry_size(self, node: SyntaxNode) -> Size | None:
        local = self.locals.get(node.name) if isinstance(node, syntax.Ident) else None
        return self.entries.get(id(node)) or (local.entries if local else None)

    def _element_size(self, node: SyntaxNode) -> Size:
        path = self._path(node)
        return (self._declared_size((*path, "@items")) if path else None) or UNKNOWN

    # Nodes -------------------------------------------------------------------------------------

    def _literal(self, node: syntax.Literal) -> int:
        return 0

    def _ident(self, node: syntax.Ident) -> int:
        self.paths[id(node)] = self._path(node) or (node.name,)
        return 1

    def _select(self, node: syntax.Select) -> int:
        if node.constant is not None:
            return 1
        cost = self.cost(node.operand)
        if node.test:
            return cost
        if node.optional:
            return cost + 1
        operand = node.operand.type
        self.paths[id(node)] = (*self._path(node.operand), node.name)
        return cost + (not is_wildcard(operand) and operand.name != "optional_type")

    def _index(self, node: syntax.Index) -> int:
        cost = 1 + self.cost(node.operand) + self.cost(node.key)
        if not node.optional and node.operand.type.name in ("list", "map"):
            step = "@items" if node.operand.type.name == "list" else "@values"
            self.paths[id(node)] = (*self._path(node.operand), step)
            if (entry := self._entry_size(node.operand)) is not None:
                self.sizes[id(node)] = entry
        return cost

    def _logical(self, node: syntax.Logical) -> int:
        return sum(map(self.cost, node.terms))

    def _conditional(self, node: syntax.Conditional) -> int:
        cost = self.cost(node.test) + max(self.cost(node.then), self.cost(node.other))
        self.sizes[id(node)] = _either(self.size(node.then), self.size(node.other))
        self._join_entries(node, node.then, node.other)
        return cost

    def _join_entries(self, node: SyntaxNode, *parts: SyntaxNode) -> None:
        found = [self._entry_size(part) for part in parts]
        known = [size for size in found if size is not None]
        if len(known) == len(found):
            self.entries[id(node)] = _either(*known)

    def _list(self, node: syntax.ListLiteral) -> int:
        cost = _LIST_COST + sum(self.cost(item) for item, _ in node.items)
        sizes = [self.size(item) for item, _ in node.items] or [(0, 0)]
        self.entries[id(node)] = _either(*sizes)
        return cost

    def _map(self, node: syntax.MapLiteral) -> int:
        cost = _MAP_COST + sum(self.cost(key) + self.cost(value) for key, value, _ in node.entries)
        sizes = [self.size(value) for _, value, _ in node.entries] or [(0, 0)]
        self.entries[id(node)] = _either(*sizes)
        return cost

    # Macros ------------------------------------------------------------------------------------

    def _comprehension(self, node: syntax.Comprehension) -> int:
        if node.macro in ("bind", "optMap", "optFlatMap"):
            return self._binding(node)
        operand = self.cost(node.operand)
        count = self.size(node.operand)
        outer = dict(self.locals)
        self._bind_elements(node)
        where = self.cost(node.where) if node.where else 0
        body = self.cost(node.body)
        before, step, after = _loop_costs(node, body)
        if node.macro in ("map", "filter", "transformList", "transformMap", "transformMapEntry"):
            self.sizes[id(node)] = count
            if node.macro in ("map", "transformList"):
                self.entries[id(node)] = (0, self.size(node.body)[1])
            elif node.macro == "filter":
                self.entries[id(node)] = (0, (self.locals[node.variables[0]].size or UNKNOWN)[1])
        elif node.macro != "sortBy":
            self.sizes[id(node)] = _ONE
        self.locals = outer
        cost = operand + before + _limited(count[1] * (where + step)) + after
        if node.macro == "sortBy":
            squared = _times(count, count)
            factor = 2.1 if node.body.type.name in _TEXTS else 2.0
            self.sizes[id(node)] = squared
            cost += _LIST_COST + 2 + _scaled(squared[1], factor) + 1 + _LIST_COST
        return cost

    def _bind_elements(self, node: syntax.Comprehension) -> None:
        is_list = node.operand.type.name == "list"
        path, entry = self._path(node.operand), self._entry_size(node.operand)
        steps = ["@items" if is_list else "@keys"]
        if len(node.variables) == 2:
            steps = ["@indices", "@items"] if is_list else ["@keys", "@values"]
        for name, step in zip(node.variables, steps, strict=True):
            inner = (*path, step)
            size = self._declared_size(inner)
            if size is None and step in ("@items", "@values"):
                size = entry
            self.locals[name] = _Local(inner, size)

    def _binding(self, node: syntax.Comprehension) -> int:
        """`target.optMap(v, f)`: the target is evaluated twice, then `f` with its value."""
        operand = self.cost(node.operand)
        outer = dict(self.locals)
        inner = node.operand.type.params[:1]
        size = _ONE if inner and _is_scalar(inner[0]) else None
        is_optional = node.macro != "bind"
        if is_optional:
            self.locals[node.variables[0]] = _Local((), size)
        else:
            entry = self._entry_size(node.operand)
            local = _Local(self._path(node.operand), self._known_size(node.operand), entry)
            self.locals[node.variables[0]] = local
        body = self.cost(node.body)
        if not is_optional:
            self.sizes[id(node)] = self.size(node.body)
        self.locals = outer
        if not is_optional:
            return _LIST_COST + operand + body
        wrapped = 1 if node.macro == "optMap" else 0
        return operand + 1 + wrapped + _LIST_COST + operand + 1 + body

    # Calls -------------------------------------------------------------------------------------

    def _call(self, node: syntax.Call) -> int:
        args = sum(map(self.cost, node.args)) + (self.cost(node.target) if node.target else 0)
        if node.function == "dyn":
            self.sizes[id(node)] = self.size(node.args[0])
            self._join_entries(node, node.args[0])
            return 1 + args
        cost, size = self._own_cost(node)
        if size is not None:
            self.sizes[id(node)] = size
        return _limited(args + cost)

    def _own_cost(self, node: syntax.Call) -> tuple[int, Size | None]:
        """The cost of a call without its arguments, and the size of its result."""
        name, target, args = node.function, node.target, node.args
        if name in ("==", "!=", "<", "<=", ">", ">="):
            return self._comparison(node), None
        if name == "+":
            return self._addition(node)
        if name == "in":
            lists = any(overload.params[1].name == "list" for overload in node.overloads)
            return self.size(args[1])[1] if lists else 1, None
        if target is not None:
            found = self._method_cost(name, target, args, self.size(target))
            return found or (1, None)
        return self._function_cost(node) or (1, None)

    def _comparison(self, node: syntax.Call) -> int:
        left, right = node.args
        smaller = min(self.size(left)[1], self.size(right)[1])
        if node.function in ("==", "!="):
            constant = left.type == right.type and left.type.name in _CONSTANT_EQUALITY
            if node.function == "==" and constant:
                return 1
            if node.function == "==" and left.type == right.type:
                if left.type.name == "kubernetes.NamedFormat":
                    return _scaled(_FORMAT_LENGTH, 0.1)
                if left.type.name == "kubernetes.URL":
                    return _scaled((self._known_size(right) or _ONE)[1], 0.1)
            return _scaled(smaller, 0.1)
        types = (left.type, right.type)
        if all(type_.name in _TEXTS or is_wildcard(type_) for type_ in types):
            return max(_scaled(smaller, 0.1), int(any(map(is_wildcard, types))))
        return 1

    def _addition(self, node: syntax.Call) -> tuple[int, Size | None]:
        kinds = {overload.params[0].name for overload in node.overloads}
        if not kinds & {"string", "bytes", "list"}:
            return 1, None
        size = _plus(*map(self.size, node.args))
        self._join_entries(node, *node.args)
        return _scaled(size[1], 0.1) if kinds & set(_TEXTS) else 1, size

    def _method_cost(
        self, name: str, target: SyntaxNode, args: list[SyntaxNode], size: Size
    ) -> tuple[int, Size | None] | None:
        sizes = [self.size(arg) for arg in args]
        tenth = _scaled(size[1], 0.1)
        match name:
            case "indexOf" | "lastIndexOf" | "isSorted" | "sum" | "max" | "min":
                if not target.type.params:
                    return tenth, None
                each = 1
                if target.type.params[0].name in _TEXTS:
                    each += _scaled(self._element_size(target)[1], 0.1)
                return _limited(size[1] * each), None
            case "lowerAscii" | "upperAscii" | "substring" | "trim":
                return tenth, size
            case "replace":
                return _scaled(size[1], 0.2), _replaced(size, *sizes[:2])
            case "split":
                limit = args[1] if len(args) > 1 else None
                most = limit.value if isinstance(limit, syntax.Literal) else size[1]
                return _scaled(size[1], 0.2), (0, max(0, most))
            case "join":
                joined = _times(size, self._element_size(target))
                if sizes:
                    gaps = (max(0, size[0] - 1), max(0, size[1] - 1))
                    joined = _plus(joined, _times(sizes[0], gaps))
                return _scaled(joined[1], 0.1), joined
            case "find" | "findAll":
                return self._match_cost(size, sizes[0]), (0, size[1])
            case "matches":
                return self._match_cost(size, sizes[0]), None
            case "startsWith" | "endsWith":
                return _scaled(sizes[0][1], 0.1), None
            case "contains":
                return _limited(tenth * _scaled(sizes[0][1], 0.1)), None
            case "format":
                return tenth, None
            case "validate":
                longest = _scaled(sizes[0][1], 0.1)
                return _scaled(longest, _NAME_PATTERN_LENGTH * 0.25), None
            case "containsIP" | "containsCIDR":
                base = 4 if name == "containsIP" else 7
                is_text = args[0].type.name == "string"
                return base + (_scaled(sizes[0][1], 0.1) if is_text else 0), None
            case "slice":
                return self._new_list(1, self._slice_size(size, args))
            case "reverse":
                return self._new_list(1, size)
            case "flatten":
                depth = args[0].value if args and isinstance(args[0], syntax.Literal) else 1
                return self._new_list(depth if args else 1, size)
            case "distinct":
                return self._new_list(2, _times(size, size))
            case "sort":
                texts = target.type.params and target.type.params[0].name in _TEXTS
                return self._new_list(2.1 if texts else 2, _times(size, size))
        return None

    def _function_cost(self, node: syntax.Call) -> tuple[int, Size | None] | None:
        name, sizes = node.function, [self.size(arg) for arg in node.args]
        if name in _SCANS:
            return _scaled(sizes[0][1], 0.1), sizes[0] if name == "url" else None
        kinds = {overload.params[0].name for overload in node.overloads if overload.params}
        match name:
            case "ip.isCanonical":
                return _scaled(sizes[0][1], 0.2), None
            case "bytes" if "string" in kinds:
                return _scaled(sizes[0][1], 0.1), (sizes[0][0], _limited(sizes[0][1] * 4))
            case "string" if "bytes" in kinds:
                return max(1, _scaled(sizes[0][1], 0.1)), (sizes[0][0] // 4, sizes[0][1])
            case "strings.quote":
                return _scaled(sizes[0][1], 0.1), (sizes[0][0] + 2, _limited(sizes[0][1] * 2 + 2))
            case "lists.range":
                (count,) = node.args
                most = count.value if isinstance(count, syntax.Literal) else UNLIMITED
                return self._new_list(1, (most, most))
            case "sets.contains" | "sets.intersects":
                return _limited(_times(*sizes)[1] + 1), None
            case "sets.equivalent":
                return _limited(_scaled(_times(*sizes)[1], 2) + 1), None
        return None

    def _match_cost(self, text: Size, pattern: Size) -> int:
        return _limited(_scaled(_limited(text[1] + 1), 0.1) * _scaled(pattern[1], 0.25))

    def _new_list(self, factor: float, size: Size) -> tuple[int, Size]:
        return _limited(_scaled(size[1], factor) + 1 + _LIST_COST), size

    def _slice_size(self, size: Size, args: list[SyntaxNode]) -> Size:
        start, end = (arg.value if isinstance(arg, syntax.Literal) else None for arg in args)
        length = (size[1] if end is None else end) - (start or 0)
        return (length, length) if length >= 0 else (UNLIMITED, UNLIMITED)


def _is_scalar(type_: Type) -> bool:
    if type_.name == "optional_type" and type_.params:
        return _is_scalar(type_.params[0])
    return type_.name in _SCALARS


def _loop_costs(node: syntax.Comprehension, body: int) -> tuple[int, int, int]:
    """What a macro costs before its loop, in each round except its filter, and after it."""
    filtered = node.where is not None
    match node.macro:
        case "all":
            return 0, 3 + body, 1
        case "exists":
            return 0, 4 + body, 1
        case "exists_one" | "existsOne":
            return 0, 2 + body, 2
        case "filter":
            return _LIST_COST, 13 + body, 1
        case "transformMap":
            return _MAP_COST, max(3 + body, int(filtered)), 1
        case "transformMapEntry":
            return _MAP_COST, max(2 + body, int(filtered)), 1
    return _LIST_COST, 12 + body, 1  # map, transformList, sortBy


def _replaced(size: Size, old: Size, new: Size) -> Size:
    """The size of a text in which occurrences of `old` are replaced by `new`."""
    if old[0] == 0:
        longest = _limited((size[1] + 1) * new[1] + size[1])
    elif new[1] <= old[0]:
        longest = size[1]
    else:
        longest = _limited(math.ceil(size[1] / old[0]) * new[1])
    if old[1] == 0:
        shortest = _limited((size[0] + 1) * new[0] + size[0])
    elif old[1] <= new[0]:
        shortest = size[0]
    else:
        shortest = _limited(math.ceil(size[0] / old[1]) * new[0])
    return shortest, longest
