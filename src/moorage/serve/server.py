"""The server: store, API, controllers, kubelets, scheduler and HTTP, put together."""

import asyncio
import contextlib
import gc
import signal
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from aiohttp import web

from moorage.api.config import SchedulerConfiguration
from moorage.core.journal import Journal
from moorage.core.scheduler import Scheduler
from moorage.errors import InputError
from moorage.serve import access as serve_access
from moorage.serve import initial_objects, timestamps
from moorage.serve.access import ServerAccess
from moorage.serve.api_server import ApiServer
from moorage.serve.control_plane import ControlPlane, steady_clock
from moorage.serve.initial_objects import SourceObject
from moorage.serve.resources import NODES
from moorage.serve.rest.app import AppSettings, make_app
from moorage.serve.sqlite import SqliteJournal
from moorage.serve.store import Store

DEFAULT_NODES = 10
# How long clients that still watch are waited for at the end.
FAREWELL_SECONDS = 1.0
# The scheduler's own notes; what they are about is in the store for good.
FACTS_KEPT = 20_000


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What is to be served, to whom, and where it is kept."""

    access: ServerAccess
    kubeconfig: Path
    node_count: int | None = None  # None: as many as usual, if there are no others
    found: list[SourceObject] = field(default_factory=list)
    configuration: SchedulerConfiguration | None = None  # None: somebody else schedules
    data_dir: Path | None = None


async def serve(plan: ServeOptions, say: Callable[[str], None]) -> None:
    """Serve until a signal says that it is enough; raises InputError if it cannot begin."""
    api = open_api(plan.data_dir)
    access = plan.access
    app = make_app(api, AppSettings(token=access.token))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=FAREWELL_SECONDS)
    enough = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, enough.set)
    try:
        await runner.setup()
        _fill(api, plan)
        playground = ControlPlane(api, scheduler(plan), stopwatch=time.perf_counter)
        await api.store.wait_until_durable()
        port = await _listen(runner, access)
        url = access.url(port)
        config = serve_access.kubeconfig_text(url, token=access.token, authority=access.certificate)
        serve_access.write_kubeconfig(plan.kubeconfig, config)
        say(greeting(api, plan, url))
        _spare_the_collector()
        await _live(playground, enough)
    finally:
        await runner.cleanup()


def open_api(data_dir: Path | None) -> ApiServer:
    """An API server on what a folder holds, or on nothing yet."""
    now = steady_clock()
    random = Random()
    store = Store(
        clock=lambda: timestamps.to_text(now()),
        uid=lambda: str(uuid.UUID(int=random.getrandbits(128), version=4)),
        journal=None if data_dir is None else SqliteJournal(data_dir),
    )
    return ApiServer(store, now=now, random=random)


def _fill(api: ApiServer, plan: ServeOptions) -> None:
    initial_objects.add_objects(api, plan.found)
    count = plan.node_count
    if count is None:
        count = 0 if api.store.count(NODES) else DEFAULT_NODES
    initial_objects.add_nodes(api, count)


def scheduler(plan: ServeOptions) -> Scheduler | None:
    """The scheduler that the plan asks for."""
    if plan.configuration is None:
        return None
    return Scheduler(plan.configuration, journal=Journal(limit=FACTS_KEPT))


async def _listen(runner: web.AppRunner, access: ServerAccess) -> int:
    """Begin to listen; the port is of interest where any would do."""
    site = web.TCPSite(runner, access.address, access.port, ssl_context=access.context())
    try:
        await site.start()
    except OSError as error:
        where = f"{access.address}:{access.port}"
        why = error.strerror or str(error)
        hint = "; is one running already? --port 0 takes any that is free"
        in_use = "in use" in why
        text = "the address is in use" + hint if in_use else why.lower()
        raise InputError(f"cannot listen on {where}: {text}") from None
    port: int = runner.addresses[0][1]
    return port


async def _live(playground: ControlPlane, enough: asyncio.Event) -> None:
    """Let it live until somebody has enough, or it dies of something."""
    life = asyncio.create_task(playground.run())
    end = asyncio.create_task(enough.wait())
    await asyncio.wait((life, end), return_when=asyncio.FIRST_COMPLETED)
    for task in (life, end):
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _spare_the_collector() -> None:
    """Objects of a store live long and form no cycles: looking through them all takes too long."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def greeting(api: ApiServer, plan: ServeOptions, url: str) -> str:
    """How to connect."""
    nodes = api.store.count(NODES)
    kept = "in memory" if plan.data_dir is None else f"kept in {plan.data_dir}"
    by = "" if plan.configuration is not None else "; nobody schedules"
    return (
        f"Moorage serves {nodes} node{'' if nodes == 1 else 's'} at {url} ({kept}{by})\n\n"
        f"  export KUBECONFIG={plan.kubeconfig.absolute()}\n"
        "  kubectl get nodes\n\n"
        "Ctrl-C ends it."
    )
