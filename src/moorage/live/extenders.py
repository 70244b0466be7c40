"""HttpExtenders: calls to the HTTP extenders of a configuration, and their JSON.

A scheduling cycle that calls an extender cannot continue without the response, so its thread waits.
The calls run on an event loop of their own in a thread of their own: waiting never blocks the loop
that renews the lease and watches the cluster.

The JSON has Kubernetes' extender v1 types. Requests use the capitalised names, and null for what is
absent. Responses are decoded whatever the case of their keys, because many extenders write lower
camel case.
"""

import asyncio
import concurrent.futures
import ssl
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from moorage.api import config
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.server_requests import BindPod
from moorage.core.effects import Done, Failed, Outcome, Unknown
from moorage.core.extenders import Call, ExtenderVictims, FilterResult
from moorage.errors import ConfigError
from moorage.framework.post_filter import Candidate
from moorage.live import logs, tls
from moorage.live.api_errors import ApiError, NoResponseError, NotSentError
from moorage.live.connection import ServerTrust
from moorage.live.http1 import ConnectionPool
from moorage.live.transport import Transport

T = TypeVar("T")
S = TypeVar("S", bound=Struct)

LOG = logs.named("extender")


class ExtenderError(Exception):
    """An extender reported an error, or its response cannot be decoded."""


