"""Documents: workloads as the dicts that controllers read, and the structs of what they create.

A manifest may lack what an API server or a controller would have set, and a dump may lack objects.
`Documents` completes them: UIDs, defaults, selectors, and the ReplicaSets and ControllerRevisions
of which only the pods are given.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from moorage.api import defaults, timestamps
from moorage.api.kinds import READ
from moorage.api.meta import KubeObject, ObjectMeta, OwnerReference
from moorage.api.pod import Pod, PodSpec, PodStatus
from moorage.cluster.objects import defaults as server_defaults
from moorage.cluster.resources import BUILT_IN, Resource
from moorage.controllers import daemon_set, deployment, job, objects, revisions, stateful_set
from moorage.controllers.objects import Object
from moorage.errors import ManifestError
from moorage.expansion.struct_index import DOCUMENT_KINDS

OwnerKey = tuple[str, str, str]  # kind without group, namespace, name
RESOURCES: dict[tuple[str, str], Resource] = {
    (resource.api_version, resource.kind): resource for resource in BUILT_IN
}
SELECTING = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")
# Labels of pods that their controllers set, so they cannot tell whose pods they are.
CONTROLLER_LABELS = (daemon_set.REVISION_LABEL, daemon_set.GENERATION_LABEL)
# Times that deadlines and runs are counted from: from the start of virtual time, which does not
# continue the time of a dump.
PAST = ("startTime", "lastScheduleTime")
# Labels of ControllerRevisions with the hash of their template.
HASH_LABELS = {"DaemonSet": daemon_set.REVISION_LABEL, "StatefulSet": stateful_set.HASH_LABEL}
NAMES = tuple(kind.rpartition("/")[2] for kind in DOCUMENT_KINDS)


def has_document(obj: KubeObject) -> bool:
    """Whether controllers read the object as a document."""
    return type(obj).__name__ in NAMES


def of_structs(found: Iterable[KubeObject], pods: Iterable[Pod]) -> list[Object]:
    """The documents of the workloads and budgets among these objects, owners first."""
    found = [obj for obj in found if has_document(obj)]
    if not found:
        return []
    children = _children(pods)
    owned = {_owner_key(obj): owner.uid for obj in found if (owner := obj.controller) is not None}
    documents = [_document(obj, children, owned) for obj in found]
    known = {objects.uid(each) for each in documents}
    for each in list(documents):
        if objects.kind_of(each) == deployment.KIND:
            documents += _missing_sets(each, children, known)
        elif own := children.get(_key(each)):
            documents += _missing_revision(each, own)
    return documents


def completed_pods(pods: Iterable[Pod], documents: Iterable[Object]) -> list[Pod]:
    """The pods with the UIDs of their owners, where a manifest has only names, and revisions."""
    documents = list(documents)
    uids = {_key(each): objects.uid(each) for each in documents}
    latest = {
        owner["uid"]: _pod_label(each, owner["kind"])
        for each in documents
        if objects.kind_of(each) == revisions.KIND and (owner := objects.controller(each))
    }
    return [_with_revision(_with_owner_uid(pod, uids), latest) for pod in pods]


def _with_revision(pod: Pod, latest: Mapping[str, str]) -> Pod:
    """The pod with the label of its revision: controllers replace pods without it."""
    owner = pod.controller
    if owner is None or owner.uid not in latest or daemon_set.REVISION_LABEL in pod.labels:
        return pod
    labels = {**pod.labels, daemon_set.REVISION_LABEL: latest[owner.uid]}
    return replace(pod, metadata=replace(pod.metadata, labels=labels))


def _with_owner_uid(pod: Pod, uids: Mapping[OwnerKey, str]) -> Pod:
    owner = pod.controller
    if owner is None or owner.uid:
        return pod
    uid = uids.get((owner.kind, pod.namespace or "default", owner.name))
    if uid is None:
        return pod
    references = tuple(
        replace(each, uid=uid) if each is owner else each for each in pod.metadata.owner_references
    )
    return replace(pod, metadata=replace(pod.metadata, owner_references=references))


def with_known_owners(document: Object, uids: Container[str]) -> Object:
    """The document without owners that are not part of the input: they have not been deleted."""
    owners = objects.owners(document)
    known = [each for each in owners if each.get("uid") in uids]
    return document if known == owners else objects.with_metadata(document, ownerReferences=known)


def _key(document: Object) -> OwnerKey:
    return document["kind"], objects.namespace(document), objects.name(document)


def _children(pods: Iterable[Pod]) -> dict[OwnerKey, list[Pod]]:
    found: dict[OwnerKey, list[Pod]] = {}
    for pod in pods:
        owner = pod.controller
        if owner is not None and owner.kind in NAMES:
            found.setdefault(_owner_key(pod), []).append(pod)
    return found


def _owner_key(obj: KubeObject) -> OwnerKey:
    owner = _owner(obj)
    return owner.kind, obj.namespace or "default", owner.name


def _document(
    obj: KubeObject, children: Mapping[OwnerKey, Sequence[Pod]], owned: Mapping[OwnerKey, str]
) -> Object:
    kind = READ[type(obj).__name__]
    key = (kind.name, obj.namespace or "default", obj.name)
    own = children.get(key, ())
    if not obj.uid and (uid := next((_owner(pod).uid for pod in own), owned.get(key, ""))):
        # A manifest has no UID, but pods from a dump refer to one.
        obj = replace(obj, metadata=replace(obj.metadata, uid=uid))
    document: Object = objects.plain(defaults.identity(obj))
    document.setdefault("spec", {})
    document["metadata"].setdefault("generation", 1)
    _check(obj, document)
    if own or key in owned:
        # Sets of a dump do not have the digest, and are not to be replaced because of that.
        forget_digest(document)
    if given := {field for field in PAST if objects.status(document).get(field)}:
        start = timestamps.to_text(timestamps.EPOCH_SECONDS)
        document["status"] = {**document["status"], **dict.fromkeys(given, start)}
    if kind.name == "Job":
        _complete_job(document, own)
    labels = (objects.template(document).get("metadata") or {}).get("labels") or {}
    if kind.name in SELECTING:
        # Without labels pods belong to the workload by reference alone.
        telling = {key: value for key, value in labels.items() if key not in CONTROLLER_LABELS}
        document["spec"].setdefault("selector", {"matchLabels": telling} if telling else {})
    if kind.name in (*SELECTING, "ReplicationController"):
        _check_selector(document, labels)
    server_defaults.fill(RESOURCES[kind.api_version, kind.name], document)
    return document


DIGEST = "unreadDigest"


def forget_digest(document: Object) -> None:
    """Leave fields that are not read out of comparisons of the template."""
    objects.template(document).pop(DIGEST, None)


def without_digest(document: Object) -> Object:
    """A workload as an API server would show it."""
    template = objects.template(document)
    if DIGEST not in template:
        return document
    kept = {key: value for key, value in template.items() if key != DIGEST}
    return objects.with_spec(document, template=kept)


def completed(document: Object) -> Object:
    """A document that a controller creates, as an API server would store it."""
    if document["kind"] != "Job":
        return document
    document = objects.plain(document)
    _complete_job(document, ())
    server_defaults.fill(RESOURCES[document["apiVersion"], document["kind"]], document)
    return document


def _owner(obj: KubeObject) -> OwnerReference:
    owner = obj.controller
    assert owner is not None, "a child has an owner"
    return owner


def _complete_job(document: Object, own: Sequence[Pod]) -> None:
    # Its pods belong to it by reference alone: they may lack the label of a generated selector.
    document["spec"].setdefault("selector", {})
    if not objects.status(document):
        # Pods without the finalizer of the controller are counted already.
        counted = [pod for pod in own if job.FINALIZER not in pod.metadata.finalizers]
        phases = [pod.status.phase for pod in counted]
        ended = {"succeeded": phases.count("Succeeded"), "failed": phases.count("Failed")}
        document["status"] = {key: count for key, count in ended.items() if count}


def _check(obj: KubeObject, document: Object) -> None:
    """Refuse a workload without a template, except where that only means that it has no pods."""
    spec, kind = document["spec"], type(obj).__name__
    problem = ""
    match kind:
        case "Deployment" | "DaemonSet" | "Job" if "template" not in spec:
            problem = "spec.template: is missing"
        case "CronJob" if "jobTemplate" not in spec:
            problem = "spec.jobTemplate: is missing"
        case "CronJob" if "template" not in (spec["jobTemplate"].get("spec") or {}):
            problem = "spec.jobTemplate.spec.template: is missing"
        case "Job" if spec.get("completionMode") == "Indexed" and "completions" not in spec:
            problem = "spec.completions: is missing; an Indexed job needs it"
    if problem:
        raise ManifestError(f"{kind} {obj.namespace or 'default'}/{obj.name}, {problem}")


def _check_selector(document: Object, labels: Mapping[str, str]) -> None:
    """Refuse a selector that does not match the workload's own pods."""
    if "template" in document["spec"] and not objects.selector(document).matches(labels):
        where = f"{document['kind']} {objects.namespace(document)}/{objects.name(document)}"
        problem = "`selector` does not match template `labels`"
        raise ManifestError(f"{where}, spec.template.metadata.labels: {problem}")


