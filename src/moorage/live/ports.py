"""Ports: what a cycle may have to wait for: HTTP extenders.

A cycle that asks an extender cannot go on without the answer, so its thread waits. The calls
themselves run on an event loop of their own, in a thread of their own: whoever waits, the loop
that renews leases and watches the cluster is not the one that is needed for the answer.
"""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import aiohttp

from moorage.api import config
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.core.effects import Done, Failed, Outcome, Unknown
from moorage.core.extenders import Call, ExtenderVictims, FilterResult
from moorage.errors import ConfigError
from moorage.framework.effects import BindPod
from moorage.framework.post_filter import Candidate
from moorage.live import extender_wire, logs, tls
from moorage.live.connection import ServerTrust
from moorage.live.extender_wire import ExtenderError, Fragments

T = TypeVar("T")

LOG = logs.named("extender")


class Ports:
    """The extenders of a configuration, and the loop that speaks to them."""

    def __init__(self, extenders: Iterable[config.Extender]) -> None:
        self.extenders = [
            HttpExtender(settings, f"extenders[{i}].tlsConfig", self)
            for i, settings in enumerate(extenders)
        ]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="extenders", daemon=True)
        self._waiting = concurrent.futures.ThreadPoolExecutor(thread_name_prefix="extender")
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def wait(self, call: Coroutine[Any, Any, T]) -> T:
        """The outcome of a call, waited for in this thread."""
        return self._begin(call).result()

    async def bind(self, request: BindPod) -> Outcome:
        """Have the extender that a request names bind its pod; never raises."""
        named = [each for each in self.extenders if each.settings.url_prefix == request.extender]
        if not named:
            return Failed(f"there is no extender {request.extender}")
        return await asyncio.wrap_future(self._begin(named[0].bind(request)))

    def at_once(self, asked: Sequence[Call]) -> list[Any]:
        """Several calls together; each one's answer, or what it raised."""
        return [
            future.exception() or future.result()
            for future in [self._waiting.submit(call) for call in asked]
        ]

    def close(self) -> None:
        """Give up what is under way, and end."""
        if not self._loop.is_closed():
            self.wait(self._close_sessions())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._waiting.shutdown()

    async def _close_sessions(self) -> None:
        for extender in self.extenders:
            await extender.close()
        # Connections end in the loop's next turns.
        await asyncio.sleep(0)

    def _begin(self, call: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        return asyncio.run_coroutine_threadsafe(call, self._loop)


class HttpExtender:
    """An extender that is asked by POST; see core.extenders.ExtenderClient."""

    def __init__(self, settings: config.Extender, place: str, ports: Ports) -> None:
        self.settings = settings
        self._ports = ports
        self._ssl = _ssl_context(settings, place)
        self._session: aiohttp.ClientSession | None = None
        self._fragments = Fragments()

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> FilterResult:
        question = self._node_question(pod, nodes)
        read = partial(extender_wire.passed, names=self._names)
        return self._ask(self.settings.filter_verb, question, read)

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Iterable[tuple[str, int]]:
        question = self._node_question(pod, nodes)
        return self._ask(self.settings.prioritize_verb, question, extender_wire.scores)

    def preempt(
        self, pod: Pod, candidates: Mapping[str, Candidate]
    ) -> Mapping[str, ExtenderVictims]:
        question = extender_wire.preempt_question(pod, candidates, names=self._names)
        return self._ask(self.settings.preempt_verb, question, extender_wire.chosen)

    async def bind(self, request: BindPod) -> Outcome:
        """Have a pod bound; what was not answered may have happened all the same."""
        verb = self.settings.bind_verb
        try:
            extender_wire.check_bound(await self._post(verb, extender_wire.bind_question(request)))
        except ExtenderError as refusal:
            return Failed(self._noted(refusal))
        except aiohttp.ClientConnectorError as trouble:  # Nothing has reached it.
            return Failed(self._noted(self._described(verb, trouble)))
        except (aiohttp.ClientError, OSError) as trouble:
            return Unknown(self._noted(self._described(verb, trouble)))
        return Done()

    async def close(self) -> None:
        """Give back its connections."""
        if self._session is not None:
            await self._session.close()

    @property
    def _names(self) -> bool:
        return self.settings.node_cache_capable

    def _node_question(self, pod: Pod, nodes: Sequence[Node]) -> bytes:
        return extender_wire.node_question(pod, nodes, self._fragments, names=self._names)

    def _ask(self, verb: str, question: bytes, read: Callable[[bytes], T]) -> T:
        try:
            return read(self._ports.wait(self._post(verb, question)))
        except ExtenderError as trouble:
            self._noted(trouble)
            raise
        except (aiohttp.ClientError, OSError) as trouble:
            raise ExtenderError(self._noted(self._described(verb, trouble))) from trouble

    async def _post(self, verb: str, question: bytes) -> bytes:
        if self._session is None:
            connector = aiohttp.TCPConnector(ssl=self._ssl)
            self._session = aiohttp.ClientSession(
                connector=connector, headers={"Content-Type": "application/json"}
            )
        seconds = self.settings.http_timeout_seconds
        server_name = self.settings.tls_config.server_name if self.settings.tls_config else ""
        async with self._session.post(
            self._url(verb),
            data=question,
            timeout=aiohttp.ClientTimeout(total=seconds),
            server_hostname=server_name or None,
        ) as response:
            if response.status != 200:
                raise ExtenderError(
                    f"failed {verb} with extender at URL {self._url(verb)}, code {response.status}"
                )
            return await response.read()

    def _url(self, verb: str) -> str:
        return f"{self.settings.url_prefix.rstrip('/')}/{verb}"

    def _described(self, verb: str, trouble: Exception) -> str:
        text = str(trouble) or type(trouble).__name__
        if isinstance(trouble, TimeoutError):
            text = f"no answer within {self.settings.http_timeout_seconds:g} s"
        return f'Post "{self._url(verb)}": {text}'

    def _noted(self, trouble: object) -> str:
        text = str(trouble)
        LOG.warning("extender failed", url=self.settings.url_prefix, trouble=text)
        return text


def _ssl_context(settings: config.Extender, place: str) -> Any:
    given = settings.tls_config or config.ExtenderTLSConfig()
    authority = _pem(given.ca_data, given.ca_file, f"{place}.caFile")
    # As in kube-scheduler: HTTPS without an authority is not verified.
    insecure = given.insecure or (settings.enable_https and not authority)
    return tls.context(
        ServerTrust(authority=authority, insecure=insecure, server_name=given.server_name),
        _pem(given.cert_data, given.cert_file, f"{place}.certFile"),
        _pem(given.key_data, given.key_file, f"{place}.keyFile"),
        place,
    )


def _pem(data: bytes, file: str, place: str) -> bytes:
    if data or not file:
        return data
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ConfigError([f'{place}: cannot read "{file}": {error.strerror}']) from None