class CallLoop:
    """An event loop in a thread of its own, on which extenders are called."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="extenders", daemon=True)
        self._callers = concurrent.futures.ThreadPoolExecutor(thread_name_prefix="extender")
        self._thread.start()

    def wait(self, call: Coroutine[Any, Any, T]) -> T:
        """Run a call, and wait for it in this thread."""
        return self._begin(call).result()

    async def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Run a call, and await it on another loop."""
        return await asyncio.wrap_future(self._begin(call))

    def at_once(self, calls: Sequence[Call]) -> list[Any]:
        """Run calls that wait in threads; returns each one's result or the exception it raised."""
        return [
            future.exception() or future.result()
            for future in [self._callers.submit(call) for call in calls]
        ]

    def close(self) -> None:
        """Stop the loop."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._callers.shutdown()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _begin(self, call: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        return asyncio.run_coroutine_threadsafe(call, self._loop)


def connect(settings: config.Extender) -> Transport:
    """The connections to an extender."""
    server_name = settings.tls_config.server_name if settings.tls_config else ""
    return ConnectionPool(settings.url_prefix, server_name or None)


class HttpExtenders:
    """The extenders of a configuration."""

    def __init__(
        self,
        extenders: Iterable[config.Extender],
        *,
        connect: Callable[[config.Extender], Transport] = connect,
        calls: Callable[[], CallLoop] = CallLoop,
    ) -> None:
        settings = list(extenders)
        contexts = [_ssl_context(each, i) for i, each in enumerate(settings)]
        self._calls = calls()
        self.extenders = [
            HttpExtender(each, connect(each), context, self._calls)
            for each, context in zip(settings, contexts, strict=True)
        ]
        self.at_once = self._calls.at_once

    async def bind(self, request: BindPod) -> Outcome:
        """Let the extender that a request names bind its pod; never raises."""
        named = [each for each in self.extenders if each.settings.url_prefix == request.extender]
        if not named:
            return Failed(f"there is no extender {request.extender}")
        return await self._calls.run(named[0].bind(request))

    def close(self) -> None:
        """Close the connections; the calls in progress fail."""
        self._calls.wait(self._close_connections())
        self._calls.close()

    async def _close_connections(self) -> None:
        for extender in self.extenders:
            extender.transport.close()
        await asyncio.sleep(0)  # Connections are closed in the next iteration of the loop.


class HttpExtender:
    """An extender that is called by POST; implements core.extenders.ExtenderClient."""

    def __init__(
        self,
        settings: config.Extender,
        transport: Transport,
        ssl_context: ssl.SSLContext | None,
        calls: CallLoop,
    ) -> None:
        self.settings = settings
        self.transport = transport
        self._ssl = ssl_context
        self._calls = calls
        self._headers = transport.encode_headers({"Content-Type": "application/json"})
        self._nodes = NodeEncoder()
        # Whether the extender has its own copy of the nodes, so that names are enough.
        self._names = settings.node_cache_capable

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> FilterResult:
        body = encode_nodes(pod, nodes, self._nodes, names=self._names)
        return self._call(
            self.settings.filter_verb, body, partial(decode_filter_result, names=self._names)
        )

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Iterable[tuple[str, int]]:
        body = encode_nodes(pod, nodes, self._nodes, names=self._names)
        return self._call(self.settings.prioritize_verb, body, decode_scores)

    def preempt(
        self, pod: Pod, candidates: Mapping[str, Candidate]
    ) -> Mapping[str, ExtenderVictims]:
        body = encode_victims(pod, candidates, names=self._names)
        return self._call(self.settings.preempt_verb, body, decode_victims)

    async def bind(self, request: BindPod) -> Outcome:
        """Bind a pod; without a response the outcome is unknown."""
        try:
            _decode(
                await self._post(self.settings.bind_verb, encode_binding(request)), _BindingResult
            )
        except NoResponseError as error:
            return Unknown(self._log(error))
        except (ExtenderError, NotSentError) as error:
            return Failed(self._log(error))
        return Done()

    def _call(self, verb: str, body: bytes, decode: Callable[[bytes], T]) -> T:
        try:
            return decode(self._calls.wait(self._post(verb, body)))
        except (ExtenderError, ApiError) as error:
            raise ExtenderError(self._log(error)) from None

    async def _post(self, verb: str, body: bytes) -> bytes:
        """Call a verb; raises ExtenderError for an error status, else as a Transport does."""
        seconds = self.settings.http_timeout_seconds
        url = f"{self.settings.url_prefix.rstrip('/')}/{verb}"
        path = f"/{verb}"
        try:
            async with asyncio.timeout(seconds):  # Connecting counts as well.
                response = await self.transport.request(
                    "POST",
                    path,
                    self._headers,
                    body,
                    seconds=seconds,
                    ssl_context=self._ssl,
                    before_sending=lambda: None,
                )
        except TimeoutError:
            raise NoResponseError(f'Post "{url}": no answer within {seconds:g} s') from None
        except ApiError as error:
            raise type(error)(
                f'Post "{url}": {str(error).removeprefix(f"POST {path}: ")}'
            ) from None
        if response.status != 200:
            raise ExtenderError(f"failed {verb} with extender at URL {url}, code {response.status}")
        return response.body

    def _log(self, error: Exception) -> str:
        text = str(error)
        LOG.warning("extender failed", url=self.settings.url_prefix, why=text)
        return text


def _ssl_context(settings: config.Extender, index: int) -> ssl.SSLContext | None:
    path = f"extenders[{index}].tlsConfig"
    given = settings.tls_config or config.ExtenderTLSConfig()
    authority = _pem(given.ca_data, given.ca_file, f"{path}.caFile")
    # As in kube-scheduler: HTTPS without an authority is not verified.
    insecure = given.insecure or (settings.enable_https and not authority)
    trust = ServerTrust(authority=authority, insecure=insecure, server_name=given.server_name)
    certificate = _pem(given.cert_data, given.cert_file, f"{path}.certFile")
    key = _pem(given.key_data, given.key_file, f"{path}.keyFile")
    if not settings.url_prefix.startswith("https:"):
        return None
    return tls.client_context(trust, certificate, key, path)


def _pem(data: bytes, file: str, path: str) -> bytes:
    if data or not file:
        return data
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ConfigError([f'{path}: cannot read "{file}": {error.strerror}']) from None


# Requests


class NodeEncoder:
    """Nodes as JSON; a node is encoded again only when it has changed."""

    def __init__(self) -> None:
        self._nodes: dict[str, tuple[Node, Raw]] = {}

    def encode(self, node: Node) -> Raw:
        """A node as JSON."""
        known = self._nodes.get(node.name)
        if known is None or known[0] is not node:
            known = self._nodes[node.name] = (node, Raw(msgspec.json.encode(node)))
        return known[1]

    def keep_only(self, nodes: Sequence[Node]) -> None:
        """Drop deleted nodes, once they are the majority."""
        if len(self._nodes) > 2 * len(nodes) + 100:
            names = {node.name for node in nodes}
            self._nodes = {name: kept for name, kept in self._nodes.items() if name in names}


def encode_nodes(pod: Pod, nodes: Sequence[Node], encoder: NodeEncoder, *, names: bool) -> bytes:
    """ExtenderArgs, for filter and prioritize: nodes as objects or as names."""
    listed: Any = None
    if not names:
        listed = {"metadata": {}, "items": [encoder.encode(node) for node in nodes]}
        encoder.keep_only(nodes)
    named = [node.name for node in nodes] if names else None
    return msgspec.json.encode({"Pod": pod, "Nodes": listed, "NodeNames": named})


def encode_victims(pod: Pod, candidates: Mapping[str, Candidate], *, names: bool) -> bytes:
    """ExtenderPreemptionArgs: victims as objects, or as UIDs for an extender that has them."""
    victims = {
        node: {
            "Pods": [{"UID": v.uid} if names else v for v in each.victims],
            "NumPDBViolations": each.violations,
        }
        for node, each in candidates.items()
    }
    given = {"NodeNameToVictims": victims, "NodeNameToMetaVictims": None}
    if names:
        given = {"NodeNameToVictims": None, "NodeNameToMetaVictims": victims}
    return msgspec.json.encode({"Pod": pod, **given})


def encode_binding(request: BindPod) -> bytes:
    """ExtenderBindingArgs."""
    pod = request.pod
    names = {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid}
    return msgspec.json.encode({**names, "Node": request.node})


# Responses


class _Metadata(Struct, frozen=True):
    name: str = ""


class _Node(Struct, frozen=True):
    metadata: _Metadata = _Metadata()


class _Nodes(Struct, frozen=True):
    items: list[_Node] | None = None


class _FilterResult(Struct, frozen=True, rename={"unresolvable": "failedandunresolvablenodes"}):
    nodes: _Nodes | None = None
    nodenames: list[str] | None = None
    failednodes: dict[str, str] | None = None
    unresolvable: dict[str, str] | None = None
    error: str | None = None


class _HostPriority(Struct, frozen=True):
    host: str = ""
    score: int = 0


class _MetaPod(Struct, frozen=True):
    uid: str = ""


class _MetaVictims(Struct, frozen=True):
    pods: list[_MetaPod] | None = None
    numpdbviolations: int = 0


class _PreemptionResult(Struct, frozen=True):
    nodenametometavictims: dict[str, _MetaVictims | None] | None = None


class _BindingResult(Struct, frozen=True):
    error: str | None = None


def decode_filter_result(body: bytes, *, names: bool) -> FilterResult:
    """The response to filter."""
    result = _decode(body, _FilterResult)
    nodes: list[str] = []
    if names and result.nodenames is not None:
        nodes = result.nodenames
    elif result.nodes is not None:
        nodes = [node.metadata.name for node in result.nodes.items or ()]
    return FilterResult(
        nodes=nodes, failed=result.failednodes or {}, unresolvable=result.unresolvable or {}
    )


def decode_scores(body: bytes) -> list[tuple[str, int]]:
    """The response to prioritize."""
    plain = _decode_json(body)
    if not isinstance(plain, list | None):
        raise ExtenderError(f"a list of hosts is expected, this is {type(plain).__name__}")
    hosts = [_convert(_fold_keys(each), _HostPriority) for each in plain or ()]
    return [(each.host, each.score) for each in hosts]


def decode_victims(body: bytes) -> dict[str, ExtenderVictims]:
    """The response to preempt."""
    result = _decode(body, _PreemptionResult)
    found = result.nodenametometavictims or {}
    return {
        node: ExtenderVictims(tuple(pod.uid for pod in each.pods or ()), each.numpdbviolations)
        for node, each in ((node, each or _MetaVictims()) for node, each in found.items())
    }


# Maps whose keys are names of nodes, which keep their case.
_BY_NAME = ("failednodes", "failedandunresolvablenodes", "nodenametometavictims")


def _decode(body: bytes, struct: type[S]) -> S:
    """A response; raises the error that it contains, if any."""
    plain = _decode_json(body)
    result = _convert(_fold_keys({} if plain is None else plain), struct)
    if error := getattr(result, "error", None):
        raise ExtenderError(error)
    return result


def _decode_json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ExtenderError(f"the answer is not JSON: {error}") from None


def _convert(plain: Any, struct: type[S]) -> S:
    try:
        return msgspec.convert(plain, struct)
    except msgspec.ValidationError as error:
        raise ExtenderError(f"the answer cannot be read: {error}") from None


def _fold_keys(plain: Any) -> Any:
    """Convert keys to lower case and drop nulls, which mean "absent" as in Go."""
    match plain:
        case dict():
            members = {key.lower(): member for key, member in plain.items() if member is not None}
            return {key: _fold_member(key, member) for key, member in members.items()}
        case list():
            return [_fold_keys(each) for each in plain]
        case _:
            return plain


def _fold_member(key: str, member: Any) -> Any:
    if key in _BY_NAME and isinstance(member, dict):
        return {name: _fold_keys(each) for name, each in member.items()}
    return _fold_keys(member)
