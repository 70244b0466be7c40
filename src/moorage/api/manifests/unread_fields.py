"""The fields of a pod template that no struct has: environment, commands, probes and so on.

A change of them starts a rollout, but nothing else reads them. So a template keeps a digest of
them, not the fields themselves. Values that an API server would set anyway do not count.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from moorage.api.meta import KubeObject
from moorage.api.pod import Container, PodSpec, Volume
from moorage.api.workloads import DaemonSet, Deployment, StatefulSet

Fields = dict[str, Any]

# The kinds that replace their pods when their template changes.
ROLLED_OUT = ("Deployment", "StatefulSet", "DaemonSet")

_READ_OF_POD = frozenset(PodSpec.__struct_encode_fields__) - {"volumes"}
_READ_OF_CONTAINER = frozenset(Container.__struct_encode_fields__)
_READ_OF_VOLUME = frozenset(Volume.__struct_encode_fields__)
_POD_DEFAULTS = {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "securityContext": {}}
_CONTAINER_DEFAULTS = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_VOLUME_DEFAULTS = {"defaultMode": 420, "type": ""}


def with_digest(obj: KubeObject, document: Mapping[str, Any]) -> KubeObject:
    """The workload of a document, with the digest of what its template has besides."""
    if not isinstance(obj, Deployment | StatefulSet | DaemonSet) or obj.spec.template is None:
        return obj
    digest = digest_of(document["spec"]["template"])
    if not digest:
        return obj
    template = replace(obj.spec.template, unread_digest=digest)
    workload: KubeObject = obj
    return replace(workload, spec=replace(obj.spec, template=template))


def digest_of(template: Any) -> str:
    """The digest of the fields that are not read; empty if there are none."""
    spec = _mapping(_mapping(template).get("spec"))
    found = {name: value for name, value in spec.items() if name not in _READ_OF_POD}
    found = _without(found, _POD_DEFAULTS)
    for field in ("containers", "initContainers", "ephemeralContainers"):
        found[field] = [_container(_mapping(each)) for each in spec.get(field) or ()]
    found["volumes"] = [_volume(_mapping(each)) for each in spec.get("volumes") or ()]
    meaningful = _meaningful(found)
    if not meaningful:
        return ""
    text = msgspec.json.encode(meaningful, order="deterministic")
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def _container(container: Fields) -> Fields:
    found = {name: value for name, value in container.items() if name not in _READ_OF_CONTAINER}
    found = _without(found, _CONTAINER_DEFAULTS)
    if found.get("imagePullPolicy") == _pull_policy(str(container.get("image", ""))):
        del found["imagePullPolicy"]
    found["claims"] = _mapping(container.get("resources")).get("claims")
    found["ports"] = [_mapping(each).get("name") for each in container.get("ports") or ()]
    return found


def _pull_policy(image: str) -> str:
    last = image.rpartition("/")[2]
    is_latest = last.endswith(":latest") or (":" not in last and "@" not in last)
    return "Always" if is_latest else "IfNotPresent"


def _volume(volume: Fields) -> Fields:
    return {
        name: _without(_mapping(source), _VOLUME_DEFAULTS) if isinstance(source, dict) else source
        for name, source in volume.items()
        if name not in _READ_OF_VOLUME
    }


def _without(found: Fields, defaults: Fields) -> Fields:
    return {
        name: value
        for name, value in found.items()
        if name not in defaults or value != defaults[name]
    }


def _meaningful(value: Any) -> Any:
    """The value without empty parts; None if nothing is left."""
    if isinstance(value, dict):
        parts = {str(key): _meaningful(each) for key, each in value.items()}
        return {key: each for key, each in parts.items() if each is not None} or None
    if isinstance(value, list):
        listed = [_meaningful(each) for each in value]
        return listed if any(each is not None for each in listed) else None
    return value


def _mapping(value: Any) -> Fields:
    return value if isinstance(value, dict) else {}