def _missing_sets(
    owner: Object, children: Mapping[OwnerKey, Sequence[Pod]], known: set[str]
) -> list[Object]:
    """The ReplicaSets of a Deployment that a dump left out, as their pods show them."""
    selector = objects.selector(owner)
    made = []
    for (kind, namespace, name), pods in children.items():
        uid = _owner(pods[0]).uid
        if kind != "ReplicaSet" or uid in known or namespace != objects.namespace(owner):
            continue
        if name.rpartition("-")[0] != objects.name(owner):
            continue
        live = [pod for pod in pods if not pod.is_terminal and not pod.is_terminating]
        if not live or not selector.matches(pods[0].labels):
            continue
        template = objects.template(owner)
        meta = template.get("metadata") or {}
        given = pods[0].labels.get(deployment.HASH_LABEL)
        hashed = {} if given is None else {deployment.HASH_LABEL: given}
        labels = {**(meta.get("labels") or {}), **hashed}
        selected = objects.spec(owner)["selector"]
        match_labels = {**(selected.get("matchLabels") or {}), **hashed}
        made.append(
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {
                    "name": name,
                    "namespace": namespace,
                    "uid": uid,
                    "generation": 1,
                    "labels": labels,
                    "ownerReferences": [objects.controller_reference(owner)],
                },
                "spec": {
                    "replicas": len(live),
                    "selector": {**selected, "matchLabels": match_labels},
                    "template": {**template, "metadata": {**meta, "labels": labels}},
                },
            }
        )
    return made


