"""Merge rules of lists: merged by a key, sets, or replaced as a whole.

The name of the field selects the rule. All served kinds use these names alike, except `ports`,
whose rule depends on the field above.
"""

from typing import NamedTuple


class ListRule(NamedTuple):
    """The keys that identify the items of a list; a set has plain items."""

    keys: tuple[str, ...] = ()
    is_set: bool = False
    # Server-side apply uses more keys than patches: two protocols may share a port.
    apply_keys: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return self.keys[0]


ATOMIC = ListRule()
SET = ListRule(is_set=True)
_CONTAINER_PORTS = ListRule(("containerPort",), apply_keys=("containerPort", "protocol"))
_SERVICE_PORTS = ListRule(("port",), apply_keys=("port", "protocol"))
_BY_NAME = ListRule(("name",))

_RULES: dict[str, ListRule] = {
    "containers": _BY_NAME,
    "initContainers": _BY_NAME,
    "ephemeralContainers": _BY_NAME,
    "volumes": _BY_NAME,
    "env": _BY_NAME,
    "imagePullSecrets": _BY_NAME,
    "schedulingGates": _BY_NAME,
    "resourceClaims": _BY_NAME,
    "resourceClaimStatuses": _BY_NAME,
    "reservedFor": ListRule(("uid",)),
    "devices": ListRule(("device",), apply_keys=("driver", "device", "pool", "shareID")),
    "secrets": _BY_NAME,
    "volumeMounts": ListRule(("mountPath",)),
    "volumeDevices": ListRule(("devicePath",)),
    "hostAliases": ListRule(("ip",)),
    "podIPs": ListRule(("ip",)),
    "conditions": ListRule(("type",)),
    "addresses": ListRule(("type",)),
    "ownerReferences": ListRule(("uid",)),
    "topologySpreadConstraints": ListRule(
        ("topologyKey",), apply_keys=("topologyKey", "whenUnsatisfiable")
    ),
    "finalizers": SET,
    "podCIDRs": SET,
}
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")

# Maps that server-side apply treats as one value.
ATOMIC_MAPS = ("selector", "labelSelector", "namespaceSelector", "nodeSelector")
# Fields whose keys are chosen by users: updates own them in addition to their keys.
MAPS = ("labels", "annotations", "data", "binaryData", "limits", "requests", "matchLabels", "hard")
KEY_DEFAULTS = {"protocol": "TCP"}


def rule(path: tuple[str, ...]) -> ListRule:
    """The rule for the list at a path of field names."""
    name = path[-1] if path else ""
    if name == "ports":
        above = path[-2] if len(path) > 1 else ""
        return _CONTAINER_PORTS if above in _CONTAINERS else _SERVICE_PORTS
    return _RULES.get(name, ATOMIC)
