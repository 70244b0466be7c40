"""Protobuf bodies, decoded but never encoded: kubectl's typed commands send nothing else.

`_TEXT` lists the field numbers of Kubernetes' messages for the kinds that clients send: one line
per message, `number name type` separated by commas. `*` marks the kinds that a body may have,
`[T]` is a list, `{T}` a map with string keys. A field that is not listed raises
UnsupportedMediaTypeError instead of being dropped: half an object is worse than none. Only
unlisted fields of a status are skipped: no client creates objects with one.
"""

import base64
import re
from collections.abc import Iterator
from typing import Any

from moorage.api import timestamps
from moorage.cluster.status_errors import BadRequestError, UnsupportedMediaTypeError

_TEXT = """
Unknown: 1 typeMeta TypeMeta, 2 raw bytes, 3 contentEncoding text, 4 contentType text
TypeMeta: 1 apiVersion text, 2 kind text
Time: 1 seconds int, 2 nanos int
IntOrString: 1 type int, 2 intVal int, 3 strVal text
ObjectMeta: 1 name text, 2 generateName text, 3 namespace text, 4 selfLink text, 5 uid text, \
6 resourceVersion text, 7 generation int, 8 creationTimestamp Time, 9 deletionTimestamp Time, \
10 deletionGracePeriodSeconds int, 11 labels {text}, 12 annotations {text}, \
13 ownerReferences [OwnerReference], 14 finalizers [text]
OwnerReference: 1 kind text, 3 name text, 4 uid text, 5 apiVersion text, 6 controller bool, \
7 blockOwnerDeletion bool
LabelSelector: 1 matchLabels {text}, 2 matchExpressions [LabelSelectorRequirement]
LabelSelectorRequirement: 1 key text, 2 operator text, 3 values [text]
*DeleteOptions: 1 gracePeriodSeconds int, 2 preconditions Preconditions, 3 orphanDependents bool, \
4 propagationPolicy text, 5 dryRun [text]
Preconditions: 1 uid text, 2 resourceVersion text
*Eviction: 1 metadata ObjectMeta, 2 deleteOptions DeleteOptions
*Binding: 1 metadata ObjectMeta, 2 target ObjectReference
ObjectReference: 1 kind text, 2 namespace text, 3 name text, 4 uid text, 5 apiVersion text, \
6 resourceVersion text, 7 fieldPath text
LocalObjectReference: 1 name text
*Namespace: 1 metadata ObjectMeta, 2 spec NamespaceSpec, 3 status NamespaceStatus
NamespaceSpec: 1 finalizers [text]
NamespaceStatus: 1 phase text
*ConfigMap: 1 metadata ObjectMeta, 2 data {text}, 3 binaryData {bytes}, 4 immutable bool
*Secret: 1 metadata ObjectMeta, 2 data {bytes}, 3 type text, 4 stringData {text}, 5 immutable bool
*ServiceAccount: 1 metadata ObjectMeta, 2 secrets [ObjectReference], \
3 imagePullSecrets [LocalObjectReference], 4 automountServiceAccountToken bool
*Service: 1 metadata ObjectMeta, 2 spec ServiceSpec, 3 status ServiceStatus
ServiceStatus: 1 loadBalancer LoadBalancerStatus
LoadBalancerStatus: 1 ingress [LoadBalancerIngress]
LoadBalancerIngress: 1 ip text, 2 hostname text
ServiceSpec: 1 ports [ServicePort], 2 selector {text}, 3 clusterIP text, 4 type text, \
5 externalIPs [text], 7 sessionAffinity text, 8 loadBalancerIP text, \
9 loadBalancerSourceRanges [text], 10 externalName text, 11 externalTrafficPolicy text, \
12 healthCheckNodePort int, 13 publishNotReadyAddresses bool, 17 ipFamilyPolicy text, \
18 clusterIPs [text], 19 ipFamilies [text], 20 allocateLoadBalancerNodePorts bool, \
21 loadBalancerClass text, 22 internalTrafficPolicy text
ServicePort: 1 name text, 2 protocol text, 3 port int, 4 targetPort IntOrString, 5 nodePort int, \
6 appProtocol text
*Deployment: 1 metadata ObjectMeta, 2 spec DeploymentSpec, 3 status DeploymentStatus
DeploymentStatus: 1 observedGeneration int, 2 replicas int, 3 updatedReplicas int, \
4 availableReplicas int, 5 unavailableReplicas int, 7 readyReplicas int
DeploymentSpec: 1 replicas int, 2 selector LabelSelector, 3 template PodTemplateSpec, \
4 strategy DeploymentStrategy, 5 minReadySeconds int, 6 revisionHistoryLimit int, 7 paused bool, \
9 progressDeadlineSeconds int
DeploymentStrategy: 1 type text, 2 rollingUpdate RollingUpdate
RollingUpdate: 1 maxUnavailable IntOrString, 2 maxSurge IntOrString
*Job: 1 metadata ObjectMeta, 2 spec JobSpec, 3 status JobStatus
JobStatus: 4 active int, 5 succeeded int, 6 failed int
JobSpec: 1 parallelism int, 2 completions int, 3 activeDeadlineSeconds int, \
4 selector LabelSelector, 5 manualSelector bool, 6 template PodTemplateSpec, 7 backoffLimit int, \
8 ttlSecondsAfterFinished int, 9 completionMode text, 10 suspend bool
*CronJob: 1 metadata ObjectMeta, 2 spec CronJobSpec, 3 status CronJobStatus
CronJobStatus: 1 active [ObjectReference]
CronJobSpec: 1 schedule text, 2 startingDeadlineSeconds int, 3 concurrencyPolicy text, \
4 suspend bool, 5 jobTemplate JobTemplateSpec, 6 successfulJobsHistoryLimit int, \
7 failedJobsHistoryLimit int, 8 timeZone text
JobTemplateSpec: 1 metadata ObjectMeta, 2 spec JobSpec
*PodDisruptionBudget: 1 metadata ObjectMeta, 2 spec PodDisruptionBudgetSpec, \
3 status PodDisruptionBudgetStatus
PodDisruptionBudgetSpec: 1 minAvailable IntOrString, 2 selector LabelSelector, \
3 maxUnavailable IntOrString, 4 unhealthyPodEvictionPolicy text
PodDisruptionBudgetStatus: 1 observedGeneration int, 3 disruptionsAllowed int, \
4 currentHealthy int, 5 desiredHealthy int, 6 expectedPods int
*PriorityClass: 1 metadata ObjectMeta, 2 value int, 3 globalDefault bool, 4 description text, \
5 preemptionPolicy text
*ResourceQuota: 1 metadata ObjectMeta, 2 spec ResourceQuotaSpec, 3 status ResourceQuotaStatus
ResourceQuotaSpec: 1 hard {Quantity}, 2 scopes [text]
ResourceQuotaStatus: 1 hard {Quantity}, 2 used {Quantity}
*Lease: 1 metadata ObjectMeta, 2 spec LeaseSpec
LeaseSpec: 1 holderIdentity text, 2 leaseDurationSeconds int, 3 acquireTime MicroTime, \
4 renewTime MicroTime, 5 leaseTransitions int, 6 strategy text, 7 preferredHolder text
*Pod: 1 metadata ObjectMeta, 2 spec PodSpec, 3 status PodStatus
PodStatus: 1 phase text, 3 message text, 4 reason text
PodTemplateSpec: 1 metadata ObjectMeta, 2 spec PodSpec
PodSpec: 1 volumes [Volume], 2 containers [Container], 3 restartPolicy text, \
4 terminationGracePeriodSeconds int, 5 activeDeadlineSeconds int, 6 dnsPolicy text, \
7 nodeSelector {text}, 8 serviceAccountName text, 9 serviceAccount text, 10 nodeName text, \
11 hostNetwork bool, 12 hostPID bool, 13 hostIPC bool, 14 securityContext PodSecurityContext, \
15 imagePullSecrets [LocalObjectReference], 16 hostname text, 17 subdomain text, \
19 schedulerName text, 20 initContainers [Container], 21 automountServiceAccountToken bool, \
22 tolerations [Toleration], 24 priorityClassName text, 25 priority int, \
27 shareProcessNamespace bool, 29 runtimeClassName text, 30 enableServiceLinks bool, \
31 preemptionPolicy text, 32 overhead {Quantity}, 38 schedulingGates [PodSchedulingGate], \
43 schedulingGroup PodSchedulingGroup
PodSchedulingGroup: 1 podGroupName text
PodSecurityContext: 2 runAsUser int, 3 runAsNonRoot bool, 5 fsGroup int, 6 runAsGroup int
PodSchedulingGate: 1 name text
Toleration: 1 key text, 2 operator text, 3 value text, 4 effect text, 5 tolerationSeconds int
Volume: 1 name text
Container: 1 name text, 2 image text, 3 command [text], 4 args [text], 5 workingDir text, \
6 ports [ContainerPort], 7 env [EnvVar], 8 resources ResourceRequirements, \
9 volumeMounts [VolumeMount], 13 terminationMessagePath text, 14 imagePullPolicy text, \
16 stdin bool, 17 stdinOnce bool, 18 tty bool, 20 terminationMessagePolicy text
ContainerPort: 1 name text, 2 hostPort int, 3 containerPort int, 4 protocol text, 5 hostIP text
EnvVar: 1 name text, 2 value text
ResourceRequirements: 1 limits {Quantity}, 2 requests {Quantity}
VolumeMount: 1 name text, 2 readOnly bool, 3 mountPath text, 4 subPath text
"""


