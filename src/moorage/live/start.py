"""From a configuration and a connection to a scheduler at work."""

import asyncio
import signal
import socket
import uuid
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from moorage.api.config import SchedulerConfiguration
from moorage.core.scheduler import Scheduler
from moorage.framework.registry import Registry
from moorage.live import kinds
from moorage.live.client import Client, Observer
from moorage.live.connection import Connection
from moorage.live.lease import Lease
from moorage.live.ports import Ports
from moorage.live.run import Live

# What goes on beside the scheduler for as long as it runs, such as the health endpoints.
Beside = Callable[[Live], AbstractAsyncContextManager[Any]]


async def schedule(
    configuration: SchedulerConfiguration,
    connection: Connection,
    scheduler: Scheduler,
    *,
    beside: Beside = lambda live: nullcontext(),
    ports: Ports | None = None,
    observer: Observer | None = None,
) -> int:
    """Schedule a cluster until a signal comes or the lease is lost; the exit code."""
    wanted = configuration.client_connection
    async with Client(connection, per_second=wanted.qps, burst=wanted.burst) as client:
        client.observer = observer
        await client.check()
        live = _live(configuration, scheduler, client, ports)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, live.stop)
        async with beside(live):
            return await live.run()


def _live(
    configuration: SchedulerConfiguration,
    scheduler: Scheduler,
    client: Client,
    ports: Ports | None,
) -> Live:
    host = socket.gethostname()
    election = configuration.leader_election
    lease = None
    if election.leader_elect:
        lease = Lease(client.without_bucket(), election, f"{host}_{uuid.uuid4()}")
    return Live(
        scheduler,
        client,
        kinds.watched(plugins(configuration)),
        host=host,
        lease=lease,
        delay_cache=configuration.delay_cache_until_active,
        ports=ports,
    )


def plugins(configuration: SchedulerConfiguration) -> dict[str, type[Any]]:
    """The plugins that are enabled in some profile."""
    registry = Registry()
    named = [name for profile in configuration.profiles for name in profile.plugins.names()]
    found = {name: registry.find(name, configuration.base_dir) for name in sorted(set(named))}
    return {name: cls for name, cls in found.items() if cls is not None}


def run(work: Coroutine[Any, Any, int]) -> int:
    """Run to the end, on uvloop where it is installed."""
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(work)
    finally:
        work.close()  # Ctrl-C may come before its first step; Python complains of one never taken.


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
