"""Reviews of access, and tokens of service accounts.

This server authorizes every request that it authenticates, so every review of access is positive,
whatever roles and bindings are stored. A token names its service account and is signed with a key
of this process: a TokenReview accepts it, and requests need none.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Any

import msgspec

from moorage.api import timestamps
from moorage.cluster.resources import (
    SELF_REVIEWS,
    SELF_RULES_REVIEWS,
    TOKEN_REVIEWS,
    Resource,
)
from moorage.cluster.status_errors import BadRequestError, InvalidError
from moorage.controllers.objects import Object

_ISSUER = "https://kubernetes.default.svc"
_ADMINISTRATOR = {
    "username": "kubernetes-admin",
    "groups": ["system:masters", "system:authenticated"],
}
_DEFAULT_SECONDS, _MIN_SECONDS, _MAX_SECONDS = 3600, 600, 2**32
_HEADER = {"alg": "HS256", "typ": "JWT"}


class Reviews:
    """Answers reviews and issues tokens."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._key = secrets.token_bytes(32)

    def answer(self, resource: Resource, body: Any) -> Object:
        """A review with its status; raises BadRequestError."""
        review = _object(body, resource.kind)
        stated = {"kind": resource.kind, "apiVersion": resource.api_version}
        return {**review, **stated, "status": self._status(resource, review.get("spec") or {})}

    def _status(self, resource: Resource, spec: Any) -> Object:
        if resource is SELF_REVIEWS:
            return {"userInfo": _ADMINISTRATOR}
        if not isinstance(spec, dict):
            raise BadRequestError(f"{resource.kind}: spec has to be an object")
        if resource is TOKEN_REVIEWS:
            return self._token_status(str(spec.get("token", "")))
        if resource is SELF_RULES_REVIEWS:
            every = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
            urls = {"verbs": ["*"], "nonResourceURLs": ["*"]}
            return {"resourceRules": [every], "nonResourceRules": [urls], "incomplete": False}
        return {"allowed": True}

    def token(self, account: Object, body: Any) -> Object:
        """A TokenRequest with the token of a service account; raises StatusError."""
        request = _object(body, "TokenRequest")
        spec = request.get("spec") or {}
        seconds = spec.get("expirationSeconds", _DEFAULT_SECONDS)
        if not isinstance(seconds, int) or not _MIN_SECONDS <= seconds <= _MAX_SECONDS:
            is_long = isinstance(seconds, int) and seconds > _MAX_SECONDS
            limit = "larger than 2^32 seconds" if is_long else "less than 10 minutes"
            raise InvalidError(
                'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid '
                f"value: {seconds!s:.40}: may not specify a duration {limit}"
            )
        meta, now = account["metadata"], int(self._now())
        audiences = spec.get("audiences") or [_ISSUER]
        claims = {
            "aud": audiences,
            "exp": now + seconds,
            "iat": now,
            "iss": _ISSUER,
            "kubernetes.io": {
                "namespace": meta["namespace"],
                "serviceaccount": {"name": meta["name"], "uid": meta["uid"]},
            },
            "nbf": now,
            "sub": f"system:serviceaccount:{meta['namespace']}:{meta['name']}",
        }
        expires = timestamps.to_text(now + seconds)
        status = {"token": self._signed(claims), "expirationTimestamp": expires}
        names = {key: meta[key] for key in ("name", "namespace")}
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {**names, "creationTimestamp": timestamps.to_text(now)},
            "spec": {**spec, "audiences": audiences, "expirationSeconds": seconds},
            "status": status,
        }

    def _token_status(self, token: str) -> Object:
        claims = self._verified(token)
        if claims is None:
            return {"user": {}, "error": "invalid bearer token"}
        account = claims["kubernetes.io"]["serviceaccount"]
        groups = ["system:serviceaccounts", "system:authenticated"]
        groups.insert(1, f"system:serviceaccounts:{claims['kubernetes.io']['namespace']}")
        user = {"username": claims["sub"], "uid": account["uid"], "groups": groups}
        return {"authenticated": True, "user": user, "audiences": claims["aud"]}

    def _signed(self, claims: Object) -> str:
        text = f"{_part(msgspec.json.encode(_HEADER))}.{_part(msgspec.json.encode(claims))}"
        return f"{text}.{self._signature(text)}"

    def _signature(self, text: str) -> str:
        return _part(hmac.new(self._key, text.encode(), hashlib.sha256).digest())

    def _verified(self, token: str) -> Any:
        """The claims of a token that this server issued; None if it is another, or expired."""
        text, _, signature = token.rpartition(".")
        expected = self._signature(text).encode()
        if not text or not hmac.compare_digest(signature.encode(), expected):
            return None
        encoded = text.partition(".")[2]
        claims = msgspec.json.decode(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
        return claims if claims["exp"] > self._now() else None


def _object(body: Any, kind: str) -> Object:
    if not isinstance(body, dict) or not isinstance(body.get("spec") or {}, dict):
        raise BadRequestError(f"the body of the request has to be an object of kind {kind}")
    return body


def _part(body: bytes) -> str:
    return base64.urlsafe_b64encode(body).decode().rstrip("=")
