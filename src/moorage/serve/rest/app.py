"""The HTTP application: middlewares, routing, and errors as `Status` objects."""

import hmac
import ipaddress
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware

from moorage import terminal
from moorage.cluster.api_server import ApiServer
from moorage.cluster.resources import COMPONENT_STATUSES, ENDPOINTS, PODS, ResourcePath
from moorage.cluster.status_errors import (
    BadRequestError,
    ForbiddenError,
    InternalError,
    MethodNotAllowedError,
    StatusError,
    UnauthorizedError,
)
from moorage.core.scheduler import Scheduler
from moorage.serve import ui
from moorage.serve.openapi import protobuf_v2
from moorage.serve.openapi.documents import OpenApi
from moorage.serve.rest import discovery, negotiation, reads, requests, responses
from moorage.serve.rest.negotiation import DISCOVERY_V2
from moorage.serve.rest.reads import ReadRequests
from moorage.serve.rest.reviews import Reviews
from moorage.serve.rest.writes import WriteRequests
from moorage.ui import server as ui_server
from moorage.version import __version__

_log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class AppSettings:
    """The bearer token, if one is required, the size limit of requests, and the scheduler."""

    token: str = ""
    # Of the scheduler that runs in this process, as plain data, for `/configz`.
    configuration: dict[str, Any] | None = None
    scheduler: Scheduler | None = None
    request_limit: int = 3 * 1024 * 1024


def make_app(api: ApiServer, settings: AppSettings | None = None) -> web.Application:
    """The application that serves an API server over HTTP."""
    settings = settings or AppSettings()
    app = web.Application(
        client_max_size=settings.request_limit,
        middlewares=[
            error_responses,
            _check_origin,
            _check_token(settings.token) if settings.token else _check_host,
        ],
    )
    ui_server.mount(app, ui.source(api, settings.configuration, settings.scheduler))
    router = RequestRouter(api, settings.configuration)
    app.router.add_route("*", "/{path:.*}", router.handle)

    async def start(_app: web.Application) -> None:
        api.store.start()

    async def shut_down(_app: web.Application) -> None:
        router.close()

    async def stop(_app: web.Application) -> None:
        api.store.close()

    app.on_startup.append(start)
    app.on_shutdown.append(shut_down)
    app.on_cleanup.append(stop)
    return app


