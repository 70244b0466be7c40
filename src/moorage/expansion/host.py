"""ControllerHost: the controllers of workloads on a cluster that keeps structs.

`moorage.controllers` decides, here and in `serve`; the host queues the tasks that changes trigger,
and performs the writes. Tasks of one instant are performed once, however many changes triggered
them. A task that reads thousands of objects is repeated after a pause, as in `serve`; here the
number of objects counts instead of a stopwatch, so that the same input gives the same result.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from msgspec.structs import replace

from moorage.api import timestamps, workloads
from moorage.api.kinds import KINDS, READ
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.api.policy import ResourceQuota
from moorage.cluster import status_errors
from moorage.cluster.controller_loop import ControllerLoop
from moorage.cluster.objects import validation
from moorage.cluster.status_errors import ForbiddenError
from moorage.cluster.verbs import eviction, update
from moorage.controllers import (
    cron_job,
    deployment,
    disruption_budget,
    objects,
    stateful_set,
    tasks,
)
from moorage.controllers.events import NewEvent
from moorage.controllers.index import Key, StructReader, Task, key_of
from moorage.controllers.objects import Object
from moorage.errors import AdmissionError, InputError
from moorage.expansion import documents, refusals
from moorage.expansion.documents import RESOURCES, Complete, StructBuilder
from moorage.expansion.quotas import Quotas
from moorage.expansion.refusals import Refusal
from moorage.expansion.struct_index import DOCUMENT_KINDS, StructIndex
from moorage.expansion.templates import NameGenerator
from moorage.expansion.triggers import Triggers

T = TypeVar("T", bound=KubeObject)

SCALABLE = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")
# What a controller is taken to need for each object that it reads.
SECONDS_PER_READ = 1e-6


class WritableCluster(StructReader, Protocol):
    """The cluster of a host."""

    def create_object(self, obj: KubeObject) -> KubeObject: ...
    def write(self, obj: T) -> T: ...
    def delete_object(
        self, kind: type[KubeObject], key: str, grace_seconds: int | None
    ) -> None: ...


class ControllerHost:
    """See the module. `now` is the time in objects, in seconds since 1970."""

    def __init__(
        self, cluster: WritableCluster, complete: Complete, now: Callable[[], float]
    ) -> None:
        self.index = StructIndex(cluster)
        self.deleted_pods = 0
        self._cluster = cluster
        self._now = now
        self._builder = StructBuilder(complete)
        self._names = NameGenerator()
        self._uids: set[str] = set()
        self.quotas = Quotas(self._in_namespace, self._retry_refused)
        # Objects of the input that admission refused, by kind, namespace and name.
        self._refused: dict[Key, Refusal] = {}
        self._loop = ControllerLoop(
            self,
            now=now,
            stopwatch=self._cost,
            report_error=_raise,
            index=self.index,
            emits_events=False,
            max_writes=sys.maxsize,
            without=(tasks.QUOTA,),  # `Quotas` follows the usage.
        )
        self.triggers = Triggers(cluster, self.index, self._loop, now)

    # Input

    def take(self, found: Iterable[KubeObject], known: Iterable[Pod]) -> list[KubeObject]:
        """Add the workloads and budgets among some objects; returns the objects to store.

        `known` pods exist. Stored are all objects but those that only controllers read.
        """
        found = list(found)
        kinds = set(map(type, found))  # A dump may have a million objects of few kinds.
        if ResourceQuota in kinds:
            for quota in found:
                if isinstance(quota, ResourceQuota):  # Before the objects that it may refuse.
                    self.quotas.put(quota)
        if not any(kind.__name__ in documents.NAMES for kind in kinds):
            is_stored = all(kind.__name__ in KINDS for kind in kinds)
            return found if is_stored else [obj for obj in found if type(obj).__name__ in KINDS]
        pods = [obj for obj in found if isinstance(obj, Pod)]
        new = documents.of_structs(found, [*known, *pods])
        self.triggers.activate()
        named = iter(documents.completed_pods(pods, new))
        stored = [next(named) if isinstance(obj, Pod) else obj for obj in found]
        uids = self._uids | {objects.uid(each) for each in new}
        given: dict[Key, Object] = {}
        for each in new:
            if self._is_admitted(each):  # One after the other: each counts for the next.
                document = given[key_of(each)] = documents.with_known_owners(each, uids)
                self._add_document(document)
        self._loop.process_changes()
        projected = [
            obj
            for document in given.values()
            if (obj := _projection(document)) is not None
            and self._cluster.get(type(obj), obj.key) is None
        ]
        plain = [obj for obj in stored if not documents.has_document(obj)]
        return [*(obj for obj in plain if type(obj).__name__ in KINDS), *projected]

    def _is_admitted(self, document: Object) -> bool:
        """Whether quotas admit a workload of the input; one that they refuse is recorded."""
        if why := self.quotas.refusal(document):
            namespace, name = objects.namespace(document), objects.name(document)
            text = str(forbidden(document["apiVersion"], document["kind"], name, why))
            pods = refusals.wanted_pods(document)
            self._refused[key_of(document)] = Refusal(document["kind"], namespace, name, pods, text)
        return not why

    def refuse(self, obj: KubeObject, why: str) -> None:
        """Record an object of the input that admission refused."""
        kind, namespace, name = obj.kind, obj.namespace or "default", obj.name
        text = str(forbidden(obj.api_version, kind, name, why))
        pods = int(isinstance(obj, Pod))
        self._refused[kind, namespace, name] = Refusal(kind, namespace, name, pods, text)

    def admitted(self, obj: KubeObject) -> None:
        """Forget that an object was refused before."""
        self._refused.pop((obj.kind, obj.namespace, obj.name), None)

    @property
    def refusals(self) -> list[Refusal]:
        """What admission keeps from being created, at this moment."""
        return [*self._refused.values(), *refusals.of_workloads(self.index)]

    def _in_namespace(self, namespace: str) -> Iterator[KubeObject | Object]:
        """All objects of a namespace."""
        for kind in KINDS.values():
            if kind.namespaced and kind.name not in documents.NAMES:
                every: Iterable[KubeObject] = self._cluster.all(kind.struct)
                yield from (obj for obj in every if obj.namespace == namespace)
        for name in DOCUMENT_KINDS:
            yield from self.index.all(name, namespace)

    def _retry_refused(self, namespace: str) -> None:
        for task in tasks.refused_tasks(namespace, self.index):
            self._loop.trigger(task)

    def _add_document(self, document: Object) -> None:
        if (old := self.index.get(*key_of(document))) is not None:
            kind = RESOURCES[document["apiVersion"], document["kind"]]
            raise status_errors.already_exists(kind, objects.name(old))
        self._uids.add(objects.uid(document))
        meta = {"creationTimestamp": timestamps.to_text(self._now()), **document["metadata"]}
        document = {**document, "metadata": meta}
        self._loop.observe(None, document)
        if self.quotas:
            self.quotas.observe(document)

    def classes_changed(self) -> None:
        """A class or limit range changed that admission of new objects depends on."""
        self._builder.forget()
        self.triggers.classes_changed()

    # Requests of users

    def document(self, kind: str, namespace: str, name: str) -> Object | None:
        """The document of a workload or budget; kinds are written without their group."""
        if kind not in READ or (full := _with_group(kind)) not in DOCUMENT_KINDS:
            return None
        return self.index.get(full, namespace or "default", name)

    def replace(self, obj: KubeObject) -> bool:
        """Apply a newer version of a workload or budget; whether there is one."""
        kind = type(obj).__name__
        old = self.document(kind, obj.namespace, obj.name)
        if old is None:
            return False
        [new] = documents.of_structs([obj], ())[:1]
        resource = RESOURCES[old["apiVersion"], old["kind"]]
        if old["metadata"].get("resourceVersion"):
            documents.forget_digest(new)  # The old one is from a dump, which has none.
        if kind == "Job":
            new["spec"]["selector"] = old["spec"].get("selector", {})
        validation.validate_update(resource, old, new)
        kept = {key: old[key] for key in ("status",) if key in old}
        meta = {
            **{
                key: old["metadata"][key]
                for key in objects.SERVER_METADATA
                if key in old["metadata"]
            },
            **{
                key: value
                for key, value in new["metadata"].items()
                if key not in objects.SERVER_METADATA
            },
            "generation": objects.generation(old),
        }
        if kind == "Deployment" and (number := objects.annotations(old).get(deployment.REVISION)):
            meta["annotations"] = {**meta.get("annotations", {}), deployment.REVISION: number}
        self.update({**new, **kept, "metadata": meta})
        self._loop.process_changes()
        return True

    def scale(self, kind: str, namespace: str, name: str, replicas: int) -> None:
        """Change how many pods a workload has."""
        found = self.document(kind, namespace, name) if kind in SCALABLE else None
        if found is None:
            where = f"{namespace or 'default'}/{name}"
            raise InputError(f"no {kind} {where} to scale; {self._candidates()}")
        if not 0 <= replicas <= workloads.MAX_PODS:
            where = f"{kind} {namespace or 'default'}/{name}"
            rule = f"must be a whole number from 0 to {workloads.MAX_PODS}"
            raise InputError(f"{where}, spec.replicas: {rule}, is {replicas}")
        self.update(objects.with_spec(found, replicas=replicas))
        self._loop.process_changes()

    def remove(self, kind: str, namespace: str, name: str) -> bool:
        """Delete a workload or budget, and then its dependents; whether there was one."""
        found = self.document(kind, namespace, name)
        if found is None:
            return False
        self._drop(found)
        self._loop.process_changes()
        return True

    def charge_eviction(self, pod: Pod) -> None:
        """Count an eviction against the pod's budget; raises TooManyRequestsError."""
        budgets = self.index.all(disruption_budget.KIND, pod.namespace)
        at = timestamps.to_text(self._now())
        charged = eviction.charged_budget(budgets, self.index.view(pod), at) if budgets else None
        if charged is not None:
            self.update(charged)
            self._loop.process_changes()

    def held_back(self) -> dict[str, tuple[str, int]]:
        """StatefulSets with the pod that they wait for, and how many pods come after it."""
        found = {}
        for each in self.index.all(stateful_set.KIND):
            waits = stateful_set.held_back(each, self.index, self._now())
            if waits is not None:
                found[f"{objects.namespace(each)}/{objects.name(each)}"] = waits
        return found

    def _candidates(self) -> str:
        names = sorted(
            f"{kind} {objects.namespace(each)}/{objects.name(each)}"
            for kind in SCALABLE
            for each in self.index.all(_with_group(kind))
        )
        return f"there is {', '.join(names[:5])}" if names else "there is no workload at all"

    # Time

    @property
    def has_work(self) -> bool:
        return self._loop.has_work

    @property
    def is_awaiting(self) -> bool:
        """Whether a workload makes progress by the passing of time, or a CronJob has not run."""
        return self._loop.is_awaiting or any(
            not objects.status(each).get("lastScheduleTime")
            and not objects.spec(each).get("suspend")
            and (times := cron_job.schedule(each)) is not None
            and times.runs
            for each in self.index.all(cron_job.KIND)
        )

    @property
    def deadline(self) -> float | None:
        """When the next task is due."""
        return self._loop.deadline

    def turn(self) -> None:
        """Perform all tasks that are due."""
        self._loop.turn(float("inf"))

    def _cost(self) -> float:
        return self.index.reads * SECONDS_PER_READ

    # The client of the loop

    def create(self, obj: Object) -> Object:
        """Create an object that a controller asks for; raises ForbiddenError."""
        obj = self._named(obj)
        if objects.kind_of(obj) in DOCUMENT_KINDS:
            uid = self._fresh_uid(f"{obj['kind']}/{objects.namespace(obj)}/{objects.name(obj)}")
            meta = {**obj["metadata"], "uid": uid, "generation": 1}
            obj = documents.completed({**obj, "metadata": meta})
            if self.quotas and (why := self.quotas.refusal(obj)):
                raise forbidden(obj["apiVersion"], obj["kind"], objects.name(obj), why)
            self._add_document(obj)
            if obj["kind"] in KINDS:
                self._cluster.create_object(documents.struct_of(_without_status(obj)))
            return obj
        is_pod = obj["kind"] == "Pod"
        try:
            new = self._builder.pod(obj) if is_pod else self._builder.other(obj)
        except AdmissionError as error:
            raise forbidden("v1", obj["kind"], objects.name(obj), error.why) from None
        if self.quotas and (why := self.quotas.refusal(new)):
            raise forbidden(obj["apiVersion"], obj["kind"], new.name, why)
        self._cluster.create_object(new)
        return obj

    def _named(self, obj: Object) -> Object:
        meta = obj["metadata"]
        if meta.get("name"):
            return obj
        owner = objects.controller(obj) or {}
        parent = f"{owner.get('kind')}/{meta.get('namespace')}/{owner.get('name')}"
        struct = READ[obj["kind"]].struct
        while True:
            name = self._names.fresh(parent, meta["generateName"])
            if self._cluster.get(struct, f"{meta.get('namespace')}/{name}") is None:
                break
        kept = {key: value for key, value in meta.items() if key != "generateName"}
        return {**obj, "metadata": {**kept, "name": name}}

    def _fresh_uid(self, name: str) -> str:
        number = 0
        while (uid := documents.uid_of(name, number)) in self._uids:
            number += 1
        return uid

    def update(self, obj: Object) -> None:
        """Replace an object."""
        key = key_of(obj)
        if key[0] in DOCUMENT_KINDS:
            old = self.index.get(*key)
            if old is None:
                raise status_errors.not_found(RESOURCES[obj["apiVersion"], obj["kind"]], key[2])
            new = update.with_generation(old, obj)
            if new == old:
                return
            self._loop.observe(old, new)
            self._project(new)
        elif obj["kind"] == "Pod":
            pod = self.index.pod(objects.uid(obj))
            if pod is not None:
                self._cluster.write(documents.changed_pod(pod, obj))
        else:
            new = documents.struct_of(obj)
            known = self._cluster.get(type(new), new.key)
            # Versions are the cluster's: an object that differs in nothing else is not written.
            if known is not None and replace(new, metadata=known.metadata) != known:
                self._cluster.write(new)

    def _project(self, document: Object) -> None:
        """Write the struct of a document, if a scheduler reads it and it has changed."""
        new = _projection(document)
        old = None if new is None else self._cluster.get(type(new), new.key)
        if new is not None and old is not None:
            meta = replace(old.metadata, labels=new.labels)
            changed = replace(new, api_version=old.api_version, kind=old.kind, metadata=meta)
            if changed != old:
                self._cluster.write(changed)

    def delete(self, obj: Object, grace_seconds: int | None, propagation: str | None) -> None:
        """Delete an object; its dependents are deleted after it."""
        key = key_of(obj)
        if key[0] in DOCUMENT_KINDS:
            self._drop(obj)
            return
        if obj["kind"] == "Pod":
            self.deleted_pods += 1
        namespace, name = key[1:]
        struct = READ[obj["kind"]].struct
        self._cluster.delete_object(
            struct, f"{namespace}/{name}" if namespace else name, grace_seconds
        )

    def _drop(self, document: Object) -> None:
        self._loop.observe(document, None)
        if self.quotas:
            self.quotas.forget(document)
        if document["kind"] in KINDS:
            key = f"{objects.namespace(document)}/{objects.name(document)}"
            if self._cluster.get(KINDS[document["kind"]].struct, key) is not None:
                self._cluster.delete_object(KINDS[document["kind"]].struct, key, None)

    def emit(self, obj: Object, event: NewEvent) -> None:
        """Events of controllers are not recorded."""


def forbidden(api_version: str, kind: str, name: str, why: str) -> ForbiddenError:
    """The answer of an API server to an object that admission refuses."""
    return status_errors.forbidden(RESOURCES[api_version, kind], name, why)


def _with_group(kind: str) -> str:
    known = READ[kind]
    return f"{known.group}/{kind}" if known.group else kind


def _without_status(document: Object) -> Object:
    return {key: value for key, value in document.items() if key != "status"}


def _projection(document: Object) -> KubeObject | None:
    """The struct of a document, if a scheduler reads its kind."""
    if document["kind"] not in KINDS:
        return None
    shown = document if document["kind"] == "PodDisruptionBudget" else _without_status(document)
    found: KubeObject = documents.struct_of(shown)
    return found


def _raise(task: Task, error: Exception) -> None:
    raise error
