"""`moorage run`: schedule a live cluster. Most flags have kube-scheduler's names."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import click
from click import Context, Parameter

from moorage.cli import options, plugin_output
from moorage.cli.options import DurationType
from moorage.cli.shadow import ShadowOptions, shadow_options
from moorage.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])

JOURNAL_LIMIT = 10_000


class VerbosityType(click.ParamType):  # type: ignore[type-arg] # Not generic in old versions.
    """A whole number; click passes Go's `-v=4` as `=4`."""

    name = "integer"

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> int:
        text = str(value).removeprefix("=")
        if not text.isdecimal():
            self.fail(f"{text!r} is not a whole number", param, ctx)
        return int(text)


def _not_negative(context: Context, option: Parameter, seconds: float) -> float:
    if seconds < 0:
        raise click.BadParameter("must not be negative")
    return seconds


# Flag, field of LeaderElection, type, help.
_ELECTION_FLAGS: tuple[tuple[str, str, Any, str], ...] = (
    (
        "lease-duration",
        "lease_duration_seconds",
        DurationType(),
        "Duration of the lease. [15s]",
    ),
    (
        "renew-deadline",
        "renew_deadline_seconds",
        DurationType(),
        "How long a leader tries to renew before it stops. [10s]",
    ),
    (
        "retry-period",
        "retry_period_seconds",
        DurationType(),
        "Time between attempts to acquire or renew. [2s]",
    ),
    ("resource-lock", "resource_lock", str, "Must be leases."),
    ("resource-name", "resource_name", str, "Name of the lease. [kube-scheduler]"),
    ("resource-namespace", "resource_namespace", str, "Namespace of the lease. [kube-system]"),
)


def leader_election(command: F) -> F:
    """`--leader-elect` and its companions."""
    for flag, destination, kind, text in reversed(_ELECTION_FLAGS):
        command = click.option(f"--leader-elect-{flag}", destination, type=kind, help=text)(command)
    return click.option(
        "--leader-elect",
        type=bool,
        is_flag=False,
        flag_value="true",
        default=None,
        metavar="[BOOL]",
        help="Whether to elect a leader before scheduling; --leader-elect=false for a single "
        "scheduler.",
    )(command)


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """Where health, metrics and the other pages are served, and to which clients."""

    bind_address: str
    secure_port: int
    serve_http: bool
    tls_cert_file: str
    tls_private_key_file: str
    always: str
    token_file: str
    trust_loopback: bool
    ui: bool

    def companion(
        self, configuration: Any, meter: Any, *, reviews: bool = True
    ) -> Callable[[Any], AbstractAsyncContextManager[None]]:
        """What serves these pages while the scheduler runs.

        Without `reviews`, tokens are not sent to the cluster for a review, which is a POST.
        """
        from moorage.live import server, tls
        from moorage.live.authorization import Authorizer

        # Mistakes in these options show before the first request to the cluster.
        context = None
        if self.ui and not self.secure_port:
            raise click.UsageError("--ui requires --secure-port.")
        if self.secure_port and not self.serve_http:
            context = tls.server_context(self.tls_cert_file, self.tls_private_key_file)
        Authorizer(None, token_file=self.token_file)

        @asynccontextmanager
        async def serving(live: Any) -> AsyncIterator[None]:
            elector = live.elector
            if elector is not None:
                meter.election = lambda: (elector.settings.resource_name, elector.is_held)
            if not self.secure_port:
                yield
                return
            paths = [path.strip() for path in self.always.split(",") if path.strip()]
            extend = None
            if self.ui:
                from moorage.ui import live as live_ui
                from moorage.ui import server as ui_server

                paths += ui_server.PUBLIC_PATHS
                source = live_ui.source(live, configuration)
                extend = partial(ui_server.mount, source=source)
            client = live.client.with_own_bucket(is_limited=False) if reviews else None
            authorizer = Authorizer(
                client,
                always=paths,
                token_file=self.token_file,
                trust_loopback=self.trust_loopback,
            )
            secure = server.SecureServer(live, meter, configuration, authorizer, extend=extend)
            async with secure.listening(self.bind_address, self.secure_port, context):
                yield

        return serving


serving_options = options.bundled(
    ServingOptions,
    "serving",
    click.option(
        "--bind-address",
        default="0.0.0.0",
        show_default=True,
        metavar="IP",
        help="The address of the health and metrics endpoints.",
    ),
    click.option(
        "--secure-port",
        type=click.IntRange(0, 65535),
        default=10259,
        show_default=True,
        help="The port of the health and metrics endpoints; 0 disables them.",
    ),
    click.option(
        "--serve-http", is_flag=True, help="Serve these endpoints over HTTP instead of HTTPS."
    ),
    click.option(
        "--tls-cert-file",
        default="",
        metavar="FILE",
        help="The serving certificate, in PEM. Default: a self-signed one.",
    ),
    click.option(
        "--tls-private-key-file",
        default="",
        metavar="FILE",
        help="The private key of the certificate.",
    ),
    click.option(
        "--authorization-always-allow-paths",
        "always",
        default="/healthz,/readyz,/livez",
        show_default=True,
        metavar="PATHS",
        help="Paths that need no authorization; a trailing * matches any suffix.",
    ),
    click.option(
        "--token-file",
        default="",
        metavar="FILE",
        help="A file with a bearer token that gives access to all paths.",
    ),
    click.option(
        "--trust-loopback",
        is_flag=True,
        help="Give clients on the loopback address access to all paths, without a token.",
    ),
    click.option(
        "--ui",
        is_flag=True,
        help="Serve the web UI at /ui, with the access rules of /metrics. It changes nothing.",
    ),
)


