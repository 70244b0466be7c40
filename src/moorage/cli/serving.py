"""The flags of `moorage run` that say where and to whom it answers about itself."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

JOURNAL_LIMIT = 10_000

_OPTIONS = (
    click.option(
        "--bind-address",
        default="0.0.0.0",
        show_default=True,
        metavar="IP",
        help="Where to answer about health and metrics.",
    ),
    click.option(
        "--secure-port",
        type=click.IntRange(0, 65535),
        default=10259,
        show_default=True,
        help="The port for that; 0: do not answer.",
    ),
    click.option(
        "--serve-http", is_flag=True, help="Answer over plain HTTP instead of HTTPS there."
    ),
    click.option(
        "--tls-cert-file",
        default="",
        metavar="FILE",
        help="The certificate to show, in PEM. Without it: one of its own making.",
    ),
    click.option("--tls-private-key-file", default="", metavar="FILE", help="Its key."),
    click.option(
        "--authorization-always-allow-paths",
        "always",
        default="/healthz,/readyz,/livez",
        show_default=True,
        metavar="PATHS",
        help="Open to everybody; PATH* stands for all that begins so.",
    ),
    click.option(
        "--token-file",
        default="",
        metavar="FILE",
        help="Who brings the token in it may see all other paths too.",
    ),
)


def flags(command: F) -> F:
    """`--secure-port` and its companions, most of them under kube-scheduler's names."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def take(given: dict[str, Any]) -> dict[str, Any]:
    """Take these flags out of all that were given."""
    names = (
        "bind_address",
        "secure_port",
        "serve_http",
        "tls_cert_file",
        "tls_private_key_file",
        "always",
        "token_file",
    )
    return {name: given.pop(name) for name in names}


def measured(
    configuration: Any, seed: int, extenders: Any, serving: dict[str, Any]
) -> tuple[Any, Any]:
    """A scheduler that is measured, and what answers about it while it runs."""
    import random
    import time

    from moorage.errors import InputError

    try:
        from moorage.live.timed import TimedScheduler
        from moorage.metrics.meter import Meter
    except ModuleNotFoundError as missing:
        raise InputError(
            f"{missing.name} is not installed: moorage run needs it; pip install 'moorage[live]'"
        ) from None
    meter = Meter(time.perf_counter, random.Random().random, JOURNAL_LIMIT)
    scheduler = TimedScheduler(configuration, meter, seed=seed, extenders=extenders)
    return scheduler, _answering(configuration, meter, **serving)


def _answering(
    configuration: Any,
    meter: Any,
    *,
    bind_address: str,
    secure_port: int,
    serve_http: bool,
    tls_cert_file: str,
    tls_private_key_file: str,
    always: str,
    token_file: str,
) -> Any:
    from moorage.live import server, tls
    from moorage.live.authorization import Authorizer

    # Mistakes in these show at once, before the cluster is asked anything.
    context = None
    if secure_port and not serve_http:
        context = tls.server_context(tls_cert_file, tls_private_key_file)
    Authorizer(None, token_file=token_file)

    @asynccontextmanager
    async def answering(live: Any) -> AsyncIterator[None]:
        elector = live.elector
        if elector is not None:
            meter.election = lambda: (elector.settings.resource_name, elector.is_held)
        if not secure_port:
            yield
            return
        paths = [path.strip() for path in always.split(",") if path.strip()]
        client = live.client.without_bucket()
        authorizer = Authorizer(client, always=paths, token_file=token_file)
        answers = server.SecureServer(live, meter, configuration, authorizer)
        async with answers.listening(bind_address, secure_port, context):
            yield

    return answering