MESSAGES = {
    name: {
        int(number): (field, type_)
        for number, field, type_ in (each.split() for each in fields.split(", "))
    }
    for name, fields in re.findall(r"(?m)^\*?(\w+): (.*)$", _TEXT)
}
KINDS = re.findall(r"(?m)^\*(\w+)", _TEXT)

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_DEPTH = 64

Value = int | bytes


class _Truncated(Exception):
    """The bytes are truncated or not protobuf."""


def decode(body: bytes) -> dict[str, Any]:
    """The object in a body; raises BadRequestError or UnsupportedMediaTypeError."""
    if not body.startswith(_MAGIC):
        raise BadRequestError("the body of the request is not Kubernetes protobuf")
    try:
        envelope = _message(body[len(_MAGIC) :], "Unknown", 0)
        stated = {"apiVersion": "", "kind": "", **envelope.get("typeMeta", {})}
        kind = stated["kind"]
        if kind not in KINDS:
            what = kind or "this kind"
            raise UnsupportedMediaTypeError(f"{what} is not read as protobuf; send JSON")
        raw = base64.b64decode(envelope.get("raw", ""))
        return {**stated, **_message(raw, kind, 0)}
    except (_Truncated, UnicodeDecodeError, OverflowError):
        raise BadRequestError("the body of the request is not readable as protobuf") from None


