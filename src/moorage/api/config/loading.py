"""Load a configuration from a file or a dict, set defaults, validate; and convert it to a dict.

Kubernetes treats several zero values as unset; files that rely on that work here too.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from moorage.api.config import plugin_sets, sources, structs, validation, wire
from moorage.api.config.errors import shown
from moorage.api.config.structs import (
    API_VERSION,
    ARGS,
    KIND,
    KubeSchedulerProfile,
    PluginConfig,
    SchedulerConfiguration,
)
from moorage.api.config.wire import S
from moorage.api.pod import DEFAULT_SCHEDULER
from moorage.errors import ConfigError

Source = SchedulerConfiguration | Mapping[str, Any] | str | os.PathLike[str] | None

GROUP = API_VERSION.partition("/")[0]
HEADER = {"apiVersion": API_VERSION, "kind": KIND}
ARGS_KINDS = [struct.__name__ for struct in ARGS.values()]


# The only key of what /configz of a scheduler returns.
CONFIGZ = "componentconfig"


def load(source: Source = None, *, base_dir: Path | None = None) -> SchedulerConfiguration:
    """A complete configuration; None gives the defaults, a loaded one is returned unchanged.

    The source may also be what /configz of kube-scheduler or `moorage run` returns. `base_dir` is
    the folder for relative paths of plugins, by default that of the file. One ConfigError reports
    all errors.
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
    """The configuration as plain data; loading that gives an equal configuration."""
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
    if isinstance(plain, dict) and plain.keys() == {CONFIGZ}:
        plain = plain[CONFIGZ]
    _check_header(plain)
    members = {name: value for name, value in plain.items() if name not in HEADER}
    reader = wire.Reader()
    configuration = reader.read(SchedulerConfiguration, _default_members(members))
    profiles = tuple(
        _read_args(profile, i, reader.errors) for i, profile in enumerate(configuration.profiles)
    )
    if reader.errors:
        raise ConfigError(reader.errors)
    complete = _complete(replace(configuration, profiles=profiles, base_dir=base_dir))
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


def _default_members(members: dict[str, Any]) -> dict[str, Any]:
    """Set the defaults that depend on whether a field is present."""
    members = {name: value for name, value in members.items() if value is not None}
    if members.get("enableProfiling") is False:
        members.setdefault("enableContentionProfiling", False)
    match members.get("profiles", []):
        case []:
            members["profiles"] = [{"schedulerName": DEFAULT_SCHEDULER}]
        # Only a single profile gets a default name; an empty name is an error.
        case [dict() as profile] if profile.get("schedulerName") is None:
            members["profiles"] = [profile | {"schedulerName": DEFAULT_SCHEDULER}]
    return members


def _read_args(profile: KubeSchedulerProfile, i: int, errors: list[str]) -> KubeSchedulerProfile:
    configs = []
    for j, config in enumerate(profile.plugin_config):
        prefix = f"decoding .profiles[{i}].pluginConfig[{j}]: "
        configs.append(replace(config, args=_typed_args(config, prefix, errors)))
    return replace(profile, plugin_config=tuple(configs))


def _typed_args(config: PluginConfig, prefix: str, errors: list[str]) -> Any:
    struct = ARGS.get(config.name)
    decoding = f"decoding args for plugin {config.name}: "
    if not isinstance(config.args, dict | None):
        errors.append(f"{prefix}{decoding}args must be an object")
        return None
    if struct is None:
        return config.args
    plain = config.args or {}
    kind, api_version = plain.get("kind") or struct.__name__, plain.get("apiVersion") or API_VERSION
    if api_version != API_VERSION or kind not in ARGS_KINDS:
        errors.append(f"{prefix}{decoding}{_not_registered(kind, api_version)}")
        return None
    if kind != struct.__name__:
        types = f"{struct.__name__}.{GROUP}, got {kind}.{GROUP}"
        errors.append(f"{prefix}args for plugin {config.name} were not of type {types}")
        return None
    reader = wire.Reader(prefix + decoding)
    args = reader.read(struct, {name: plain[name] for name in plain if name not in HEADER})
    errors.extend(reader.errors)
    return args


def _not_registered(kind: object, api_version: object) -> str:
    return f"no kind {shown(kind)} is registered for version {shown(api_version)}"


def _excerpt(plain: object) -> str:
    text = "" if plain is None else shown(plain)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _complete(configuration: SchedulerConfiguration) -> SchedulerConfiguration:
    """Set the defaults that are not those of the structs."""
    ignored = tuple(
        resource.name
        for extender in configuration.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    gates = configuration.feature_gates
    return replace(
        configuration,
        leader_election=_or_default(configuration.leader_election),
        client_connection=_or_default(configuration.client_connection),
        profiles=tuple(_profile(profile, ignored, gates) for profile in configuration.profiles),
        extenders=tuple(_or_default(extender) for extender in configuration.extenders),
    )


def _or_default(given: S) -> S:
    """Replace zeros and empty texts by the default; False is kept."""
    default = type(given)()
    unset = {
        name: getattr(default, name)
        for name in given.__struct_fields__
        if not (value := getattr(given, name)) and value is not False
    }
    return replace(given, **unset)


def _profile(
    profile: KubeSchedulerProfile, ignored: tuple[str, ...], gates: Mapping[str, bool]
) -> KubeSchedulerProfile:
    plugins = plugin_sets.with_defaults(profile.plugins, gates)
    configured = {config.name for config in profile.plugin_config}
    missing = sorted(plugins.names() & ARGS.keys() - configured)
    configs = (
        *profile.plugin_config,
        *(PluginConfig(name=name, args=ARGS[name]()) for name in missing),
    )
    return replace(
        profile,
        plugins=plugins,
        plugin_config=tuple(
            replace(config, args=_args(config.args, ignored)) for config in configs
        ),
    )


def _args(args: object, ignored: tuple[str, ...]) -> object:
    match args:
        case structs.NodeResourcesFitArgs(scoring_strategy=strategy):
            # Resources of extenders replace the list, as in kube-scheduler.
            return replace(
                args,
                ignored_resources=ignored or args.ignored_resources,
                scoring_strategy=replace(strategy, resources=_with_weights(strategy.resources)),
            )
        case structs.NodeResourcesBalancedAllocationArgs(resources=resources):
            return replace(args, resources=_with_weights(resources))
        case structs.PodTopologySpreadArgs(defaulting_type=""):
            return replace(args, defaulting_type="System")
        case _:
            return args


def _with_weights(resources: tuple[structs.ResourceSpec, ...]) -> tuple[structs.ResourceSpec, ...]:
    return (
        tuple(replace(resource, weight=resource.weight or 1) for resource in resources)
        or structs.CPU_AND_MEMORY
    )
