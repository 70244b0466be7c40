"""A configuration from a file, a dict or nothing, complete and checked; and back to a dict."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import structs

from moorage.api.config import defaults, plugin_args, sources, validation, wire
from moorage.api.config.faults import shown
from moorage.api.config.structs import (
    API_VERSION,
    KIND,
    PluginConfig,
    Profile,
    SchedulerConfiguration,
)
from moorage.api.pod import DEFAULT_SCHEDULER
from moorage.errors import ConfigError

Source = SchedulerConfiguration | Mapping[str, Any] | str | os.PathLike[str] | None

GROUP = API_VERSION.partition("/")[0]
HEADER = {"apiVersion": API_VERSION, "kind": KIND}
ARGS_KINDS = [struct.__name__ for struct in plugin_args.KINDS.values()]


def load(source: Source = None, *, base_dir: Path | None = None) -> SchedulerConfiguration:
    """A complete configuration; None gives the defaults, and one that is loaded stays as it is.

    `base_dir` is where plugins are looked for that are named by a relative path: the folder of the
    file unless told otherwise. Everything that is wrong comes in one ConfigError.
    """
    match source:
        case SchedulerConfiguration():
            return source
        case None:
            return _build(HEADER, base_dir or Path())
        case str() | os.PathLike():
            return _load_file(Path(source), base_dir)
        case _:
            return _build(_plain(source), base_dir or Path())


def to_dict(configuration: SchedulerConfiguration) -> dict[str, Any]:
    """The configuration as plain data, which loads back to the same value."""
    plain: dict[str, Any] = HEADER | wire.write(configuration)
    for profile, written in zip(configuration.profiles, plain.get("profiles", ()), strict=True):
        configs = zip(profile.plugin_config, written.get("pluginConfig", ()), strict=True)
        for config, member in configs:
            if isinstance(config.args, wire.ConfigData):
                kind = type(config.args).__name__
                member["args"] = HEADER | {"kind": kind} | wire.write(config.args)
    return plain


def _load_file(path: Path, base_dir: Path | None) -> SchedulerConfiguration:
    try:
        return _build(sources.read(path), base_dir or path.parent)
    except ConfigError as error:
        raise ConfigError([f"{path}: {problem}" for problem in error.problems]) from None
    except RecursionError:
        raise ConfigError([f"{path}: nested too deeply"]) from None


def _plain(source: Any) -> Any:
    try:
        return sources.plain(source)
    except RecursionError:
        raise ConfigError(["nested too deeply"]) from None


def _build(plain: Any, base_dir: Path) -> SchedulerConfiguration:
    _check_header(plain)
    members = {name: value for name, value in plain.items() if name not in HEADER}
    reader = wire.Reader()
    configuration = reader.read(SchedulerConfiguration, _fill_gaps(members))
    profiles = tuple(
        _read_args(profile, i, reader.faults) for i, profile in enumerate(configuration.profiles)
    )
    if reader.faults:
        raise ConfigError(reader.faults)
    complete = defaults.complete(
        structs.replace(configuration, profiles=profiles, base_dir=base_dir)
    )
    if problems := validation.problems(complete):
        raise ConfigError(problems)
    return complete


def _check_header(plain: Any) -> None:
    if not isinstance(plain, dict | None):
        kind = "a list" if isinstance(plain, list) else "a single value"
        raise ConfigError([f"couldn't get version/kind; an object is expected, this is {kind}"])
    if not plain or not plain.get("kind"):
        raise ConfigError([f"Object 'Kind' is missing in '{_excerpt(plain)}'"])
    if not plain.get("apiVersion"):
        raise ConfigError([f"Object 'apiVersion' is missing in '{_excerpt(plain)}'"])
    if plain.get("kind") != KIND or plain.get("apiVersion") != API_VERSION:
        raise ConfigError([_not_registered(plain["kind"], plain["apiVersion"])])


def _fill_gaps(members: dict[str, Any]) -> dict[str, Any]:
    """The defaults that depend on whether something was said at all."""
    members = {name: value for name, value in members.items() if value is not None}
    if members.get("enableProfiling") is False:
        members.setdefault("enableContentionProfiling", False)
    match members.get("profiles", []):
        case []:
            members["profiles"] = [{"schedulerName": DEFAULT_SCHEDULER}]
        # Only a profile without company is named for the user; an empty name is a fault.
        case [dict() as profile] if profile.get("schedulerName") is None:
            members["profiles"] = [profile | {"schedulerName": DEFAULT_SCHEDULER}]
    return members


def _read_args(profile: Profile, i: int, faults: list[str]) -> Profile:
    configs = []
    for j, config in enumerate(profile.plugin_config):
        place = f"decoding .profiles[{i}].pluginConfig[{j}]: "
        configs.append(structs.replace(config, args=_typed_args(config, place, faults)))
    return structs.replace(profile, plugin_config=tuple(configs))


def _typed_args(config: PluginConfig, place: str, faults: list[str]) -> Any:
    struct = plugin_args.KINDS.get(config.name)
    decoding = f"decoding args for plugin {config.name}: "
    if not isinstance(config.args, dict | None):
        faults.append(f"{place}{decoding}args must be an object")
        return None
    if struct is None:
        return config.args
    plain = config.args or {}
    kind, api_version = plain.get("kind") or struct.__name__, plain.get("apiVersion") or API_VERSION
    if api_version != API_VERSION or kind not in ARGS_KINDS:
        faults.append(f"{place}{decoding}{_not_registered(kind, api_version)}")
        return None
    if kind != struct.__name__:
        types = f"{struct.__name__}.{GROUP}, got {kind}.{GROUP}"
        faults.append(f"{place}args for plugin {config.name} were not of type {types}")
        return None
    reader = wire.Reader(place + decoding)
    args = reader.read(struct, {name: plain[name] for name in plain if name not in HEADER})
    faults.extend(reader.faults)
    return args


def _not_registered(kind: object, api_version: object) -> str:
    return f"no kind {shown(kind)} is registered for version {shown(api_version)}"


def _excerpt(plain: object) -> str:
    text = "" if plain is None else shown(plain)
    return text if len(text) <= 80 else f"{text[:77]}..."
