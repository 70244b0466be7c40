"""Reads a scenario file into a plan. Every error names the field.

The file has one document of `kind: Scenario`; all others are objects that exist at the start.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from moorage.api import manifests, selectors
from moorage.api.config import durations
from moorage.api.manifests import strict
from moorage.api.manifests.reading import SCENARIO
from moorage.api.meta import KubeObject, ObjectMeta
from moorage.api.node import NodePool, NodePoolSpec
from moorage.api.pod import Pod
from moorage.api.validation import guards, pods
from moorage.errors import ManifestError
from moorage.expansion import node_defaults
from moorage.scenarios.plan import (
    Action,
    AddNodes,
    ApplyObjects,
    ArrivalStream,
    CreateObjects,
    DrainNodes,
    Exponential,
    FailNodes,
    Fixed,
    Lifetime,
    PlannedEvent,
    ScenarioPlan,
    Uniform,
)
from moorage.scenarios.wire import (
    AddNodesSpec,
    ArrivalsSpec,
    Duration,
    EventSpec,
    LifetimeSpec,
    NodesSpec,
    Scenario,
)

API_VERSION, KIND = SCENARIO
# More of them take days, and more memory than a machine has.
MOST_ARRIVALS = 10_000_000
MOST_SAMPLES = 1_000_000
MOST_HOURS = 100 * 8760  # Dates end with the year 9999.
DISTRIBUTIONS = ("poisson", "constant")
# The names of actions in a file, and their fields in EventSpec.
ACTIONS = {name: name for name in ("scale", "drain", "fail", "addNodes", "create", "apply")}
ACTIONS |= {"addNodes": "add_nodes", "delete": "delete"}


def load(path: str | Path, validate: manifests.Validate = "ignore") -> ScenarioPlan:
    """The plan of a scenario file; `-` is standard input.

    With `strict`, unknown, duplicate and missing fields of Kubernetes' types are refused, as
    Moorage's own always are; with `warn` they are the plan's warnings.
    """
    suspects: list[str] = []
    documents = manifests.documents(path, suspects.append)
    scenarios = [(where, each) for where, each in documents if _is_scenario(each)]
    if len(scenarios) != 1:
        number = "none" if not scenarios else str(len(scenarios))
        raise ManifestError(
            f"{path}: one document with kind: {KIND} and apiVersion: {API_VERSION} is expected, "
            f"there is {number}" + ("" if not scenarios else " of them")
        )
    others = [(origin, each) for origin, each in documents if not _is_scenario(each)]
    [(where, document)] = scenarios
    if validate != "ignore":
        suspects += [
            f"{origin}, {path}: {problem}"
            for origin, each in documents
            for path, problem in _field_errors(each)
        ]
        if suspects and validate == "strict":
            raise ManifestError(*suspects)
    note = node_defaults.complete_documents(others)
    objects = manifests.read([each for _, each in others], [origin for origin, _ in others])
    found = plan(document, objects, where)
    warnings = tuple(suspects) if validate == "warn" else ()
    return replace(found, warnings=warnings + found.warnings, notes=(note,) if note else ())


def _field_errors(document: Any) -> Iterator[manifests.Problem]:
    """Unknown and missing fields, also in the templates and objects of a scenario."""
    yield from strict.document_errors(document)
    if not _is_scenario(document):
        return
    spec = document.get("spec")
    for i, each in _mappings(spec, "arrivals"):
        template, path = each.get("template"), f"spec.arrivals[{i}].template"
        yield from strict.field_errors("PodTemplateSpec", template, path)
        if isinstance(template, Mapping):
            for error in pods.template(template, path):
                yield error.field, error.message
    for i, each in _mappings(spec, "events"):
        for verb in ("create", "apply"):
            for j, created in _mappings(each, verb):
                for path, problem in strict.document_errors(created):
                    yield f"spec.events[{i}].{verb}[{j}].{path}", problem


def _mappings(holder: Any, name: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The mappings in a list of a document that is not decoded yet."""
    listed = holder.get(name) if isinstance(holder, Mapping) else None
    for i, each in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(each, Mapping):
            yield i, each


def plan(
    document: Mapping[str, Any],
    objects: list[Any] | manifests.Manifest | None = None,
    where: str = "scenario",
) -> ScenarioPlan:
    """The plan of a scenario given as a dict, and the objects that exist at the start."""
    scenario = manifests.decode(document, Scenario, where)
    read = manifests.read(objects or ())
    made = _Reader(where, scenario).plan(read.everything)
    return replace(made, unread_workloads=tuple(read.unread_workloads))


