"""Device selectors: an expression over `device` that is true for the devices it selects."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

from moorage.cel import syntax
from moorage.cel.checker import DEVICES, Checker
from moorage.cel.compiler import Compiler
from moorage.cel.types import ANY, BOOL, type_name
from moorage.cel.values import (
    COST_LIMIT,
    CelCompileError,
    CelRuntimeError,
    QuantityValue,
    Semver,
)

MAX_LENGTH = 10 * 1024  # bytes; the API's limit


@dataclass(frozen=True)
class Version:
    """The value of an attribute of type version, as written in the slice."""

    text: str


Attribute = bool | int | str | Version


class _Domains(dict[str, dict[str, Any]]):
    """Attributes or capacities by domain. An unknown domain is empty, but not `in` the map."""

    def __missing__(self, domain: str) -> dict[str, Any]:
        return {}


@dataclass(frozen=True)
class DeviceInput:
    """A device as selectors see it.

    Attributes and capacities are keyed as in the slice: `domain/name`, or `name` alone for the
    domain of the driver. Keep one object per device: it caches the form that expressions read.
    """

    driver: str
    attributes: Mapping[str, Attribute]
    capacity: Mapping[str, Fraction | int | str]
    allow_multiple_allocations: bool = False

    @cached_property
    def variables(self) -> dict[str, Any]:
        """The variable `device`."""
        attributes, capacity = _Domains(), _Domains()
        for name, value in self.attributes.items():
            self._file(attributes, name, _attribute(name, value))
        for name, amount in self.capacity.items():
            self._file(capacity, name, _quantity(amount))
        return {
            "driver": self.driver,
            "attributes": attributes,
            "capacity": capacity,
            "allowMultipleAllocations": self.allow_multiple_allocations,
        }

    def _file(self, domains: _Domains, qualified: str, value: Any) -> None:
        domain, slash, name = qualified.partition("/")
        if not slash:
            domain, name = self.driver, qualified
        domains.setdefault(domain, {})[name] = value


def _attribute(name: str, value: Attribute) -> Any:
    if isinstance(value, Version):
        try:
            return Semver.parse(value.text)
        except CelRuntimeError as error:
            raise CelRuntimeError(f"attribute {name}: parse semantic version: {error}") from None
    if type(value) not in (bool, int, str):
        raise CelRuntimeError(f"attribute {name}: unsupported attribute value")
    return value


def _quantity(amount: Fraction | int | str) -> QuantityValue:
    if isinstance(amount, str):
        return QuantityValue.parse(amount)
    nano = amount * 10**9
    return QuantityValue(-int(-nano // 1))  # A finer amount is rounded up, as in the API.


class CelSelector:
    """A compiled expression."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        tree = syntax.parse(expression)
        checker, compiler = Checker(DEVICES), Compiler()
        type_ = checker.check_all(tree)
        if type_ not in (BOOL, ANY):
            raise CelCompileError(f"must evaluate to bool or the unknown type, not {type_}")
        self._run = compiler.emit(tree)
        # A fresh frame: the budget, the device, a slot per variable.
        self._locals: list[Any] = [None] * (checker.frame_size - 2)
        self._budget = COST_LIMIT - compiler.cost

    def matches(self, device: DeviceInput) -> bool:
        """Whether the expression is true for a device; raises CelRuntimeError."""
        try:
            result = self._run([self._budget, device.variables, *self._locals])
        except RecursionError:
            raise CelRuntimeError("expression is nested too deeply") from None
        if result is True or result is False:
            return result
        kind = type_name(result)
        raise CelRuntimeError(
            f"CEL result of type {kind} could not be converted to bool:"
            f" unsupported native conversion from {kind} to 'bool'"
        )

    def __reduce__(self) -> tuple[Callable[[str], "CelSelector"], tuple[str]]:
        return compile_selector, (self.expression,)  # Closures do not pickle.


def compile_selector(expression: str) -> CelSelector:
    """Compile an expression, or return the one compiled before; raises CelCompileError."""
    try:
        length = len(expression.encode())
    except UnicodeEncodeError:
        raise CelCompileError("expression is not valid Unicode") from None
    if length > MAX_LENGTH:
        raise CelCompileError(f"expression is longer than {MAX_LENGTH} bytes")
    selector = _compiled(expression)
    if isinstance(selector, str):
        raise CelCompileError(selector)
    return selector


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> CelSelector | str:
    """The selector, or the text of its error, so that a bad expression is compiled once, too."""
    try:
        return CelSelector(expression)
    except CelCompileError as error:
        return str(error)
    except RecursionError:
        return "expression is nested too deeply"
