"""The HTTP application: what comes in goes to its room, what goes wrong becomes a Status."""

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
from moorage.serve.refusals import BadRequest, Forbidden, MethodNotAllowed, Refusal, Unauthorized
from moorage.serve.resources import PODS
from moorage.serve.rest import answers, discovery, incoming, negotiation, openapi, paths
from moorage.serve.rest.negotiation import DISCOVERY_V2
from moorage.serve.rest.paths import Place
from moorage.serve.rest.reads import Reads
from moorage.serve.rest.writes import Writes
from moorage.version import __version__

_log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Settings:
    """How the application is to behave."""

    token: str = ""  # of the bearer; none is asked for without one
    request_limit: int = 3 * 1024 * 1024


class Unexpected(Refusal):
    """A mistake of ours."""

    code = 500
    reason = "InternalError"


def make_app(api: ApiServer, settings: Settings | None = None) -> web.Application:
    """The application that serves an API server's verbs over HTTP."""
    settings = settings or Settings()
    app = web.Application(
        client_max_size=settings.request_limit,
        middlewares=[_refusals, _origin, _bearer(settings.token)],
    )
    server = Server(api)
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
    except Refusal as error:
        return answers.refusal(error)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return answers.refusal(BadRequest(error.reason, code=error.status))
    except RecursionError:
        return answers.refusal(BadRequest("the request is nested too deeply"))
    except msgspec.MsgspecError as error:
        return answers.refusal(BadRequest(f"the request cannot be read: {error}"))
    except ConnectionError:
        raise
    except Exception:
        _log.exception("%s %s", request.method, request.path)
        return answers.refusal(Unexpected("an internal error; the server's log has more"))


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
            raise Forbidden(f"a page of {origin[:100]!r} may not ask anything here")
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
            raise Unauthorized("Unauthorized")
        return await handler(request)

    return check


class Server:
    """Sends each request where it belongs."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self._reads = Reads(api)
        self._writes = Writes(api)

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
        place = paths.find(self._api.catalog, path)
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
        raise MethodNotAllowed(f"the server does not know the method {request.method[:20]!r}")

    async def _bindings(self, request: web.Request, path: str) -> web.StreamResponse:
        """The old way to bind: the pod's name is in the body."""
        match path.strip("/").split("/"):
            case ["api", "v1", "namespaces", namespace, "bindings"]:
                body = await incoming.value(request)
                if not isinstance(body, dict):
                    raise BadRequest("a Binding has to be an object")
                incoming.check_metadata(body.get("metadata", {}))
                name = body.get("metadata", {}).get("name", "")
                place = Place(PODS, namespace, name, "binding")
                return await self._writes.post(request, place)
        raise paths.nowhere()

    def _tell(self, request: web.Request, path: str) -> web.Response | None:
        """What can be told without looking at any object."""
        catalog = self._api.catalog
        match path.strip("/").split("/"):
            case ["healthz" | "livez" | "readyz"]:
                if self._api.store.failure is not None:
                    raise self._api.store.failure
                return web.Response(text="ok")
            case ["version"]:
                return answers.json(version())
            case ["api" | "apis" as root]:
                accept = request.headers.get("Accept", "")
                if negotiation.wanted(accept, (DISCOVERY_V2,)) == DISCOVERY_V2:
                    shown = answers.json(discovery.aggregated(catalog, core=root == "api"))
                    shown.headers["Content-Type"] = (
                        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
                    )
                    return shown
                if root == "api":
                    return answers.json(discovery.api_versions())
                return answers.json(discovery.groups(catalog))
            case ["api", "v1"]:
                return answers.json(discovery.resources(catalog, "", "v1"))
            case ["apis", group]:
                return answers.json(discovery.group(catalog, group))
            case ["apis", group, name]:
                return answers.json(discovery.resources(catalog, group, name))
            case ["openapi", "v2"]:
                if openapi.PROTOBUF in request.headers.get("Accept", ""):
                    found = openapi.protobuf()
                    return web.Response(body=found, content_type=openapi.PROTOBUF_ANSWER)
                negotiation.wanted(request.headers.get("Accept", ""), ())
                return answers.json(openapi.swagger(catalog))
            case ["openapi", "v3"]:
                return answers.json(openapi.index(catalog))
            case ["openapi", "v3", *rest]:
                return answers.json(openapi.document(catalog, "/".join(rest)))
            case [""]:
                return answers.json({"paths": ["/api", "/apis", "/healthz", "/version"]})
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
