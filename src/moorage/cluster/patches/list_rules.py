"""Merge rules of lists: merged by a key, sets, or replaced as a whole.

The name of the field selects the rule. All served kinds use these names alike, except `ports`,
whose rule depends on the field above.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple


class ListRule(NamedTuple):
    """The keys that identify the items of a list; a set has plain items."""

    keys: tuple[str, ...] = ()
    is_set: bool = False
    # Server-side apply uses more keys than patches: two protocols may share a port.
    apply_keys: tuple[str, ...] = ()
    # Values of keys that an item does not state.
    defaults: Mapping[str, Any] = MappingProxyType({})

    @property
    def key(self) -> str:
        return self.keys[0]


ATOMIC = ListRule()
SET = ListRule(is_set=True)
_TCP = {"protocol": "TCP"}
_CONTAINER_PORTS = ListRule(
    ("containerPort",), apply_keys=("containerPort", "protocol"), defaults=_TCP
)
_SERVICE_PORTS = ListRule(("port",), apply_keys=("port", "protocol"), defaults=_TCP)
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
_ATOMIC_MAPS = ("selector", "labelSelector", "namespaceSelector", "nodeSelector")
# Fields whose keys are chosen by users: updates own them in addition to their keys.
MAPS = ("labels", "annotations", "data", "binaryData", "limits", "requests", "matchLabels", "hard")


def rule(path: tuple[str, ...]) -> ListRule:
    """The rule for the list at a path of field names."""
    name = path[-1] if path else ""
    if name == "ports":
        above = path[-2] if len(path) > 1 else ""
        return _CONTAINER_PORTS if above in _CONTAINERS else _SERVICE_PORTS
    return _RULES.get(name, ATOMIC)


class MergeRules:
    """How server-side apply merges the lists and maps of built-in kinds: by names of fields."""

    def list_rule(self, path: tuple[str, ...]) -> ListRule:
        """The rule for the list at a path of field names."""
        return rule(path)

    def is_atomic_map(self, path: tuple[str, ...]) -> bool:
        """Whether the map at a path is one value."""
        return bool(path) and path[-1] in _ATOMIC_MAPS


BUILT_IN_KINDS = MergeRules()


class SchemaRules(MergeRules):
    """How lists and maps of a custom resource merge, as its schema declares."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema

    def list_rule(self, path: tuple[str, ...]) -> ListRule:
        if path[:1] == ("metadata",):
            return rule(path)
        schema = self._at(path)
        match schema.get("x-kubernetes-list-type"):
            case "set":
                return SET
            case "map":
                keys = tuple(map(str, schema.get("x-kubernetes-list-map-keys") or ()))
                fields = (schema.get("items") or {}).get("properties") or {}
                defaults = {key: (fields.get(key) or {}).get("default") for key in keys}
                return ListRule(keys, defaults={k: v for k, v in defaults.items() if v is not None})
        return ATOMIC

    def is_atomic_map(self, path: tuple[str, ...]) -> bool:
        if path[:1] == ("metadata",):
            return super().is_atomic_map(path)
        return self._at(path).get("x-kubernetes-map-type") == "atomic"

    def _at(self, path: tuple[str, ...]) -> dict[str, Any]:
        schema: Any = self._schema
        for step in path:
            if isinstance(schema, dict) and "items" in schema:
                schema = schema["items"]
            fields = schema.get("properties") if isinstance(schema, dict) else None
            extra = schema.get("additionalProperties") if isinstance(schema, dict) else None
            schema = (fields or {}).get(step) or extra
        return schema if isinstance(schema, dict) else {}
