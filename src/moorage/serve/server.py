"""The server: store, API, control plane and HTTP, put together."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from aiohttp import web

from moorage import garbage
from moorage.api import config as configurations
from moorage.api import timestamps
from moorage.api.config import SchedulerConfiguration
from moorage.cluster.api_server import ApiServer
from moorage.cluster.objects import validation
from moorage.cluster.resources import NODES
from moorage.core.journal import Journal
from moorage.core.scheduler import Scheduler
from moorage.errors import InputError
from moorage.live import http_server
from moorage.serve import access as serve_access
from moorage.serve import initial_objects
from moorage.serve.access import ServerAccess
from moorage.serve.control_plane import ControlPlane, steady_clock
from moorage.serve.initial_objects import SourceObject
from moorage.serve.journaled_store import open_store
from moorage.serve.rest.app import AppSettings, make_app
from moorage.serve.result_annotations import AnnotatingScheduler
from moorage.serve.sqlite import SqliteJournal

DEFAULT_NODES = 10
# How long open watches may take to end at shutdown.
SHUTDOWN_SECONDS = 1.0
# The limit of the scheduler's journal in memory.
MAX_FACTS = 20_000


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options of `moorage serve`."""

    access: ServerAccess
    kubeconfig: Path
    node_count: int | None = None  # None: DEFAULT_NODES, unless there are other nodes
    found: list[SourceObject] = field(default_factory=list)
    configuration: SchedulerConfiguration | None = None  # None: no scheduler runs
    data_dir: Path | None = None
    annotate_results: bool = False
    runs_controllers: bool = True


async def serve(options: ServeOptions, say: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; raises InputError if the start fails."""
    api = open_api(options.data_dir)
    access = options.access
    plain = configurations.to_dict(options.configuration) if options.configuration else None
    chosen = scheduler(options)
    app = make_app(api, AppSettings(token=access.token, configuration=plain, scheduler=chosen))
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with http_server.running(app, shutdown_seconds=SHUTDOWN_SECONDS) as runner:
        _add_initial_objects(api, options, lambda text: say(f"warning: {text}"))
        control_plane = ControlPlane(
            api,
            chosen,
            stopwatch=time.perf_counter,
            runs_controllers=options.runs_controllers,
        )
        await api.store.wait_until_durable()
        port = await _listen(runner, access)
        initial_objects.add_kubernetes_service(api, access.address, port)
        running = {"controller-manager": options.runs_controllers, "scheduler": chosen is not None}
        initial_objects.add_component_statuses(api, running)
        url = access.url(port)
        config = serve_access.kubeconfig_text(url, token=access.token, authority=access.certificate)
        serve_access.write_kubeconfig(options.kubeconfig, config)
        say(greeting(api, options, url))
        garbage.collect_rarely()
        await _run_until(control_plane, stop)


def open_api(data_dir: Path | None) -> ApiServer:
    """An API server on the data of a folder, or in memory."""
    now = steady_clock()
    random = Random()
    store = open_store(
        clock=lambda: timestamps.to_text(now()),
        uid=lambda: validation.generate_uid(random),
        journal=None if data_dir is None else SqliteJournal(data_dir),
    )
    return ApiServer(store, now=now, random=random)


def _add_initial_objects(
    api: ApiServer, options: ServeOptions, warn: Callable[[str], None]
) -> None:
    initial_objects.add_objects(api, options.found, warn)
    count = options.node_count
    if count is None:
        count = 0 if api.store.count(NODES) else DEFAULT_NODES
    initial_objects.add_nodes(api, count)


def scheduler(options: ServeOptions) -> Scheduler | None:
    """The scheduler of the options, if one runs in this process."""
    if options.configuration is None:
        return None
    journal = Journal(limit=MAX_FACTS)
    if options.annotate_results:
        return AnnotatingScheduler(options.configuration, journal)
    return Scheduler(options.configuration, journal=journal)


async def _listen(runner: web.AppRunner, access: ServerAccess) -> int:
    """Start to listen; returns the port, which the system chooses for `--port 0`."""
    try:
        return await http_server.listen(runner, access.address, access.port, access.ssl_context())
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        if "in use" in why:
            why = "the address is in use; is one running already? --port 0 takes any that is free"
        raise InputError(f"cannot listen on {access.address}:{access.port}: {why}") from None


async def _run_until(control_plane: ControlPlane, stop: asyncio.Event) -> None:
    """Run the control plane until the stop event or an exception."""
    tasks = (asyncio.create_task(control_plane.run()), asyncio.create_task(stop.wait()))
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def greeting(api: ApiServer, options: ServeOptions, url: str) -> str:
    """How to connect."""
    nodes = api.store.count(NODES)
    kept = "in memory" if options.data_dir is None else f"kept in {options.data_dir}"
    by = "" if options.configuration is not None else "; nobody schedules"
    return (
        f"Moorage serves {nodes} node{'' if nodes == 1 else 's'} at {url} ({kept}{by})\n\n"
        f"  export KUBECONFIG={options.kubeconfig.absolute()}\n"
        "  kubectl get nodes\n\n"
        f"The cluster in a browser: {url}/ui\n"
        "Ctrl-C stops it."
    )