@web.middleware
async def error_responses(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Respond to an exception with a Status."""
    try:
        return await handler(request)
    except StatusError as error:
        return responses.error(error)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return responses.error(BadRequestError(error.reason, code=error.status))
    except RecursionError:
        return responses.error(BadRequestError("the request is nested too deeply"))
    except msgspec.MsgspecError as error:
        return responses.error(BadRequestError(f"the request cannot be read: {error}"))
    except ConnectionError:
        raise
    except Exception:
        _log.exception("%s %s", request.method, terminal.visible(request.path))
        return responses.error(InternalError("an internal error; the server's log has more"))


@web.middleware
async def _check_origin(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Reject requests of other web sites from a browser on this machine.

    Only browsers send an Origin. A site can resolve its own name to our address (DNS rebinding),
    but then its name is in the request, and only addresses are accepted.
    """
    origin = request.headers.get("Origin")
    if origin is not None:
        host = urlsplit(origin).netloc
        if host != request.host or not _is_address(host):
            raise ForbiddenError(f"a page of {origin[:100]!r} may not ask anything here")
    return await handler(request)


@web.middleware
async def _check_host(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Reject requests for another name, if the server requires no token.

    A web site can resolve its name to our address (DNS rebinding). A GET request from such a page
    has no Origin, but its Host is the name of the site.
    """
    host = request.headers.get("Host")
    if host and not _is_loopback(host):
        raise ForbiddenError(
            f"{host[:100]!r} is not served: without a token only loopback names and addresses are"
        )
    return await handler(request)


def _name(host: str) -> str:
    name, _, port = host.rpartition(":")
    return (name if port.isdecimal() else host).strip("[]").rstrip(".")


@lru_cache(maxsize=64)
def _is_loopback(host: str) -> bool:
    name = _name(host)
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _is_address(host: str) -> bool:
    if _name(host) == "localhost":
        return True
    try:
        ipaddress.ip_address(_name(host))
    except ValueError:
        return False
    return True


def _check_token(token: str) -> Middleware:
    expected = f"Bearer {token}".encode()

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if ui_server.is_public(request.path):
            return await handler(request)
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, expected):
            raise UnauthorizedError("Unauthorized")
        return await handler(request)

    return check


class RequestRouter:
    """Passes each request to its handler."""

    def __init__(self, api: ApiServer, configuration: dict[str, Any] | None = None) -> None:
        self._api = api
        self._configuration = configuration
        self._reads = ReadRequests(api)
        self._writes = WriteRequests(api)
        self._reviews = Reviews(api.now)
        self._openapi = OpenApi(api.registry)

    def close(self) -> None:
        """End all watches, and the evaluation of rules."""
        self._reads.watches.close()
        self._writes.close()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Handle any request."""
        path = request.path
        requests.check_timeout(request.query)
        if request.method == "GET" and (response := self._discovery(request, path)) is not None:
            return response
        if path.rstrip("/").endswith("/bindings") and request.method == "POST":
            return await self._bindings(request, path)
        parsed = requests.parse_path(self._api.registry, path)
        if request.method not in ("GET", "HEAD") and self._api.store.failure is not None:
            raise self._api.store.failure  # Before anything is changed.
        reads.accepted_format(request, parsed.resource)
        if parsed.resource.is_review or parsed.subresource == "token":
            return await self._review(request, parsed)
        if (parsed.resource.is_read_only or parsed.subresource == "log") and request.method not in (
            "GET",
            "HEAD",
        ):
            raise MethodNotAllowedError("the server does not allow this method on the resource")
        answer = await self._perform(request, parsed)
        if not answer.prepared and (text := _DEPRECATED.get(parsed.resource)):
            responses.with_warnings(answer, [text])
        return answer

    async def _perform(self, request: web.Request, parsed: ResourcePath) -> web.StreamResponse:
        match request.method:
            case "GET" | "HEAD":
                return await self._reads.get(request, parsed)
            case "POST":
                return await self._writes.post(request, parsed)
            case "PUT":
                return await self._writes.put(request, parsed)
            case "PATCH":
                return await self._writes.patch(request, parsed)
            case "DELETE":
                return await self._writes.delete(request, parsed)
        raise MethodNotAllowedError(f"the server does not know the method {request.method[:20]!r}")

    async def _review(self, request: web.Request, path: ResourcePath) -> web.StreamResponse:
        """A review of access, or the token of a service account; nothing is stored."""
        if request.method != "POST" or (path.resource.is_review and path.name):
            raise MethodNotAllowedError("the server does not allow this method on the resource")
        body = await requests.read_value(request)
        if path.resource.is_review:
            return responses.json(self._reviews.answer(path.resource, body), 201)
        account = self._api.store.get(path.resource, *path.key)
        return responses.json(self._reviews.token(account, body), 201)

    async def _bindings(self, request: web.Request, path: str) -> web.StreamResponse:
        """The deprecated way to bind: the pod's name is in the body."""
        match path.strip("/").split("/"):
            case ["api", "v1", "namespaces", namespace, "bindings"]:
                body = await requests.read_value(request)
                if not isinstance(body, dict):
                    raise BadRequestError("a Binding has to be an object")
                requests.check_metadata(body.get("metadata", {}))
                name = body.get("metadata", {}).get("name", "")
                pod = ResourcePath(PODS, namespace, name, "binding")
                return await self._writes.post(request, pod)
        raise requests.unknown_path()

    def _discovery(self, request: web.Request, path: str) -> web.Response | None:
        """Health, version, discovery and OpenAPI; None for any other path."""
        registry, accept = self._api.registry, request.headers.get("Accept", "")
        match path.strip("/").split("/"):
            case ["healthz" | "livez" | "readyz" as probe, *checks] if checks in ([], ["ping"]):
                if self._api.store.failure is not None:
                    raise self._api.store.failure
                verbose = f"[+]ping ok\n[+]store ok\n{probe} check passed\n"
                is_verbose = "verbose" in request.query and not checks
                return web.Response(text=verbose if is_verbose else "ok")
            case ["version"]:
                return responses.json(VERSION)
            case ["configz"] if self._configuration is not None:
                return responses.json({"componentconfig": self._configuration})
            case ["api" | "apis" as root]:
                accepted = negotiation.accepted_format(accept, (DISCOVERY_V2,))
                if accepted.form == DISCOVERY_V2:
                    response = responses.json(discovery.aggregated(registry, core=root == "api"))
                    response.headers["Content-Type"] = (
                        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
                    )
                    return response
                if root == "api":
                    return responses.json(discovery.api_versions())
                return responses.json(discovery.groups(registry))
            case ["api", "v1"]:
                return responses.json(discovery.resources(registry, "", "v1"))
            case ["apis", group]:
                return responses.json(discovery.group(registry, group))
            case ["apis", group, name]:
                return responses.json(discovery.resources(registry, group, name))
            case ["openapi", "v2"]:
                if protobuf_v2.MEDIA_TYPE in accept:
                    body = protobuf_v2.encode(self._openapi.v2())
                    return responses.raw(body, protobuf_v2.RESPONSE_TYPE)
                negotiation.accepted_format(accept)
                return responses.json(self._openapi.v2())
            case ["openapi", "v3"]:
                return responses.json(self._openapi.index())
            case ["openapi", "v3", *rest]:
                document = self._openapi.v3("/".join(rest))
                return None if document is None else responses.json(document)
            case [""]:
                return responses.json({"paths": ["/api", "/apis", "/healthz", "/version"]})
        return None


# Resources that an API server warns of.
_DEPRECATED = {
    ENDPOINTS: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    COMPONENT_STATUSES: "v1 ComponentStatus is deprecated in v1.19+",
}

# The version of Kubernetes that this API is compatible with.
VERSION = {
    "major": "1",
    "minor": "36",
    "gitVersion": f"v1.36.0+moorage-{__version__}",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    **dict.fromkeys(("goVersion", "compiler", "platform"), ""),
}
