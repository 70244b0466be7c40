"""Construct and run a LiveScheduler from a configuration and a connection."""

import asyncio
import faulthandler
import os
import signal
import socket
import uuid
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

from moorage.api.config import SchedulerConfiguration, plugin_sets
from moorage.core.scheduler import Scheduler
from moorage.framework.registry import Registry
from moorage.live import kinds
from moorage.live.client import Client, Observer
from moorage.live.connection import Connection
from moorage.live.extenders import HttpExtenders
from moorage.live.leader_election import LeaderElector
from moorage.live.run import GRACE_SECONDS, LiveScheduler

T = TypeVar("T")
KILLED = 1  # The exit code after a second signal, as of kube-scheduler.
# After the grace period: what the secure port and threads may take, before the process is killed.
END_SECONDS = 2.0
# A context that is active while the scheduler runs, such as the secure port.
Companion = Callable[[LiveScheduler], AbstractAsyncContextManager[Any]]


async def schedule(
    configuration: SchedulerConfiguration,
    connection: Connection,
    scheduler: Scheduler,
    *,
    companion: Companion = lambda live: nullcontext(),
    extenders: HttpExtenders | None = None,
    observer: Observer | None = None,
    read_only: bool = False,
    grace_seconds: float = GRACE_SECONDS,
) -> int:
    """Schedule a cluster until a signal arrives or the lease is lost; returns the exit code.

    After SIGTERM or SIGINT it takes `grace_seconds` at most; after a second one the process ends at
    once. With `read_only`, every request but GET is refused, and there is no leader election.
    """
    limits = configuration.client_connection
    async with Client(
        connection, per_second=limits.qps, burst=limits.burst, read_only=read_only
    ) as client:
        client.observer = observer
        await client.check()
        host = socket.gethostname()
        election = configuration.leader_election
        elector = None
        if election.leader_elect and not read_only:
            unlimited = client.with_own_bucket(is_limited=False)
            elector = LeaderElector(unlimited, election, f"{host}_{uuid.uuid4()}")
        live = LiveScheduler(
            scheduler,
            client,
            kinds.watched(plugins(configuration), configuration.feature_gates),
            host=host,
            elector=elector,
            delay_cache=configuration.delay_cache_until_active,
            extenders=extenders,
            grace_seconds=grace_seconds,
        )
        with _stopped_by_signals(live, grace_seconds):
            async with companion(live):
                return await live.run()


@contextmanager
def _stopped_by_signals(live: LiveScheduler, grace_seconds: float) -> Iterator[None]:
    """Stop at the first signal; the second one, and the end of the grace period, end the process.

    Handlers of the loop would have to wait for a plugin that does not return.
    """
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def end_at_once(*_: object) -> None:
        os._exit(KILLED)

    def stop(*_: object) -> None:
        for number in before:
            signal.signal(number, end_at_once)
        faulthandler.dump_traceback_later(grace_seconds + END_SECONDS, exit=True)
        loop.call_soon_threadsafe(live.stop)

    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is stop:
                signal.signal(number, handler)


def plugins(configuration: SchedulerConfiguration) -> dict[str, type[Any]]:
    """The plugins that are enabled in at least one profile."""
    registry = Registry()
    configuration = plugin_sets.with_gates(configuration)
    named = [name for profile in configuration.profiles for name in profile.plugins.names()]
    found = {name: registry.find(name, configuration.base_dir) for name in sorted(set(named))}
    return {name: cls for name, cls in found.items() if cls is not None}


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, on uvloop if that is installed."""
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(work)
    finally:
        faulthandler.cancel_dump_traceback_later()
        work.close()  # After Ctrl-C before its first step Python would warn about it.


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
