"""Who may look: health paths are open to everybody, all else is not.

Let in is who comes from this machine's own loopback address, who brings the token of a token
file, and who brings a token that the cluster knows (TokenReview) and allows to read the path
(SubjectAccessReview), as kube-scheduler asks it. Answers of the cluster hold for ten seconds.
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
from moorage.live.client import Client
from moorage.live.refusals import ApiError

ALWAYS_ALLOWED = ("/healthz", "/readyz", "/livez")
REVIEW_SECONDS = 10.0
MOST_REVIEWS = 1000

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

OK, UNAUTHORIZED, FORBIDDEN = 200, 401, 403

LOG = logs.named("authorization")


class Gate:
    """Lets requests in, or not."""

    def __init__(
        self,
        client: Client | None,
        *,
        always: Sequence[str] = ALWAYS_ALLOWED,
        token_file: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._exact = {path for path in always if not path.endswith("*")}
        self._prefixes = tuple(path[:-1] for path in always if path.endswith("*"))
        self._token_file = token_file
        self._clock = clock
        self._reviews: dict[tuple[str, str, str], tuple[float, int]] = {}
        if token_file:
            self._token()  # Better now than at the first request.

    async def code(self, peer: str, authorization: str, method: str, path: str) -> int:
        """200 for a request that may come in, 401 or 403 for any other."""
        if path in self._exact or (self._prefixes and path.startswith(self._prefixes)):
            return OK
        if _is_loopback(peer):
            return OK
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return UNAUTHORIZED
        if self._token_file and hmac.compare_digest(token.encode(), self._token()):
            return OK
        return await self._reviewed(token, method.lower(), path)

    def _token(self) -> bytes:
        try:
            token = Path(self._token_file).read_bytes().strip()
        except OSError as error:
            raise InputError(f"{self._token_file}: {error.strerror}") from None
        if not token:
            raise InputError(f"{self._token_file}: there is no token in it")
        return token

    async def _reviewed(self, token: str, verb: str, path: str) -> int:
        if self._client is None:
            return UNAUTHORIZED
        known = self._reviews.get((token, verb, path))
        if known is not None and self._clock() < known[0]:
            return known[1]
        try:
            code = await self._review(self._client, token, verb, path)
        except (ApiError, msgspec.MsgspecError) as trouble:
            LOG.warning("cannot ask the cluster who may look", why=str(trouble))
            return UNAUTHORIZED
        if len(self._reviews) >= MOST_REVIEWS:
            self._reviews.clear()
        self._reviews[token, verb, path] = (self._clock() + REVIEW_SECONDS, code)
        return code

    async def _review(self, client: Client, token: str, verb: str, path: str) -> int:
        said = await _post(
            client, TOKEN_REVIEWS, "authentication.k8s.io/v1", "TokenReview", token=token
        )
        if not said.get("authenticated"):
            return UNAUTHORIZED
        user = said.get("user") or {}
        asked = {
            "user": user.get("username", ""),
            "uid": user.get("uid", ""),
            "groups": user.get("groups") or [],
            "extra": user.get("extra") or {},
            "nonResourceAttributes": {"path": path, "verb": verb},
        }
        said = await _post(
            client, ACCESS_REVIEWS, "authorization.k8s.io/v1", "SubjectAccessReview", **asked
        )
        return OK if said.get("allowed") else FORBIDDEN


async def _post(client: Client, path: str, version: str, kind: str, **spec: Any) -> dict[str, Any]:
    body = msgspec.json.encode({"apiVersion": version, "kind": kind, "spec": spec})
    answer = msgspec.json.decode(
        await client.request("POST", path, body, repeatable=True), type=dict[str, Any]
    )
    status = answer.get("status")
    return status if isinstance(status, dict) else {}


def _is_loopback(peer: str) -> bool:
    try:
        return ipaddress.ip_address(peer).is_loopback
    except ValueError:
        return False
