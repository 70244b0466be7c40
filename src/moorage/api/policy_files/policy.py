"""Read a Policy file: predicates, priorities and extenders; keys are case-insensitive."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from moorage.api.config import durations, errors, sources, structs, wire
from moorage.errors import ConfigError

KIND = "Policy"
CONFIG_MAP_KEY = "policy.cfg"

NANOSECONDS = 1_000_000_000


class PolicyEntry(Struct, frozen=True, kw_only=True):
    """A predicate or a priority; an argument is its name, in lower case, and its members."""

    name: str
    weight: int = 0
    argument: tuple[str, dict[str, Any]] | None = None


class Policy(Struct, frozen=True, kw_only=True):
    """The content of a Policy file; None means the default set."""

    predicates: tuple[PolicyEntry, ...] | None = None
    priorities: tuple[PolicyEntry, ...] | None = None
    extenders: tuple[dict[str, Any], ...] = ()
    hard_pod_affinity_weight: int = 0
    checks_all: bool = False


# In lower case, as all keys are compared.
_MEMBERS = (
    "kind",
    "apiversion",
    "predicates",
    "priorities",
    "extenders",
    "hardpodaffinitysymmetricweight",
    "alwayscheckallpredicates",
)


def read(path: Path) -> Policy:
    """A Policy from a file, or from a file with a ConfigMap that contains one."""
    plain = sources.read(path)
    if isinstance(plain, dict) and plain.get("kind") == "ConfigMap":
        held = (plain.get("data") or {}).get(CONFIG_MAP_KEY)
        if not isinstance(held, str):
            raise ConfigError([f'data: the ConfigMap has no key "{CONFIG_MAP_KEY}"'])
        plain = sources.parse(held)
    return of_plain(plain)


def of_plain(plain: Any) -> Policy:
    """A Policy from plain data."""
    members = _fold_keys(plain, "the file")
    kind, version = members.get("kind"), members.get("apiversion")
    if kind != KIND or version not in ("v1", None):
        found = f"kind {errors.shown(kind)} of version {errors.shown(version)}"
        raise ConfigError([f'this is {found}; kind "Policy" of version "v1" is expected'])
    unknown = [name for name in members if name not in _MEMBERS]
    if unknown:
        raise ConfigError([f"unknown field {errors.shown(name)}" for name in unknown])
    weight = members.get("hardpodaffinitysymmetricweight") or 0
    if not _is_integer(weight) or not 0 <= weight <= 100:
        rule = "not in valid range [0, 100]"
        raise ConfigError([errors.invalid("hardPodAffinitySymmetricWeight", weight, rule)])
    return Policy(
        predicates=_all_named(members.get("predicates"), "predicates"),
        priorities=_all_named(members.get("priorities"), "priorities"),
        extenders=tuple(
            _extender(each, f"extenders[{i}]")
            for i, each in enumerate(_list(members.get("extenders") or [], "extenders"))
        ),
        hard_pod_affinity_weight=weight,
        checks_all=members.get("alwayscheckallpredicates") is True,
    )


def _all_named(plain: Any, path: str) -> tuple[PolicyEntry, ...] | None:
    if plain is None:
        return None
    return tuple(_named(each, f"{path}[{i}]") for i, each in enumerate(_list(plain, path)))


def _named(plain: Any, path: str) -> PolicyEntry:
    members = _fold_keys(plain, path)
    name, weight = members.get("name"), members.get("weight", 0)
    if not isinstance(name, str) or not name:
        raise ConfigError([errors.required(f"{path}.name")])
    if not _is_integer(weight):
        raise ConfigError([errors.invalid(f"{path}.weight", weight, "must be an integer")])
    argument = members.get("argument")
    return PolicyEntry(
        name=name,
        weight=weight,
        argument=None if argument is None else _argument(argument, f"{path}.argument"),
    )


def _argument(plain: Any, path: str) -> tuple[str, dict[str, Any]]:
    members = {k: v for k, v in _fold_keys(plain, path).items() if v is not None}
    if len(members) != 1:
        rule = f"must have exactly one member, has {len(members)}"
        raise ConfigError([errors.invalid(path, plain, rule)])
    ((kind, inner),) = members.items()
    return kind, _fold_keys(inner, f"{path}.{kind}")


def _extender(plain: Any, path: str) -> dict[str, Any]:
    """An extender as in a KubeSchedulerConfiguration."""
    members = _rename_keys(_fold_keys(plain, path), structs.Extender, path)
    if isinstance(tls := members.get("tlsConfig"), dict):
        members["tlsConfig"] = _rename_keys(_fold_keys(tls, path), structs.ExtenderTLSConfig, path)
    if isinstance(managed := members.get("managedResources"), list):
        members["managedResources"] = [
            _rename_keys(_fold_keys(each, path), structs.ExtenderManagedResource, path)
            for each in managed
        ]
    timeout = members.get("httpTimeout")
    if isinstance(timeout, int):
        members["httpTimeout"] = durations.text(timeout / NANOSECONDS)
    return members


def _rename_keys(members: dict[str, Any], struct: type[Struct], path: str) -> dict[str, Any]:
    names = {field.encode_name.lower(): field.encode_name for field in wire.wire_fields(struct)}
    unknown = [name for name in members if name not in names]
    if unknown:
        raise ConfigError([f"{path}: unknown field {errors.shown(name)}" for name in unknown])
    return {names[name]: value for name, value in members.items() if value is not None}


def _fold_keys(plain: Any, path: str) -> dict[str, Any]:
    if not isinstance(plain, Mapping):
        raise ConfigError([f"{path}: must be an object"])
    return {str(name).lower(): value for name, value in plain.items()}


def _list(plain: Any, path: str) -> list[Any]:
    if not isinstance(plain, list):
        raise ConfigError([f"{path}: must be a list"])
    return plain


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