def _message(body: bytes, name: str, depth: int) -> dict[str, Any]:
    if depth > _MAX_DEPTH:
        raise _Truncated
    fields = MESSAGES[name]
    found: dict[str, Any] = {}
    for number, value in _fields(body):
        if number not in fields:
            if name.endswith("Status"):  # Clients do not set the status of a new object.
                continue
            what = f"field {number} of {name}"
            raise UnsupportedMediaTypeError(f"{what} is not read as protobuf; send JSON")
        field, type_ = fields[number]
        if type_.startswith("["):
            found.setdefault(field, []).append(_value(value, type_[1:-1], depth))
        elif type_.startswith("{"):
            key, inner = _entry(value, type_[1:-1], depth)
            found.setdefault(field, {})[key] = inner
        else:
            found[field] = _value(value, type_, depth)
    # Go also encodes empty strings; in JSON they are absent.
    return {key: value for key, value in found.items() if value not in (None, "")}


def _value(value: Value, type_: str, depth: int) -> Any:
    match type_:
        case "int":
            number = _varint(value)
            return number - 2**64 if number >= 2**63 else number
        case "bool":
            return _varint(value) != 0
        case "text":
            return _bytes(value).decode()
        case "bytes":
            return base64.b64encode(_bytes(value)).decode()
        case "Quantity":
            return "".join(_bytes(v).decode() for n, v in _fields(_bytes(value)) if n == 1)
        case "Time" | "MicroTime":
            seconds = _message(_bytes(value), "Time", depth + 1).get("seconds", 0)
            # Go's zero time and values that are no date count as absent.
            return timestamps.to_text(seconds) if 0 < seconds < 2**36 else None
        case "IntOrString":
            either = _message(_bytes(value), "IntOrString", depth + 1)
            is_text = either.get("type", 0) == 1
            return either.get("strVal", "") if is_text else either.get("intVal", 0)
    return _message(_bytes(value), type_, depth + 1)


def _entry(value: Value, type_: str, depth: int) -> tuple[str, Any]:
    key, inner = "", None
    for number, each in _fields(_bytes(value)):
        if number == 1:
            key = _bytes(each).decode()
        elif number == 2:
            inner = _value(each, type_, depth)
    return key, "" if inner is None else inner


def _fields(body: bytes) -> Iterator[tuple[int, Value]]:
    at = 0
    while at < len(body):
        tag, at = _read_varint(body, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _read_varint(body, at)
            yield number, value
        elif wire == _BYTES:
            length, at = _read_varint(body, at)
            if at + length > len(body):
                raise _Truncated
            yield number, body[at : at + length]
            at += length
        elif wire in (_FIXED64, _FIXED32):
            width = 8 if wire == _FIXED64 else 4
            yield number, int.from_bytes(body[at : at + width], "little")
            at += width
        else:
            raise _Truncated


def _read_varint(body: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(body) or shift > 63:
            raise _Truncated
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), at
        shift += 7


def _varint(value: Value) -> int:
    if not isinstance(value, int):
        raise _Truncated
    return value


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise _Truncated
    return value
