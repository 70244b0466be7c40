"""What an API server fills into a pod's spec, and into the templates of workloads.

The dicts handed in belong to the request that brought them, and are filled in place.
"""

from typing import Any

from moorage.api import quantity
from moorage.api.pod import DEFAULT_SCHEDULER

Spec = dict[str, Any]

_NOT_READY = "node.kubernetes.io/not-ready"
_UNREACHABLE = "node.kubernetes.io/unreachable"
_PATIENCE_SECONDS = 300


def fill(spec: Spec) -> None:
    """The defaults of a pod spec, wherever it stands."""
    for container in (*spec.get("initContainers", ()), *spec.get("containers", ())):
        _container(container, host_network=bool(spec.get("hostNetwork")))
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    if not spec.get("schedulerName"):
        spec["schedulerName"] = DEFAULT_SCHEDULER
    if "overhead" in spec:
        spec["overhead"] = whole_millis(spec["overhead"])
    for volume in spec.get("volumes", ()):
        _volume(volume)


def fill_created(obj: Spec) -> None:
    """What only a pod that is being created gets: tolerations, selectors by its own labels."""
    spec = obj["spec"]
    spec.setdefault("enableServiceLinks", True)
    labels = obj["metadata"].get("labels", {})
    tolerations = spec.setdefault("tolerations", [])
    for key in (_NOT_READY, _UNREACHABLE):
        if not any(_covers(each, key) for each in tolerations):
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _PATIENCE_SECONDS,
                }
            )
    for constraint in spec.get("topologySpreadConstraints", ()):
        _merge_keys(constraint, labels)
    affinity = spec.get("affinity", {})
    for sort in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(sort, {})
        for term in terms.get("requiredDuringSchedulingIgnoredDuringExecution", ()):
            _merge_keys(term, labels)
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution", ()):
            _merge_keys(weighted.get("podAffinityTerm", {}), labels)


def qos_class(spec: Spec) -> str:
    """Guaranteed, Burstable or BestEffort, as the kubelet would rank the pod."""
    containers = [*spec.get("initContainers", ()), *spec.get("containers", ())]
    asked = [each.get("resources", {}) for each in containers]
    named = [
        {**each.get("requests", {}), **each.get("limits", {})}.keys() & {"cpu", "memory"}
        for each in asked
    ]
    if not any(named):
        return "BestEffort"
    for each in asked:
        limits, requests = each.get("limits", {}), each.get("requests", {})
        for name in ("cpu", "memory"):
            if name not in limits:
                return "Burstable"
            wanted = requests.get(name, limits[name])
            if quantity.nano(wanted) != quantity.nano(limits[name]):
                return "Burstable"
    return "Guaranteed"


def whole_millis(amounts: Spec) -> Spec:
    """Amounts finer than a thousandth are rounded up when they are stored."""
    return {
        name: f"{quantity.milli(each)}m" if quantity.nano(each) % quantity.MICRO else _text(each)
        for name, each in amounts.items()
    }


def _text(amount: Any) -> Any:
    """Numbers become text, as an API server's own encoder writes quantities."""
    return amount if isinstance(amount, str) else str(amount)


def _container(container: Spec, *, host_network: bool) -> None:
    resources = container.setdefault("resources", {})
    for field in ("limits", "requests"):
        if resources.get(field):
            resources[field] = whole_millis(resources[field])
    if resources.get("limits"):
        resources["requests"] = {**resources["limits"], **resources.get("requests", {})}
    for port in container.get("ports", ()):
        port.setdefault("protocol", "TCP")
        if host_network and not port.get("hostPort") and "containerPort" in port:
            port["hostPort"] = port["containerPort"]
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    if "imagePullPolicy" not in container:
        image = str(container.get("image", ""))
        last = image.rpartition("/")[2]
        latest = image.endswith(":latest") or (":" not in last and "@" not in last)
        container["imagePullPolicy"] = "Always" if latest else "IfNotPresent"


def _volume(volume: Spec) -> None:
    for source in ("configMap", "secret", "projected", "downwardAPI"):
        if isinstance(volume.get(source), dict):
            volume[source].setdefault("defaultMode", 420)
    if "hostPath" in volume and isinstance(volume["hostPath"], dict):
        volume["hostPath"].setdefault("type", "")
    if not volume.keys() - {"name"}:
        volume["emptyDir"] = {}


def _covers(toleration: Spec, key: str) -> bool:
    return toleration.get("key", "") in ("", key) and toleration.get("effect", "") in (
        "",
        "NoExecute",
    )


def _merge_keys(term: Spec, labels: Spec) -> None:
    """Keys under which a pod wants to be matched become requirements on its labels of today."""
    selector = term.get("labelSelector")
    if selector is None:  # It matches nothing, and stays so.
        return
    for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in term.get(field, ()):
            if key in labels:
                wanted = {"key": key, "operator": operator, "values": [labels[key]]}
                expressions = selector.setdefault("matchExpressions", [])
                if wanted not in expressions:
                    expressions.append(wanted)
