"""Which lists are merged by a key, which are sets, and which are replaced whole.

A list is known by its field's name and the one above it: names are used alike over all kinds
served, but for `ports`.
"""

from typing import NamedTuple


class ListRule(NamedTuple):
    """By which fields the items of a list are told apart; a set has plain items."""

    keys: tuple[str, ...] = ()
    is_set: bool = False
    # Apply tells items apart by more than patches do: two protocols may share a port.
    apply_keys: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return self.keys[0]


WHOLE = ListRule()
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

# Maps that apply treats as one value.
WHOLE_MAPS = ("selector", "labelSelector", "namespaceSelector", "nodeSelector")
KEY_DEFAULTS = {"protocol": "TCP"}


def rule(path: tuple[str, ...]) -> ListRule:
    """The rule for the list at a path of field names."""
    name = path[-1] if path else ""
    if name == "ports":
        above = path[-2] if len(path) > 1 else ""
        return _CONTAINER_PORTS if above in _CONTAINERS else _SERVICE_PORTS
    return _RULES.get(name, WHOLE)
