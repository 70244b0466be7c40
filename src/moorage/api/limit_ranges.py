"""LimitRange admission: default requests and limits of containers, and bounds of both.

Pods and claims are plain objects, as a client sends them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from moorage.api import quantity, requests
from moorage.api.validation import field_errors as fe
from moorage.api.validation.amounts import nano
from moorage.api.validation.field_errors import Fields

ANNOTATION = "kubernetes.io/limit-ranger"
Amounts = Mapping[str, Any]
_Bound = tuple[str, str, Any, Amounts, Amounts]
"""The type of a limit, a resource, the bound, and requests and limits."""


def with_defaults(limit_range: dict[str, Any]) -> dict[str, Any]:
    """A LimitRange whose containers have defaults: the largest limits, and requests as limits."""
    for limit in fe.mapping(limit_range, "spec").get("limits") or ():
        if limit.get("type") == "Container":
            default = {**limit.get("max", {}), **limit.get("default", {})}
            requested = {**limit.get("min", {}), **default, **limit.get("defaultRequest", {})}
            limit |= {"default": default} if default else {}
            limit |= {"defaultRequest": requested} if requested else {}
    return limit_range


def set_defaults(pod: dict[str, Any], ranges: Iterable[Fields]) -> None:
    """Give the containers of a pod the default requests and limits that they lack."""
    spec = pod["spec"]
    for limit_range in ranges:
        limits: dict[str, Any] = {}
        requested: dict[str, Any] = {}
        for limit in _limits(limit_range, "Container"):  # The last one counts.
            limits |= fe.mapping(limit, "default")
            requested |= fe.mapping(limit, "defaultRequest")
        done = [
            text
            for field, word in (("containers", "container"), ("initContainers", "init container"))
            for container in spec.get(field, ())
            for text in _complete(container, requested, limits, word)
        ]
        if done:
            annotations = pod["metadata"].setdefault("annotations", {})
            annotations[ANNOTATION] = f"LimitRanger plugin set: {'; '.join(done)}"


def _complete(
    container: dict[str, Any], requested: Amounts, limits: Amounts, word: str
) -> Iterator[str]:
    resources = container.setdefault("resources", {})
    for field, defaults in (("requests", requested), ("limits", limits)):
        given = resources.get(field) or {}
        missing = {name: value for name, value in defaults.items() if name not in given}
        if missing:
            resources[field] = {**given, **missing}
            listed = ", ".join(sorted(missing))
            yield f"{listed} {field.removesuffix('s')} for {word} {container.get('name', '')}"


def violations(pod: Fields, ranges: Iterable[Fields]) -> list[str]:
    """The bounds that a pod with its defaults violates."""
    spec = fe.mapping(pod, "spec")
    containers = [*fe.items(spec, "containers"), *fe.items(spec, "initContainers")]
    found: list[str] = []
    for limit_range in ranges:
        for limit in _limits(limit_range, "Container"):
            for container in containers:
                resources = fe.mapping(container, "resources")
                given = fe.mapping(resources, "requests"), fe.mapping(resources, "limits")
                found += _violated("Container", limit, *given)
        for limit in _limits(limit_range, "Pod"):
            found += _violated("Pod", limit, _total(spec, "requests"), _total(spec, "limits"))
    return found


def claim_violations(claim: Fields, ranges: Iterable[Fields]) -> list[str]:
    """The bounds that a PersistentVolumeClaim violates."""
    given = fe.mapping(fe.mapping(fe.mapping(claim, "spec"), "resources"), "requests")
    kind = "PersistentVolumeClaim"
    found: list[str] = []
    for limit_range in ranges:
        for limit in _limits(limit_range, kind):
            for name, bound in sorted(fe.mapping(limit, "min").items()):
                found += _below((kind, name, bound, given, {}))
            for name, bound in sorted(fe.mapping(limit, "max").items()):
                if (value := nano(given.get(name))) is not None and value > (nano(bound) or 0):
                    text = _limit_text("maximum", kind, name, bound)
                    found.append(f"{text}, but request is {fe.shown_quantity(given[name])}")
    return found


def refusal(violated: Iterable[str]) -> str:
    """The violated bounds as one reason; empty if there are none."""
    found = list(dict.fromkeys(violated))
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]" if found else ""


def _limits(limit_range: Fields, kind: str) -> list[Fields]:
    listed = fe.items(fe.mapping(limit_range, "spec"), "limits")
    return [each for each in listed if fe.text(each, "type") == kind]


def _violated(kind: str, limit: Fields, requested: Amounts, limits: Amounts) -> Iterator[str]:
    checks: tuple[tuple[str, Callable[[_Bound], Iterator[str]]], ...] = (
        ("min", _below),
        ("max", _above),
        ("maxLimitRequestRatio", _ratio),
    )
    for field, check in checks:
        for name, bound in sorted(fe.mapping(limit, field).items()):
            yield from check((kind, name, bound, requested, limits))


def _limit_text(word: str, kind: str, name: str, bound: Any) -> str:
    return f"{word} {name} usage per {kind} is {fe.shown_quantity(bound)}"


def _below(case: _Bound) -> Iterator[str]:
    kind, name, bound, requested, limits = case
    least, text = nano(bound) or 0, _limit_text("minimum", kind, name, bound)
    request, limit = nano(requested.get(name)), nano(limits.get(name))
    if request is None:
        yield f"{text}.  No request is specified"
    elif request < least:
        yield f"{text}, but request is {fe.shown_quantity(requested[name])}"
    elif limit is not None and limit < least:
        yield f"{text}, but limit is {fe.shown_quantity(limits[name])}"


def _above(case: _Bound) -> Iterator[str]:
    kind, name, bound, requested, limits = case
    most, text = nano(bound) or 0, _limit_text("maximum", kind, name, bound)
    request, limit = nano(requested.get(name)), nano(limits.get(name))
    if limit is None:
        yield f"{text}.  No limit is specified"
    elif limit > most:
        yield f"{text}, but limit is {fe.shown_quantity(limits[name])}"
    elif request is not None and request > most:
        yield f"{text}, but request is {fe.shown_quantity(requested[name])}"


def _ratio(case: _Bound) -> Iterator[str]:
    kind, name, bound, requested, limits = case
    text = f"{name} max limit to request ratio per {kind} is {fe.shown_quantity(bound)}"
    request, limit = nano(requested.get(name)), nano(limits.get(name))
    if not request:
        yield f"{text}, but no request is specified or request is 0"
    elif not limit:
        yield f"{text}, but no limit is specified or limit is 0"
    elif limit * quantity.NANO > (nano(bound) or 0) * request:
        yield f"{text}, but provided ratio is {limit / request:f}"


def _larger(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}


def _total(spec: Fields, field: str) -> dict[str, Any]:
    """The requests or limits of a whole pod: containers and sidecars, or an init container."""
    total: dict[str, int] = {}
    largest: dict[str, int] = {}
    sidecars: dict[str, int] = {}

    binary: set[str] = set()  # Resources whose amounts are written with Ki, Mi and so on.

    def added(amounts: dict[str, int], container: Fields) -> dict[str, int]:
        given = fe.mapping(fe.mapping(container, "resources"), field)
        binary.update(name for name, each in given.items() if str(each).endswith("i"))
        return {
            name: amounts.get(name, 0) + (nano(given.get(name)) or 0)
            for name in {**amounts, **given}
        }

    for container in fe.items(spec, "containers"):
        total = added(total, container)
    for container in fe.items(spec, "initContainers"):
        peak = added(sidecars, container)
        if fe.text(container, "restartPolicy") == "Always":
            total, sidecars = added(total, container), peak
        largest = _larger(largest, peak)
    found = _larger(total, largest)
    whole = fe.mapping(fe.mapping(spec, "resources"), field)
    stated = {name: each for name, each in whole.items() if requests.has_pod_level_form(name)}
    return {
        name: quantity.binary_form(quantity.value_of_nano(count))
        if name in binary
        else quantity.from_nano(count)
        for name, count in found.items()
    } | stated
