"""The type checker: sets the types of nodes, the slots of variables, the overloads of calls."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from moorage.cel import syntax
from moorage.cel.lexer import CelSyntaxError, syntax_error
from moorage.cel.syntax import SyntaxNode
from moorage.cel.types import (
    ANY,
    BOOL,
    BYTES,
    CLASSES,
    DOUBLE,
    DYN,
    INT,
    NULL,
    OVERLOADS,
    QUANTITY,
    STRING,
    UINT,
    Type,
    TypeBindings,
    is_wildcard,
)
from moorage.cel.values import TypeValue, Uint


@dataclass(frozen=True, slots=True)
class Environment:
    """What an expression may refer to, besides the functions of the libraries.

    Variables get slots from 1 on, in this order: slot 0 of a frame has the budget. `fields` are
    those of the types that are neither lists nor maps, by name of the type. `without` are the
    functions and macros that expressions of this environment do not have.
    """

    variables: Mapping[str, Type]
    fields: Mapping[str, Mapping[str, Type]]
    without: frozenset[str] = frozenset()


_DEVICE = Type("kubernetes.DRADevice")
DEVICES = Environment(
    {"device": _DEVICE},
    {
        _DEVICE.name: {
            "driver": STRING,
            "attributes": Type("map", (STRING, Type("map", (STRING, ANY)))),
            "capacity": Type("map", (STRING, Type("map", (STRING, QUANTITY)))),
            "allowMultipleAllocations": BOOL,
        }
    },
)
_LITERALS = {bool: BOOL, int: INT, Uint: UINT, float: DOUBLE, str: STRING, bytes: BYTES}
_ORDERED = frozenset(
    (
        "bool",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "google.protobuf.Timestamp",
        "google.protobuf.Duration",
    )
)
# Values of other types may be compared with null.
_NOT_NULLABLE = frozenset(
    ("bool", "int", "uint", "double", "string", "bytes", "list", "map", "type")
)
_NUMERIC = frozenset(("int", "uint", "double"))
# The names of operators in messages.
_OPERATOR_NAMES = {
    "in": "@in",
    **{sign: f"_{sign}_" for sign in ("+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=")},
}


class Checker:
    """Checks one expression."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.bindings = TypeBindings()
        self.scope: dict[str, tuple[Type, int]] = {
            name: (type_, slot)
            for slot, (name, type_) in enumerate(environment.variables.items(), start=1)
        }
        self.frame_size = 1 + len(self.scope)
        self.used: set[str] = set()  # names of variables
        self.errors: list[CelSyntaxError] = []
        self.formats = 0  # calls of `format` around the current node
        # Elements of list and map literals, their type and that of the first element.
        self.literals: list[tuple[SyntaxNode, Type, Type]] = []
        self._rules: dict[type, Callable[[Any], Type]] = syntax.rules_of(self)

    def check(self, node: SyntaxNode) -> Type:
        """The type of a node; an ill-typed one is dyn, and its error is kept."""
        try:
            node.type = self._rules[type(node)](node)
        except CelSyntaxError as error:
            self.errors.append(error)
            node.type = DYN
        return node.type

    def check_all(self, tree: SyntaxNode) -> Type:
        """The type of an expression; raises the first of its errors."""
        type_ = self.bindings.resolve(self.check(tree))
        if not self.errors:
            self._check_literals()
        for error in self.errors:
            raise error
        return type_

    def _substituted(self, node: SyntaxNode) -> Type:
        return self.bindings.substitute(self.check(node))

    def _literal(self, node: syntax.Literal) -> Type:
        return _LITERALS.get(type(node.value), NULL)

    def _ident(self, node: syntax.Ident) -> Type:
        if node.name in self.scope:
            self.used.add(node.name)
            type_, node.slot = self.scope[node.name]
            return type_
        if node.name in CLASSES or node.name == "dyn":
            node.constant = TypeValue(node.name)
            return Type("type", (DYN,))
        raise _undeclared(node, node.name)

    def _select(self, node: syntax.Select) -> Type:
        name = _qualified_name(node)
        if name in CLASSES and name.partition(".")[0] not in self.scope:
            node.constant = TypeValue(name)
            return Type("type", (DYN,))
        operand = self._substituted(node.operand)
        viral = operand.name == "optional_type"
        result = self._field(node, operand.params[0] if viral else operand)
        if node.test:
            return BOOL
        return Type("optional_type", (result,)) if viral or node.optional else result

    def _field(self, node: syntax.Select, operand: Type) -> Type:
        fields = self.environment.fields.get(operand.name)
        if fields is not None:
            if node.name not in fields:
                raise syntax_error(node.position, f"undefined field '{node.name}'")
            return fields[node.name]
        if operand.name == "map":
            return operand.params[1]
        if is_wildcard(operand):
            return DYN
        what = f"type '{operand}' does not support field selection"
        raise syntax_error(node.position, what)

    def _index(self, node: syntax.Index) -> Type:
        operand, key = self._substituted(node.operand), self._substituted(node.key)
        viral = operand.name == "optional_type"
        container = operand.params[0] if viral else operand
        if container.name == "map" and self.bindings.assign(container.params[0], key):
            result = container.params[1]
        elif container.name == "list" and (key == INT or is_wildcard(key)):
            result = container.params[0]
        elif is_wildcard(container):
            result = DYN
        else:
            raise _no_overload(node, "_[_]", [container, key])
        return Type("optional_type", (result,)) if viral or node.optional else result

    def _logical(self, node: syntax.Logical) -> Type:
        for term in node.terms:
            type_ = self.check(term)
            if not self.bindings.assign(BOOL, type_):
                raise _no_overload(node, f"_{node.operator}_", [type_])
        return BOOL

    def _conditional(self, node: syntax.Conditional) -> Type:
        test = self.check(node.test)
        result = self.bindings.fresh()
        branches = [self.check(node.then), self.check(node.other)]
        if not self.bindings.assign(BOOL, test) or not self.bindings.assign_all(
            (result, result), branches
        ):
            raise _no_overload(node, "_?_:_", [test, *branches])
        return self.bindings.substitute(result)

    def _element(self, node: SyntaxNode, *, optional: bool) -> Type:
        type_ = self.check(node)
        if not optional:
            return type_
        inner = self.bindings.fresh()
        if not self.bindings.assign(Type("optional_type", (inner,)), type_):
            raise syntax_error(node.position, f"expected type 'optional_type' but found '{type_}'")
        return inner

    def _joined(self, nodes: list[tuple[SyntaxNode, bool]]) -> Type:
        """The type of the elements of a literal: theirs, or dyn if it is not one."""
        joined = self.bindings.fresh()
        types = [self._element(node, optional=optional) for node, optional in nodes]
        if not all(self.bindings.assign(joined, type_) for type_ in types):
            self.bindings.bound[joined.name] = DYN
        if not self.formats:
            self.literals += [
                (node, type_, types[0]) for (node, _), type_ in zip(nodes, types, strict=True)
            ]
        return joined

    def _check_literals(self) -> None:
        """The elements of each literal must have one type; `format` is exempt."""
        for node, type_, first in self.literals:
            found, expected = self.bindings.resolve(type_), self.bindings.resolve(first)
            if found != expected:
                what = f"expected type '{expected}' but found '{found}'"
                self.errors.append(syntax_error(node.position, what))

    def _list(self, node: syntax.ListLiteral) -> Type:
        return Type("list", (self._joined(node.items),))

    def _map(self, node: syntax.MapLiteral) -> Type:
        keys = self._joined([(key, False) for key, _, _ in node.entries])
        values = self._joined([(value, optional) for _, value, optional in node.entries])
        key_type = self.bindings.resolve(keys)
        if key_type.name not in ("bool", "int", "uint", "string", "dyn", "any"):
            raise syntax_error(node.position, f"unsupported map key type '{key_type}'")
        return Type("map", (keys, values))

    def _call(self, node: syntax.Call) -> Type:
        name = node.function
        namespace = _qualified_name(node.target) if node.target else None
        if namespace and namespace.partition(".")[0] not in self.scope:
            qualified = f"{namespace}.{name}"
            if qualified in OVERLOADS:
                node.function, node.target = qualified, None
        args = ([node.target] if node.target else []) + node.args
        self.formats += name == "format"
        types = [self.check(arg) for arg in args]
        self.formats -= name == "format"
        if name in ("<", "<=", ">", ">="):
            return self._ordering(node, types)
        if name in ("==", "!=") and NULL in types:
            other = types[types[0] == NULL]
            types = [other, other] if other.name not in _NOT_NULLABLE else types
        known = OVERLOADS.get(node.function)
        if known is None or node.function in self.environment.without:
            raise _undeclared(node, node.function)
        results = []
        for overload in known:
            if overload.member == (node.target is not None) and len(overload.params) == len(types):
                *params, result = self.bindings.instantiate((*overload.params, overload.result))
                if self.bindings.assign_all(tuple(params), types):
                    node.overloads.append(overload)
                    results.append(self.bindings.substitute(result))
        if not results:
            raise _no_overload(node, name, [self.bindings.resolve(type_) for type_ in types])
        return results[0] if all(result == results[0] for result in results) else DYN

    def _ordering(self, node: syntax.Call, types: list[Type]) -> Type:
        left, right = (self.bindings.resolve(type_) for type_ in types)
        fits = is_wildcard(left) or is_wildcard(right) or left == right
        fits = fits or (left.name in _NUMERIC and right.name in _NUMERIC)
        if not fits or any(t.name not in _ORDERED and not is_wildcard(t) for t in (left, right)):
            raise _no_overload(node, node.function, [left, right])
        return BOOL

    def _comprehension(self, node: syntax.Comprehension) -> Type:
        if node.macro in self.environment.without:
            raise _undeclared(node, node.macro)
        operand = self._substituted(node.operand)
        outer = dict(self.scope)
        for name, type_ in zip(node.variables, self._variable_types(node, operand), strict=True):
            node.slots.append(self.frame_size)
            self.scope[name] = (type_, self.frame_size)
            self.frame_size += 1
        if node.where:
            self._predicate(node.where)
        if node.macro in ("all", "exists", "exists_one", "existsOne", "filter"):
            self._predicate(node.body)
            body = BOOL
        else:
            body = self.check(node.body)
        self.scope = outer
        return self._comprehension_result(node, operand, body)

    def _predicate(self, node: SyntaxNode) -> None:
        type_ = self.check(node)
        if not self.bindings.assign(BOOL, type_):
            raise syntax_error(node.position, f"expected type 'bool' but found '{type_}'")

    def _variable_types(self, node: syntax.Comprehension, operand: Type) -> list[Type]:
        if node.macro == "bind":
            return [operand]
        expected = {"optMap": "optional_type", "optFlatMap": "optional_type", "sortBy": "list"}
        wanted = expected.get(node.macro)
        # The reference does not iterate over `any`, the type of attributes, except through dyn().
        if is_wildcard(operand) and (operand != ANY or wanted == "optional_type"):
            return [DYN] * len(node.variables)
        if operand.name not in ((wanted,) if wanted else ("list", "map")):
            what = f"expression of type '{operand}' cannot be range of a comprehension"
            raise syntax_error(node.position, f"{what} (must be list, map, or dynamic)")
        if len(node.variables) == 1:
            return [operand.params[0]]
        return [INT, operand.params[0]] if operand.name == "list" else list(operand.params)

    def _comprehension_result(self, node: syntax.Comprehension, operand: Type, body: Type) -> Type:
        resolved = self.bindings.resolve(body)
        match node.macro:
            case "all" | "exists" | "exists_one" | "existsOne":
                return BOOL
            case "filter":
                return Type("list", (operand.params[0] if operand.params else DYN,))
            case "map" | "transformList":
                return Type("list", (body,))
            case "sortBy":
                if resolved.name not in _ORDERED and not is_wildcard(resolved):
                    raise _no_overload(node, "sortBy", [operand, resolved])
                return operand
            case "optMap":
                return Type("optional_type", (body,))
            case "optFlatMap":
                if resolved.name != "optional_type" and not is_wildcard(resolved):
                    raise _no_overload(node, "optFlatMap", [operand, resolved])
                return body
            case "transformMap":
                key = operand.params[0] if operand.name == "map" else INT
                return Type("map", (DYN if is_wildcard(operand) else key, body))
            case "transformMapEntry":
                if resolved.name != "map" and not is_wildcard(resolved):
                    raise _no_overload(node, "transformMapEntry", [operand, resolved])
                return body
        return body  # bind


def _qualified_name(node: SyntaxNode | None) -> str:
    """`a.b.c` as text; empty for any other expression."""
    if isinstance(node, syntax.Ident):
        return node.name
    if isinstance(node, syntax.Select) and not node.optional and not node.test:
        prefix = _qualified_name(node.operand)
        return f"{prefix}.{node.name}" if prefix else ""
    return ""


def _undeclared(node: SyntaxNode, name: str) -> CelSyntaxError:
    return syntax_error(node.position, f"undeclared reference to '{name}' (in container '')")


def _no_overload(node: SyntaxNode, function: str, types: list[Type]) -> CelSyntaxError:
    member = isinstance(node, syntax.Call) and node.target is not None
    target = str(types.pop(0)) + "." if member else ""
    shown = ", ".join(map(str, types))
    name = _OPERATOR_NAMES.get(function, function)
    what = f"found no matching overload for '{name}' applied to '{target}({shown})'"
    return syntax_error(node.position, what)
