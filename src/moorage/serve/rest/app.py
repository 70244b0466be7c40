"""The HTTP application: middlewares, routing, and errors as `Status` objects."""

import hmac
import ipaddress
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware

from moorage.serve.api_server import ApiServer
from moorage.serve.resources import PODS
from moorage.serve.rest import discovery, requests, responses
from moorage.serve.rest.reads import ReadRequests
from moorage.serve.rest.requests import DISCOVERY_V2, RequestPath
from moorage.serve.rest.writes import WriteRequests
from moorage.serve.status_errors import (
    BadRequestError,
    ForbiddenError,
    MethodNotAllowedError,
    StatusError,
    UnauthorizedError,
)
from moorage.version import __version__

_log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class AppSettings:
    """How the application is to behave."""

    token: str = ""  # of the bearer; none is asked for without one
    request_limit: int = 3 * 1024 * 1024


class Unexpected(StatusError):
    """A mistake of ours."""

    code = 500
    reason = "InternalError"


def make_app(api: ApiServer, settings: AppSettings | None = None) -> web.Application:
    """The application that serves an API server's verbs over HTTP."""
    settings = settings or AppSettings()
    app = web.Application(
        client_max_size=settings.request_limit,
        middlewares=[_refusals, _origin, _bearer(settings.token)],
    )
    server = RequestRouter(api)
    app.router.add_route("*", "/{path:.*}", server.answer)

    async def start(app: web.Application) -> None:
        del app
        api.store.start()

    async def shut_down(app: web.Application) -> None:
        del app
        server.close()

    async def stop(app: web.Application) -> None:
        del app
        api.store.close()

    app.on_startup.append(start)
    app.on_shutdown.append(shut_down)
    app.on_cleanup.append(stop)
    return app


@web.middleware
async def _refusals(request: web.Request, handler: Handler) -> web.StreamResponse:
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
        _log.exception("%s %s", request.method, request.path)
        return responses.error(Unexpected("an internal error; the server's log has more"))


@web.middleware
async def _origin(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Keep out pages of other sites, which a browser on this machine may be showing.

    No client but a browser says where it comes from. A page can claim our address for its own
    name, but then that name stands in the request.
    """
    origin = request.headers.get("Origin")
    if origin is not None:
        host = urlsplit(origin).netloc
        if host != request.host or not _is_address(host):
            raise ForbiddenError(f"a page of {origin[:100]!r} may not ask anything here")
    return await handler(request)


def _is_address(host: str) -> bool:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    if name == "localhost":
        return True
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _bearer(token: str) -> Middleware:
    expected = f"Bearer {token}".encode()

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if token and not hmac.compare_digest(given, expected):
            raise UnauthorizedError("Unauthorized")
        return await handler(request)

    return check


class RequestRouter:
    """Sends each request where it belongs."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self._reads = ReadRequests(api)
        self._writes = WriteRequests(api)

    def close(self) -> None:
        """End what would go on for long."""
        self._reads.watches.close()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer any request."""
        path = request.path
        if request.method == "GET" and (told := self._tell(request, path)) is not None:
            return told
        if path.rstrip("/").endswith("/bindings") and request.method == "POST":
            return await self._bindings(request, path)
        place = requests.parse_path(self._api.registry, path)
        match request.method:
            case "GET" | "HEAD":
                return await self._reads.get(request, place)
            case "POST":
                return await self._writes.post(request, place)
            case "PUT":
                return await self._writes.put(request, place)
            case "PATCH":
                return await self._writes.patch(request, place)
            case "DELETE":
                return await self._writes.delete(request, place)
        raise MethodNotAllowedError(f"the server does not know the method {request.method[:20]!r}")

    async def _bindings(self, request: web.Request, path: str) -> web.StreamResponse:
        """The old way to bind: the pod's name is in the body."""
        match path.strip("/").split("/"):
            case ["api", "v1", "namespaces", namespace, "bindings"]:
                body = await requests.read_value(request)
                if not isinstance(body, dict):
                    raise BadRequestError("a Binding has to be an object")
                requests.check_metadata(body.get("metadata", {}))
                name = body.get("metadata", {}).get("name", "")
                place = RequestPath(PODS, namespace, name, "binding")
                return await self._writes.post(request, place)
        raise requests.unknown_path()

    def _tell(self, request: web.Request, path: str) -> web.Response | None:
        """What can be told without looking at any object."""
        registry = self._api.registry
        match path.strip("/").split("/"):
            case ["healthz" | "livez" | "readyz"]:
                if self._api.store.failure is not None:
                    raise self._api.store.failure
                return web.Response(text="ok")
            case ["version"]:
                return responses.json(version())
            case ["api" | "apis" as root]:
                accept = request.headers.get("Accept", "")
                if requests.accepted_format(accept, (DISCOVERY_V2,)) == DISCOVERY_V2:
                    shown = responses.json(discovery.aggregated(registry, core=root == "api"))
                    shown.headers["Content-Type"] = (
                        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
                    )
                    return shown
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
                if discovery.PROTOBUF in request.headers.get("Accept", ""):
                    found = discovery.openapi_protobuf()
                    return web.Response(body=found, content_type=discovery.PROTOBUF_RESPONSE)
                requests.accepted_format(request.headers.get("Accept", ""), ())
                return responses.json(discovery.openapi_v2(registry))
            case ["openapi", "v3"]:
                return responses.json(discovery.openapi_index(registry))
            case ["openapi", "v3", *rest]:
                return responses.json(discovery.openapi_document(registry, "/".join(rest)))
            case [""]:
                return responses.json({"paths": ["/api", "/apis", "/healthz", "/version"]})
        return None


def version() -> dict[str, str]:
    """`/version`: the Kubernetes that clients may take this for."""
    return {
        "major": "1",
        "minor": "36",
        "gitVersion": f"v1.36.0+moorage-{__version__}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "",
    }
