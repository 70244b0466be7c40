"""Warnings about input that Moorage does not fully apply, so that a wrong answer is not silent."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from moorage.api import cron, texts, workloads
from moorage.api.admission import SYSTEM_PRIORITIES
from moorage.api.kinds import READ
from moorage.api.pod import Pod, PodSpec
from moorage.api.policy import PriorityClass, ResourceQuota, RuntimeClass
from moorage.api.workloads import CronJob, PodTemplateSpec

if TYPE_CHECKING:
    from moorage.api.config import SchedulerConfiguration
    from moorage.api.manifests import Manifest
    from moorage.api.manifests.unread_workloads import UnreadWorkload
    from moorage.api.meta import KubeObject

# What the objects of a kind would change, if they were applied.
NOT_APPLIED = {
    "HorizontalPodAutoscaler": "workloads keep spec.replicas, also if that is below minReplicas",
}


# Limits of a quota on objects, or fields of objects, that are not read.
NOT_KEPT = ("configmaps", "secrets", "services.nodeports", "services.loadbalancers")


def not_applied(manifest: "Manifest") -> Iterator[str]:
    """Kinds that change pods at admission, or how many there are; stored pods have been changed."""
    found = [(name.rpartition(" ")[2], count) for name, count in sorted(manifest.skipped.items())]
    found = [(kind, count) for kind, count in found if kind in NOT_APPLIED and kind not in READ]
    makers = (obj for obj in manifest.everything if isinstance(obj, Pod) or _template(obj))
    if not found or all(obj.uid for obj in makers):
        return
    for kind, count in found:
        yield f"{kind} ({texts.count(count, 'object')}) is not applied: {NOT_APPLIED[kind]}"


def not_called(config: "SchedulerConfiguration") -> Iterator[str]:
    """Extenders, which only `moorage run` calls."""
    if config.extenders:
        urls = ", ".join(each.url_prefix for each in config.extenders)
        extenders = texts.count(len(config.extenders), "extender", "are")
        yield f"{extenders} not called: {urls}; only `run` calls those of its configuration"


def without_children(
    unread: "Iterable[UnreadWorkload]", objects: "Iterable[KubeObject]"
) -> "list[UnreadWorkload]":
    """Workloads of kinds that are not read, except those whose pods, or sets, are in the input."""
    owners = {
        (owner.kind, obj.namespace or "default", owner.name)
        for obj in objects
        if (owner := obj.controller) is not None
    }
    return [each for each in unread if (each.kind, each.namespace, each.name) not in owners]


def without_pods(unread: "Iterable[UnreadWorkload]") -> Iterator[str]:
    """A line per kind whose objects make pods that the answer does not have."""
    by_kind: dict[tuple[str, str], list[UnreadWorkload]] = {}
    for each in unread:
        by_kind.setdefault((each.kind, each.api_version), []).append(each)
    for (kind, version), found in by_kind.items():
        names = [
            f"{each.namespace}/{each.name}"
            + ("" if each.pods is None else f" ({texts.count(each.pods, 'pod')})")
            for each in found
        ]
        yield f"{kind} ({version}) is not read, so its pods are missing: {texts.listed(names, 120)}"


def not_counted(manifest: "Manifest") -> Iterator[str]:
    """Limits of quotas on objects that are not kept, so that none of them is ever refused."""
    kept = {
        f"count/{kind.plural}.{kind.group}" if kind.group else f"count/{kind.plural}"
        for kind in READ.values()
    }
    if ResourceQuota not in map(type, manifest.objects):
        return
    for obj in manifest.objects:
        if isinstance(obj, ResourceQuota):
            names = [
                name
                for name in obj.spec.get("hard") or {}
                if name in NOT_KEPT or (name.startswith("count/") and name not in kept)
            ]
            if names:
                limits = texts.count(len(names), "limit")
                yield f"{manifest.location(obj)}: {limits} not applied: {', '.join(sorted(names))}"


def never_run(manifest: "Manifest") -> Iterator[str]:
    """CronJobs whose schedule names no day of the calendar; an API server accepts them."""
    for obj in manifest.workloads:
        if isinstance(obj, CronJob):
            try:
                schedule = cron.parse(obj.spec.schedule)
            except ValueError:
                continue
            if schedule is not None and not schedule.names_a_day:
                text = f'"{obj.spec.schedule}" names no day of the calendar, so it never runs'
                yield f"{manifest.location(obj)}, spec.schedule: {text}"


def assume_priorities(manifest: "Manifest", known: "Iterable[KubeObject]" = ()) -> None:
    """Give priority 0 to pods of classes that are not among the objects, and warn.

    An API server would refuse these pods; refusing the whole input answers nothing.
    """
    classes = _names(manifest.objects, PriorityClass) | _names(known, PriorityClass)
    classes |= SYSTEM_PRIORITIES.keys()
    missing: dict[str, list[str]] = {}
    for objects in (manifest.objects, manifest.workloads):
        for index, obj in enumerate(objects):
            spec = obj.spec if isinstance(obj, Pod) else _pod_spec(obj)
            if spec is not None and spec.priority is None and spec.priority_class_name:
                name = spec.priority_class_name
                if name not in classes:
                    missing.setdefault(name, []).append(manifest.location(obj))
                    objects[index] = _with_spec(obj, replace(spec, priority=0))
    for name, places in missing.items():
        more = f" and {len(places) - 1:,} more" if len(places) > 1 else ""
        manifest.warnings.append(
            f'{places[0]}{more}: no PriorityClass "{name}" is among the objects, so an API server '
            "would refuse the pods; priority 0 is assumed"
        )


def unknown_runtime_classes(manifest: "Manifest") -> Iterator[str]:
    """Runtime classes of new pods that are not among the objects."""
    known = _names(manifest.objects, RuntimeClass)
    missing: dict[str, list[str]] = {}
    for obj in manifest.everything:
        if obj.metadata.uid:  # An API server has admitted it.
            continue
        spec = _pod_spec(obj)
        if spec is not None and spec.runtime_class_name not in ("", *known):
            missing.setdefault(spec.runtime_class_name, []).append(manifest.location(obj))
    for name, places in missing.items():
        more = f" and {len(places) - 1:,} more" if len(places) > 1 else ""
        yield (
            f'{places[0]}{more}: no RuntimeClass "{name}" is among the objects, so an API server '
            "would refuse the pods; no overhead and no node selector are assumed"
        )


def _names(objects: "Iterable[KubeObject]", kind: "type[KubeObject]") -> set[str]:
    """The names of objects of a kind that a cluster has few of, or none."""
    objects = list(objects)
    if kind not in map(type, objects):  # Quickly: there may be a million pods.
        return set()
    return {obj.name for obj in objects if isinstance(obj, kind)}


def _template(obj: "KubeObject") -> PodTemplateSpec | None:
    found = workloads.pod_template(obj)
    return None if found is None else found[1]


def _pod_spec(obj: "KubeObject") -> PodSpec | None:
    if isinstance(obj, Pod):
        return obj.spec
    template = _template(obj)
    return None if template is None else template.spec


def _with_spec(obj: "KubeObject", spec: PodSpec) -> "KubeObject":
    if isinstance(obj, Pod):
        return replace(obj, spec=spec)
    template = _template(obj)
    assert template is not None
    template = replace(template, spec=spec)
    if isinstance(obj, CronJob):
        job = obj.spec.job_template
        assert job is not None
        job = replace(job, spec=replace(job.spec, template=template))
        return replace(obj, spec=replace(obj.spec, job_template=job))
    owner: KubeObject = obj
    return replace(owner, spec=replace(owner.spec, template=template))  # type: ignore[attr-defined]  # every other workload has one