def _is_scenario(document: object) -> bool:
    return isinstance(document, Mapping) and document.get("kind") == KIND


class _Reader:
    """Reads one scenario; knows its position in the file, for errors."""

    def __init__(self, where: str, scenario: Scenario) -> None:
        name = scenario.name
        self._where = f"{where}, {KIND} {name}" if name else f"{where}, {KIND}"
        if scenario.api_version != API_VERSION:
            raise self._error("apiVersion", f'must be {API_VERSION}, is "{scenario.api_version}"')
        self._name = name or "scenario"
        self._spec = scenario.spec
        self._duration = self._seconds("spec.duration", scenario.spec.duration)
        if not self._duration:
            raise self._error("spec.duration", "must be longer than nothing")
        if self._duration > MOST_HOURS * 3600:
            rule = f"must be at most {MOST_HOURS}h"
            found = manifests.shown(scenario.spec.duration)
            raise self._error("spec.duration", f"{rule}, which are 100 years, is {found}")
        self._pools: dict[str, NodePool] = {}
        self._warnings: list[str] = []

    def plan(self, objects: list[KubeObject]) -> ScenarioPlan:
        spec = self._spec
        self._pools = {obj.name: obj for obj in objects if isinstance(obj, NodePool)}
        sample = None if spec.sample is None else self._seconds("spec.sample", spec.sample)
        if sample is not None and sample * MOST_SAMPLES < self._duration:
            rule = f"spec.duration must have at most {MOST_SAMPLES:,} samples"
            raise self._error("spec.sample", f"{rule}, is {manifests.shown(spec.sample)}")
        return ScenarioPlan(
            name=self._name,
            duration=self._duration,
            seed=spec.seed,
            streams=self._streams(),
            events=tuple(
                self._event(f"spec.events[{i}]", event) for i, event in enumerate(spec.events)
            ),
            objects=tuple(objects),
            sample_seconds=sample,
            warnings=tuple(self._warnings),
        )

    # Arrivals

    def _streams(self) -> tuple[ArrivalStream, ...]:
        found: dict[str, ArrivalStream] = {}
        for i, spec in enumerate(self._spec.arrivals):
            path = f"spec.arrivals[{i}]"
            if spec.name in found:
                raise self._error(f"{path}.name", f'"{spec.name}" is taken by another')
            found[spec.name] = self._stream(path, spec)
        return tuple(found.values())

    def _stream(self, path: str, spec: ArrivalsSpec) -> ArrivalStream:
        if (spec.rate is None) == (spec.at is None):
            raise self._error(path, "needs either a rate or times (`at`)")
        if spec.rate and spec.rate.distribution not in DISTRIBUTIONS:
            rule = f"must be {' or '.join(DISTRIBUTIONS)}"
            found = manifests.shown(spec.rate.distribution)
            raise self._error(f"{path}.rate.distribution", f"{rule}, is {found}")
        start = self._seconds(f"{path}.start", spec.start)
        end = self._duration if spec.end is None else self._seconds(f"{path}.end", spec.end)
        if end < start and spec.end is None:
            raise self._error(f"{path}.start", "lies after spec.duration")
        if end < start:
            raise self._error(f"{path}.end", "lies before the start")
        end = min(end, self._duration)
        times = [self._seconds(f"{path}.at[{i}]", at) for i, at in enumerate(spec.at or ())]
        for i, at in enumerate(times):
            self._warn_if_late(f"{path}.at[{i}]", at)
        per_hour = spec.rate.per_hour if spec.rate else 0.0
        expected = spec.count * (len(times) + per_hour * (end - start) / 3600)
        if not expected <= MOST_ARRIVALS:
            rule = f"at most {MOST_ARRIVALS:,} pods may arrive, these would be {expected:.3g}"
            raise self._error(path, rule)
        return ArrivalStream(
            name=spec.name,
            pod=self._pod(path, spec),
            start=start,
            end=end,
            count=spec.count,
            replace=spec.replace,
            lifetime=self._lifetime(f"{path}.lifetime", spec.lifetime),
            times=tuple(sorted(times)),
            per_hour=per_hour,
            poisson=bool(spec.rate and spec.rate.distribution == "poisson"),
            gang=spec.gang,
        )

    def _pod(self, path: str, spec: ArrivalsSpec) -> Pod:
        meta = spec.template.metadata
        made = ObjectMeta(
            name=spec.name,
            namespace=meta.namespace,
            labels=meta.labels,
            annotations=meta.annotations,
        )
        pod = Pod(api_version="v1", kind="Pod", metadata=made, spec=spec.template.spec)
        if fault := guards.field_error(pod):
            raise self._error(f"{path}.template.{fault.field}", fault.message)
        return pod

    def _lifetime(self, path: str, spec: LifetimeSpec | None) -> Lifetime | None:
        if spec is None:
            return None
        given = [n for n in ("fixed", "exponential", "uniform") if getattr(spec, n) is not None]
        if len(given) != 1:
            raise self._error(path, "needs one of fixed, exponential and uniform")
        if spec.fixed is not None:
            return Fixed(self._seconds(f"{path}.fixed", spec.fixed))
        if spec.exponential is not None:
            return Exponential(self._seconds(f"{path}.exponential", spec.exponential))
        assert spec.uniform is not None
        least, most = (
            self._seconds(f"{path}.uniform[{i}]", bound) for i, bound in enumerate(spec.uniform)
        )
        if most < least:
            raise self._error(f"{path}.uniform", "the second bound lies below the first")
        return Uniform(least, most)

    # Events

    def _event(self, path: str, spec: EventSpec) -> PlannedEvent:
        at = self._seconds(f"{path}.at", spec.at)
        self._warn_if_late(f"{path}.at", at)
        given = [name for name, field in ACTIONS.items() if getattr(spec, field) is not None]
        if len(given) != 1:
            raise self._error(path, f"needs one of {', '.join(ACTIONS)}")
        path = f"{path}.{given[0]}"
        return PlannedEvent(at, f"{self._where}, {path}", self._action(path, spec))

    def _action(self, path: str, spec: EventSpec) -> Action:
        if spec.drain is not None:
            return DrainNodes(**self._nodes(path, spec.drain))
        if spec.fail is not None:
            return FailNodes(**self._nodes(path, spec.fail))
        if spec.add_nodes is not None:
            return AddNodes(self._pool(path, spec.add_nodes))
        documents = spec.apply if spec.create is None else spec.create
        if documents is not None:
            where = f"{self._where}, {path}"
            manifests.read(documents, [f"{where}[{i}]" for i in range(len(documents))])
            node_defaults.complete_documents((path, each) for each in documents)
            return CreateObjects(documents) if spec.apply is None else ApplyObjects(documents)
        action = spec.scale or spec.delete
        assert action is not None
        return action

    def _nodes(self, path: str, spec: NodesSpec) -> dict[str, Any]:
        """The fields of a NodeAction."""
        if spec.nodes is None and spec.selector is None and spec.count is None:
            raise self._error(path, "needs nodes, a selector or a count")
        if spec.nodes is not None and spec.selector is not None:
            raise self._error(path, "takes nodes or a selector, not both")
        selector = None
        if spec.selector is not None:
            try:
                selector = selectors.parse_label_selector(spec.selector)
            except selectors.SelectorError as error:
                raise self._error(f"{path}.selector", str(error)) from None
        seconds = None if spec.for_ is None else self._seconds(f"{path}.for", spec.for_)
        return {"names": spec.nodes, "selector": selector, "count": spec.count, "seconds": seconds}

    def _pool(self, path: str, spec: AddNodesSpec) -> NodePool:
        known = self._pools.get(spec.pool)
        template = spec.template or (known.spec.template if known else None)
        if template is None:
            raise self._error(
                f"{path}.template", f'is missing: no NodePool "{spec.pool}" is there to follow'
            )
        zones = spec.zones or (known.spec.zones if known else ())
        devices = spec.devices or (known.spec.devices if known else ())
        pool = NodePool(
            api_version=API_VERSION,
            kind="NodePool",
            metadata=ObjectMeta(name=spec.pool),
            spec=NodePoolSpec(count=spec.count, template=template, zones=zones, devices=devices),
        )
        if fault := guards.field_error(pool):
            raise self._error(f"{path}.{fault.field.removeprefix('spec.')}", fault.message)
        self._pools.setdefault(spec.pool, pool)
        return pool

    def _seconds(self, path: str, duration: Duration) -> float:
        problem = f"must be a duration such as 90s, 30m or 24h, is {manifests.shown(duration)}"
        if isinstance(duration, str):
            try:
                seconds = durations.parse(duration)
            except ValueError:
                raise self._error(path, problem) from None
        else:
            seconds = float(duration)
        if not 0 <= seconds < math.inf:
            raise self._error(path, problem)
        return seconds

    def _warn_if_late(self, path: str, at: float) -> None:
        if at > self._duration:
            text = "lies after spec.duration, so it does not happen"
            self._warnings.append(f"{self._where}, {path}: {text}")

    def _error(self, path: str, problem: str) -> ManifestError:
        return ManifestError(f"{self._where}, {path}: {problem}")
