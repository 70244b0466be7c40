"""Authorizer: which requests to the secure port are allowed.

Health paths are open. Other paths are allowed with the token of the token file, or with a token
that the cluster authenticates (TokenReview) and authorizes for the path (SubjectAccessReview), as
in kube-scheduler. Reviews are cached for ten seconds, negative ones too, and each client address
may cause few of them per second: invented tokens must not load the API server.

All paths of the web UI with data count as /ui/api.

A client on the loopback address needs no token to read metrics and the web UI. It may be another
pod with hostNetwork, or a proxy in a sidecar, so it gets everything else only with
`trust_loopback`.
"""

import hmac
import ipaddress
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from moorage.errors import InputError
from moorage.live import logs
from moorage.live.api_errors import FORBIDDEN, TOO_MANY_REQUESTS, UNAUTHORIZED, ApiError
from moorage.live.client import Client
from moorage.live.token_bucket import TokenBucket

ALWAYS_ALLOWED = ("/healthz", "/readyz", "/livez")
REVIEW_SECONDS = 10.0
MAX_REVIEWS = 1000
# Per client address.
REVIEWS_PER_SECOND = 5.0
REVIEW_BURST = 10
MAX_ADDRESSES = 1000
LOOPBACK_PATHS = ("/metrics", "/metrics/slis", "/ui/api")

UI_API = "/ui/api"

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

OK = 200

LOG = logs.named("authorization")


class Authorizer:
    """Decides whether a request is allowed."""

    def __init__(
        self,
        client: Client | None,
        *,
        always: Sequence[str] = ALWAYS_ALLOWED,
        token_file: str = "",
        trust_loopback: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._exact = {path for path in always if not path.endswith("*")}
        self._prefixes = tuple(path[:-1] for path in always if path.endswith("*"))
        self._token_file = token_file
        self._clock = clock
        self._trust_loopback = trust_loopback
        self._reviews: dict[tuple[str, str, str], tuple[float, int]] = {}
        self._buckets: dict[str, TokenBucket] = {}
        if token_file:
            self._token()  # Report errors now, not at the first request.

    async def code(self, peer: str, authorization: str, method: str, path: str) -> int:
        """200 for a request that is allowed, else 401, 403 or 429."""
        path = _counted_as(path)
        if path in self._exact or (self._prefixes and path.startswith(self._prefixes)):
            return OK
        if _is_loopback(peer) and (
            self._trust_loopback or (method in ("GET", "HEAD") and path in LOOPBACK_PATHS)
        ):
            return OK
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return UNAUTHORIZED
        if self._token_file and hmac.compare_digest(token.encode(), self._token()):
            return OK
        return await self._cached_review(peer, token, method.lower(), path)

    def _token(self) -> bytes:
        try:
            token = Path(self._token_file).read_bytes().strip()
        except OSError as error:
            raise InputError(f"{self._token_file}: {error.strerror}") from None
        if not token:
            raise InputError(f"{self._token_file}: there is no token in it")
        return token

    async def _cached_review(self, peer: str, token: str, verb: str, path: str) -> int:
        if self._client is None:
            return UNAUTHORIZED
        known = self._reviews.get((token, verb, path))
        if known is not None and self._clock() < known[0]:
            return known[1]
        if not self._bucket(peer).take_now():
            return TOO_MANY_REQUESTS
        try:
            code = await self._review(self._client, token, verb, path)
        except (ApiError, msgspec.MsgspecError) as error:
            LOG.warning("cannot ask the cluster who may look", why=str(error))
            return UNAUTHORIZED
        while len(self._reviews) >= MAX_REVIEWS:
            del self._reviews[next(iter(self._reviews))]  # The oldest.
        self._reviews.pop((token, verb, path), None)
        self._reviews[token, verb, path] = (self._clock() + REVIEW_SECONDS, code)
        return code

    def _bucket(self, peer: str) -> TokenBucket:
        bucket = self._buckets.pop(peer, None)
        if bucket is None:
            while len(self._buckets) >= MAX_ADDRESSES:
                del self._buckets[next(iter(self._buckets))]  # The one not used for longest.
            bucket = TokenBucket(REVIEWS_PER_SECOND, REVIEW_BURST, self._clock)
        self._buckets[peer] = bucket
        return bucket

    async def _review(self, client: Client, token: str, verb: str, path: str) -> int:
        status = await _post(
            client, TOKEN_REVIEWS, "authentication.k8s.io/v1", "TokenReview", token=token
        )
        if not status.get("authenticated"):
            return UNAUTHORIZED
        user = status.get("user") or {}
        spec = {
            "user": user.get("username", ""),
            "uid": user.get("uid", ""),
            "groups": user.get("groups") or [],
            "extra": user.get("extra") or {},
            "nonResourceAttributes": {"path": path, "verb": verb},
        }
        status = await _post(
            client, ACCESS_REVIEWS, "authorization.k8s.io/v1", "SubjectAccessReview", **spec
        )
        return OK if status.get("allowed") else FORBIDDEN


async def _post(client: Client, path: str, version: str, kind: str, **spec: Any) -> dict[str, Any]:
    """Create a review object; returns its status."""
    body = msgspec.json.encode({"apiVersion": version, "kind": kind, "spec": spec})
    response = await client.request("POST", path, body, repeatable=True)
    status = msgspec.json.decode(response, type=dict[str, Any]).get("status")
    return status if isinstance(status, dict) else {}


def _counted_as(path: str) -> str:
    return UI_API if path.startswith(f"{UI_API}/") else path


def _is_loopback(peer: str) -> bool:
    try:
        return ipaddress.ip_address(peer).is_loopback
    except ValueError:
        return False