def _missing_revision(owner: Object, own: Sequence[Pod]) -> list[Object]:
    """The latest revision of a workload, under the label that its pods have.

    The label is a hash that depends on the program that computed it. Under another label, the
    controller would replace all pods.
    """
    if owner["kind"] not in HASH_LABELS:
        return []
    labels = Counter(
        (_template_generation(pod), label)
        for pod in own
        if not pod.is_terminal and (label := pod.labels.get(daemon_set.REVISION_LABEL))
    )
    updated = objects.status(owner).get("updateRevision")
    # A rollout is in progress if there are several.
    newest = max(labels, key=lambda each: (each[1] == updated, each[0], labels[each]), default=None)
    label = newest[1] if newest is not None else ""
    hashed = label.removeprefix(f"{objects.name(owner)}-")
    made = revisions.of_template(owner, HASH_LABELS[owner["kind"]], 1, hashed)
    name = label if label and owner["kind"] == "StatefulSet" else objects.name(made)
    uid = defaults.uid_of(f"ControllerRevision/{objects.namespace(owner)}/{name}")
    return [objects.with_metadata(made, name=name, uid=uid, generation=1)]


def _template_generation(pod: Pod) -> int:
    given = pod.labels.get(daemon_set.GENERATION_LABEL, "")
    return int(given) if given.isdecimal() else 0


def _pod_label(revision: Object, kind: str) -> str:
    """The label of the pods of a revision: of a StatefulSet its name, else its hash."""
    by_name = kind == "StatefulSet"
    return objects.name(revision) if by_name else revisions.hash_of(revision, HASH_LABELS[kind])


# What controllers create -----------------------------------------------------------------------

Complete = Callable[[KubeObject], KubeObject]


class StructBuilder:
    """Structs of the objects that controllers create; pods of one template share their spec."""

    def __init__(self, complete: Complete) -> None:
        self._complete = complete
        # By the identity of the template's spec; the spec is kept, so that it stays the same one.
        self._specs: dict[int, tuple[Object, PodSpec, ObjectMeta]] = {}

    def forget(self) -> None:
        """Drop what depends on the objects that defaults are taken from."""
        self._specs.clear()

    def pod(self, document: Object) -> Pod:
        """A new pod, complete."""
        meta = msgspec.convert(document["metadata"], ObjectMeta)
        spec = document["spec"]
        known = self._specs.get(id(spec))
        if known is not None and known[0] is spec:
            meta = _sharing(meta, known[2])
            return Pod(api_version="v1", kind="Pod", metadata=meta, spec=known[1])
        new = Pod(api_version="v1", kind="Pod", metadata=meta, spec=msgspec.convert(spec, PodSpec))
        completed = self._complete(new)
        assert isinstance(completed, Pod)
        if not _reads_labels(completed.spec):
            self._specs[id(spec)] = (spec, completed.spec, meta)
        return replace(completed, metadata=meta)

    def other(self, document: Object) -> KubeObject:
        """An object of another kind, complete."""
        return self._complete(struct_of(document))


def _sharing(meta: ObjectMeta, first: ObjectMeta) -> ObjectMeta:
    """The metadata, with the same dicts as the first pod's: the scheduler compares by identity."""
    alike = (
        meta.labels == first.labels
        and meta.annotations == first.annotations
        and meta.owner_references == first.owner_references
        and meta.finalizers == first.finalizers
    )
    return replace(first, name=meta.name) if alike else meta


def _reads_labels(spec: PodSpec) -> bool:
    """Whether defaults of the spec depend on the labels of the pod."""
    affinity = spec.affinity
    return bool(spec.topology_spread_constraints) or (
        affinity is not None
        and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)
    )


def uid_of(name: str, number: int) -> str:
    """A UID that depends on a name, and on how often the name was used before."""
    return defaults.uid_of(f"{name}#{number}" if number else name)


def struct_of(document: Object) -> Any:
    """The document as the struct of its kind."""
    kind = READ[document["kind"]]
    return msgspec.convert(document, kind.struct)


def changed_pod(pod: Pod, document: Object) -> Pod:
    """The pod with the metadata and status of a document; a controller changes nothing else."""
    return replace(
        pod,
        metadata=msgspec.convert(document["metadata"], ObjectMeta),
        status=msgspec.convert(document.get("status") or {}, PodStatus),
    )
