"""The flags of `moorage run` that change its configuration, and how they are written."""

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click import Context, Parameter

F = TypeVar("F", bound=Callable[..., Any])


class Duration(click.ParamType[float]):
    """A span as Go writes it: 15s, 1m30s."""

    name = "duration"

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> float:
        from moorage.api.config import durations

        if isinstance(value, float):
            return value
        try:
            return durations.parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Level(click.ParamType[int]):
    """A whole number; Go's `-v=4` reaches us as `=4`."""

    name = "integer"

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> int:
        text = str(value).removeprefix("=")
        if not text.isdecimal():
            self.fail(f"{text!r} is not a whole number", param, ctx)
        return int(text)


# Flag, where it goes in LeaderElection, type, help.
_FLAGS: tuple[tuple[str, str, Any, str], ...] = (
    ("lease-duration", "lease_duration_seconds", Duration(), "How long a lease lasts. [15s]"),
    ("renew-deadline", "renew_deadline_seconds", Duration(), "A leader gives up after this. [10s]"),
    ("retry-period", "retry_period_seconds", Duration(), "Between renewals. [2s]"),
    ("resource-lock", "resource_lock", str, "Has to be leases."),
    ("resource-name", "resource_name", str, "The lease. [kube-scheduler]"),
    ("resource-namespace", "resource_namespace", str, "Where it is. [kube-system]"),
)


def flags(command: F) -> F:
    """`--leader-elect` and its companions, under kube-scheduler's names."""
    for flag, destination, kind, text in reversed(_FLAGS):
        command = click.option(f"--leader-elect-{flag}", destination, type=kind, help=text)(command)
    return click.option(
        "--leader-elect",
        type=bool,
        is_flag=False,
        flag_value="true",
        default=None,
        metavar="[BOOL]",
        help="Whether to take part in the election of a leader; --leader-elect=false for a "
        "single scheduler.",
    )(command)


def apply(configuration: Any, **given: Any) -> Any:
    """A configuration in which what the command line says has replaced what the file says."""
    from msgspec import structs

    from moorage.api import config
    from moorage.errors import ConfigError

    connection: dict[str, Any] = {
        name: given.pop(name) for name in ("kubeconfig", "qps", "burst") if name in given
    }
    changed = structs.replace(
        configuration,
        leader_election=structs.replace(configuration.leader_election, **_said(given)),
        client_connection=structs.replace(configuration.client_connection, **_said(connection)),
    )
    if problems := config.problems(changed):
        raise ConfigError(problems)
    return changed


def _said(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}
