"""Types of CEL expressions, assignability, and overloads of functions.

A signature is written as text: `list<A>.indexOf(A) -> int` is a method, `size(string) -> int` a
function, `lists::range(int) -> list<int>` a function in a namespace; a single capital letter is a
type parameter.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType
from typing import Any, TypeVar

from moorage.cel.values import (
    CelDuration,
    OptionalValue,
    QuantityValue,
    Semver,
    Timestamp,
    TypeValue,
    Uint,
    size_of,
)


@dataclass(frozen=True, slots=True)
class Type:
    """A type, with parameters if it is a list, map, optional or type."""

    name: str
    params: tuple["Type", ...] = ()

    def __str__(self) -> str:
        name = _SHOWN.get(self.name, self.name)
        return f"{name}({', '.join(map(str, self.params))})" if self.params else name


BOOL, INT, UINT, DOUBLE = Type("bool"), Type("int"), Type("uint"), Type("double")
STRING, BYTES, NULL = Type("string"), Type("bytes"), Type("null_type")
DYN = Type("dyn")
ANY = Type("any")  # Of device attributes; as DYN, but a selector may also return it.
QUANTITY = Type("kubernetes.Quantity")

# Names in messages that differ from those of the types.
_SHOWN = {
    "google.protobuf.Timestamp": "timestamp",
    "google.protobuf.Duration": "duration",
    "null_type": "null",
}
# Short names in signatures.
_ALIASES = {
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
    "null": "null_type",
    "optional": "optional_type",
    "quantity": QUANTITY.name,
    "semver": "kubernetes.Semver",
    "url": "kubernetes.URL",
    "format": "kubernetes.NamedFormat",
    "ip": "net.IP",
    "cidr": "net.CIDR",
}
# The Python class of the values of a type. Libraries add theirs.
CLASSES: dict[str, type] = {
    "bool": bool,
    "int": int,
    "uint": Uint,
    "double": float,
    "string": str,
    "bytes": bytes,
    "null_type": NoneType,
    "list": list,
    "map": dict,
    "type": TypeValue,
    "optional_type": OptionalValue,
    "google.protobuf.Timestamp": Timestamp,
    "google.protobuf.Duration": CelDuration,
    "kubernetes.Quantity": QuantityValue,
    "kubernetes.Semver": Semver,
}

Cost = Callable[..., int]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function. `params` include the target of a method.

    `cost` computes the cost of a call from its arguments; None: the call costs 1.
    """

    name: str
    member: bool
    params: tuple[Type, ...]
    result: Type
    run: Callable[..., Any]
    cost: Cost | None = None


OVERLOADS: dict[str, list[Overload]] = {}


def define(*signatures: str, run: Callable[..., Any], cost: Cost | None = None) -> None:
    """Register a function under signatures."""
    for signature in signatures:
        name, member, params, result = _signature(signature)
        entry = Overload(name, member, params, result, run, cost)
        OVERLOADS.setdefault(name, []).append(entry)


def overload(*signatures: str, cost: Cost | None = None) -> Callable[[F], F]:
    """Register the decorated function under signatures."""

    def register(function: F) -> F:
        define(*signatures, run=function, cost=cost)
        return function

    return register


