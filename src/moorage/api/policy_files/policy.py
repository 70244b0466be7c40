"""A Policy file: from text to predicates, priorities and extenders; keys in whatever case."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from moorage.api.config import durations, errors, sources, structs, wire
from moorage.errors import ConfigError

KIND = "Policy"
CONFIG_MAP_KEY = "policy.cfg"

NANOSECONDS = 1_000_000_000


class Named(Struct, frozen=True, kw_only=True):
    """A predicate or a priority; the argument's one member says what it is."""

    name: str
    weight: int = 0
    argument: tuple[str, dict[str, Any]] | None = None


class Policy(Struct, frozen=True, kw_only=True):
    """What a file says; None is the default set."""

    predicates: tuple[Named, ...] | None = None
    priorities: tuple[Named, ...] | None = None
    extenders: tuple[dict[str, Any], ...] = ()
    hard_pod_affinity_weight: int = 0
    checks_all: bool = False


# Keys in lower case -> how they are written, for complaints.
_MEMBERS = {
    name.lower(): name
    for name in (
        "kind",
        "apiVersion",
        "predicates",
        "priorities",
        "extenders",
        "hardPodAffinitySymmetricWeight",
        "alwaysCheckAllPredicates",
    )
}


def read(path: Path) -> Policy:
    """A Policy from a file; also from a ConfigMap that holds one, as they were deployed."""
    plain = sources.read(path)
    if isinstance(plain, dict) and plain.get("kind") == "ConfigMap":
        held = (plain.get("data") or {}).get(CONFIG_MAP_KEY)
        if not isinstance(held, str):
            raise ConfigError([f'data: the ConfigMap has no key "{CONFIG_MAP_KEY}"'])
        plain = sources.parse(held)
    return of_plain(plain)


def of_plain(plain: Any) -> Policy:
    """A Policy from plain data."""
    members = _folded(plain, "the file")
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


def _all_named(plain: Any, path: str) -> tuple[Named, ...] | None:
    if plain is None:
        return None
    return tuple(_named(each, f"{path}[{i}]") for i, each in enumerate(_list(plain, path)))


def _named(plain: Any, path: str) -> Named:
    members = _folded(plain, path)
    name, weight = members.get("name"), members.get("weight", 0)
    if not isinstance(name, str) or not name:
        raise ConfigError([errors.required(f"{path}.name")])
    if not _is_integer(weight):
        raise ConfigError([errors.invalid(f"{path}.weight", weight, "must be an integer")])
    argument = members.get("argument")
    return Named(
        name=name,
        weight=weight,
        argument=None if argument is None else _argument(argument, f"{path}.argument"),
    )


def _argument(plain: Any, path: str) -> tuple[str, dict[str, Any]]:
    members = {k: v for k, v in _folded(plain, path).items() if v is not None}
    if len(members) != 1:
        rule = f"must have exactly one member, has {len(members)}"
        raise ConfigError([errors.invalid(path, plain, rule)])
    ((kind, inner),) = members.items()
    return kind, _folded(inner, f"{path}.{kind}")


def _extender(plain: Any, path: str) -> dict[str, Any]:
    """An extender as a configuration of today writes it."""
    members = _renamed(_folded(plain, path), structs.Extender, path)
    if isinstance(tls := members.get("tlsConfig"), dict):
        members["tlsConfig"] = _renamed(_folded(tls, path), structs.ExtenderTLSConfig, path)
    if isinstance(managed := members.get("managedResources"), list):
        members["managedResources"] = [
            _renamed(_folded(each, path), structs.ExtenderManagedResource, path) for each in managed
        ]
    timeout = members.get("httpTimeout")
    if isinstance(timeout, int):
        members["httpTimeout"] = durations.text(timeout / NANOSECONDS)
    return members


def _renamed(members: dict[str, Any], struct: type[Struct], path: str) -> dict[str, Any]:
    names = {field.encode_name.lower(): field.encode_name for field in wire.wire_fields(struct)}
    unknown = [name for name in members if name not in names]
    if unknown:
        raise ConfigError([f"{path}: unknown field {errors.shown(name)}" for name in unknown])
    return {names[name]: value for name, value in members.items() if value is not None}


def _folded(plain: Any, path: str) -> dict[str, Any]:
    if not isinstance(plain, Mapping):
        raise ConfigError([f"{path}: must be an object"])
    return {str(name).lower(): value for name, value in plain.items()}


def _list(plain: Any, path: str) -> list[Any]:
    if not isinstance(plain, list):
        raise ConfigError([f"{path}: must be a list"])
    return plain


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