@click.command(short_help="Schedule the pods of a live cluster.")
@options.configuration
@options.cluster
@click.option(
    "--feature-gates",
    "feature_gates",
    metavar="NAME=BOOL,...",
    help="Turn features on or off, for example DRADeviceTaints=false,GangScheduling=true.",
)
@click.option(
    "--master",
    metavar="URL",
    help="The address of the API server; overrides that of the kubeconfig.",
)
@click.option(
    "--kube-api-qps",
    "qps",
    type=float,
    help="Requests per second to the API server; -1 means no limit. [50]",
)
@click.option(
    "--kube-api-burst", "burst", type=int, help="Requests in a burst above that rate. [100]"
)
@leader_election
@click.option(
    "--grace-period",
    "grace_seconds",
    type=DurationType(),
    default="30s",
    show_default=True,
    callback=_not_negative,
    help="How long it may take to end after SIGTERM or SIGINT; outstanding bindings, conditions "
    "and Events are written meanwhile.",
)
@serving_options
@shadow_options
@options.seed
@click.option(
    "-v",
    "--v",
    "verbosity",
    type=VerbosityType(),
    default=0,
    show_default=True,
    help="The verbosity of logs, 0 to 10.",
)
@click.option(
    "--logging-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="The format of log lines.",
)
@click.pass_context
def run(
    outer: click.Context,
    /,
    config_file: str | None,
    context: str | None,
    master: str | None,
    seed: int,
    verbosity: int,
    logging_format: str,
    grace_seconds: float,
    serving: ServingOptions,
    shadow: ShadowOptions,
    **flags: Any,
) -> None:
    """Schedule the pods of a live cluster, next to kube-scheduler or instead of it.

    Flags override the file of --config. The exit code is 0 after SIGTERM or SIGINT, and 1 after
    the lease was lost, or after a second signal, which ends it at once.

    With --shadow it schedules nothing and takes no lease: it decides for the pods of another
    scheduler and compares.
    """
    import random
    import time

    from msgspec import structs

    from moorage.api import config
    from moorage.live import kubeconfig, logs, start
    from moorage.live.extenders import HttpExtenders
    from moorage.live.timed import TimedScheduler
    from moorage.metrics.meter import Meter
    from moorage.shadow.scheduler import ShadowScheduler

    shadow.check()
    logs.configure(logging_format, verbosity)
    plugin_output.observe(logs.named("plugins").error)
    configuration = _with_flags(config.load(config_file), **flags)
    if shadow.is_shadow:
        configuration = shadow.applied(configuration)
    connection = kubeconfig.find(configuration.client_connection.kubeconfig, context=context)
    if master:
        connection = structs.replace(connection, server=master.rstrip("/"))
    extenders = HttpExtenders(configuration.extenders) if configuration.extenders else None
    try:
        meter = Meter(time.perf_counter, random.Random().random, JOURNAL_LIMIT)
        companion = serving.companion(configuration, meter, reviews=not shadow.is_shadow)
        if shadow.is_shadow:
            shadowing = ShadowScheduler(configuration, meter, seed=seed)
            scheduler: TimedScheduler = shadowing
            companion = shadow.companion(companion, shadowing.tally)
        else:
            scheduler = TimedScheduler(configuration, meter, seed=seed, extenders=extenders)
        scheduler.metrics.host = connection.server.partition("//")[2]
        work = start.schedule(
            configuration,
            connection,
            scheduler,
            companion=companion,
            extenders=extenders,
            observer=scheduler.metrics.requested,
            read_only=shadow.is_shadow,
            grace_seconds=grace_seconds,
        )
        code = start.run(work)
        if isinstance(scheduler, ShadowScheduler):
            scheduler.settle()
            shadow.finish(scheduler.tally)
        outer.exit(code)
    finally:
        if extenders is not None:
            extenders.close()


def _with_flags(configuration: Any, **flags: Any) -> Any:
    """The configuration with the values of the given flags."""
    from msgspec import structs

    from moorage.api import config

    connection: dict[str, Any] = {
        name: flags.pop(name) for name in ("kubeconfig", "qps", "burst") if name in flags
    }
    gates = dict(configuration.feature_gates)
    try:
        gates |= config.feature_gates.parse(flags.pop("feature_gates", None) or "")
    except ValueError as error:
        raise ConfigError([f"--feature-gates: {error}"]) from None
    changed = structs.replace(
        configuration,
        feature_gates=gates,
        leader_election=structs.replace(configuration.leader_election, **_given(flags)),
        client_connection=structs.replace(configuration.client_connection, **_given(connection)),
    )
    if problems := config.problems(changed):
        raise ConfigError(problems)
    return changed


def _given(flags: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in flags.items() if value is not None}