def tenths(size: int) -> int:
    """A tenth, rounded up: the cost of going once through a text."""
    return -(-size // 10)


def traversal(value: Any, *_: Any) -> int:
    """The cost of going once through the first argument."""
    return tenths(size_of(value))


def double_traversal(value: Any, *_: Any) -> int:
    """The cost of going twice through the first argument."""
    return tenths(2 * size_of(value))


def _signature(text: str) -> tuple[str, bool, tuple[Type, ...], Type]:
    head, _, result = text.partition(" -> ")
    name, _, arguments = head.partition("(")
    params = _types(arguments[:-1])
    target, dot, method = name.rpartition(".")
    if dot:
        return method, True, (*_types(target), *params), _types(result)[0]
    return name.replace("::", "."), False, params, _types(result)[0]


def _types(text: str) -> tuple[Type, ...]:
    """The types of a list such as `int, map<string, A>`."""
    result, depth, start = [], 0, 0
    for index, sign in enumerate(text + ","):
        depth += (sign == "<") - (sign == ">")
        if sign == "," and depth == 0 and text[start:index].strip():
            name, _, inside = text[start:index].strip().partition("<")
            result.append(Type(_ALIASES.get(name, name), _types(inside[:-1])))
            start = index + 1
    return tuple(result)


def is_wildcard(type_: Type) -> bool:
    """Whether values of the type are only known at run time."""
    return type_ in (DYN, ANY) or type_.name[0] == "%"


def type_name(value: Any) -> str:
    """CEL's name of a value's type."""
    kind = next((cls for cls in (dict, list) if isinstance(value, cls)), type(value))
    return next((name for name, cls in CLASSES.items() if cls is kind), kind.__name__)


class TypeBindings:
    """The types that type variables stand for while an expression is checked."""

    def __init__(self) -> None:
        self.bound: dict[str, Type] = {}
        self.count = 0

    def fresh(self) -> Type:
        """A new type variable."""
        self.count += 1
        return Type(f"%{self.count}")

    def instantiate(self, types: tuple[Type, ...]) -> tuple[Type, ...]:
        """The types with new variables in place of type parameters."""
        names: dict[str, Type] = {}

        def visit(type_: Type) -> Type:
            if len(type_.name) == 1:
                return names.setdefault(type_.name, self.fresh())
            return Type(type_.name, tuple(map(visit, type_.params)))

        return tuple(map(visit, types))

    def substitute(self, type_: Type) -> Type:
        """The type with variables replaced by what they stand for; free ones stay."""
        if bound := self.bound.get(type_.name):
            return self.substitute(bound)
        return Type(type_.name, tuple(map(self.substitute, type_.params)))

    def resolve(self, type_: Type) -> Type:
        """The type with variables replaced by what they stand for; a free one is dyn."""
        type_ = self.substitute(type_)
        if type_.name[0] == "%":
            return DYN
        return Type(type_.name, tuple(map(self.resolve, type_.params)))

    def assign_all(self, targets: tuple[Type, ...], sources: list[Type]) -> bool:
        """Whether all sources are assignable; variables are bound only if they are."""
        before = dict(self.bound)
        if all(map(self.assign, targets, sources)):
            return True
        self.bound = before
        return False

    def assign(self, target: Type, source: Type) -> bool:
        """Whether a value of type `source` can be used as a `target`; binds variables."""
        target, source = self._follow(target), self._follow(source)
        if target == source:
            return True
        for variable, other in ((target, source), (source, target)):
            if variable.name[0] == "%":
                bound = self.bound.get(variable.name)
                if bound is None:
                    if self._occurs(variable, other):
                        return False
                    self.bound[variable.name] = other
                    return True
                if not self.assign(bound, other):
                    return False
                self.bound[variable.name] = self._join(bound, other)
                return True
        if is_wildcard(target) or is_wildcard(source):
            return True
        return (
            target.name == source.name
            and len(target.params) == len(source.params)
            and all(map(self.assign, target.params, source.params))
        )

    def _join(self, a: Type, b: Type) -> Type:
        """The more general of two assignable types, such as `list(dyn)` and not `list(int)`."""
        a, b = self.substitute(a), self.substitute(b)
        if is_wildcard(a) or is_wildcard(b):
            return a if a in (DYN, ANY) else b
        return Type(a.name, tuple(map(self._join, a.params, b.params)))

    def _follow(self, type_: Type) -> Type:
        # A variable that stands for another variable; one that stands for a type is returned as it
        # is, because `assign` may make that type more general.
        while (bound := self.bound.get(type_.name)) is not None and bound.name[0] == "%":
            type_ = bound
        return type_

    def _occurs(self, variable: Type, type_: Type) -> bool:
        if type_.name[0] == "%":
            bound = self.bound.get(type_.name)
            return type_ == variable or (bound is not None and self._occurs(variable, bound))
        return any(self._occurs(variable, param) for param in type_.params)
