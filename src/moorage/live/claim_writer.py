"""Write device claims: change the newest version, and write it if it is unchanged meanwhile.

    request                   calls
    CreateResourceClaim       POST resourceclaims
    ReserveResourceClaim      PATCH of the finalizer if it is missing, PATCH of the status
    ReleaseResourceClaim      GET, PATCH of the status if the claim is reserved for the pod
    DeallocateResourceClaim   PATCH of the status at the version of the request
    DeleteResourceClaim       GET, PATCH of the finalizer, DELETE of this UID

A patch names the version that it was made from. A reservation begins with the version that the
scheduler has observed. After a conflict, or without a response, the claim is read: a change that
was made after all is not made twice.
"""

import asyncio
from itertools import count
from typing import Any

import msgspec

from moorage.api import resource_claims
from moorage.api.devices import ResourceClaim
from moorage.api.kinds import KINDS
from moorage.api.resource_claims import ClaimChangedError
from moorage.api.server_requests import (
    CLAIM_RETRY_SECONDS,
    CLAIM_TRIES,
    ClaimRequest,
    CreateResourceClaim,
    DeallocateResourceClaim,
    DeleteResourceClaim,
    ReleaseResourceClaim,
    ReserveResourceClaim,
    ResourceClaimRequest,
)
from moorage.live import api_errors, logs, paths, wire
from moorage.live.api_errors import ApiError, ApiStatusError, NoResponseError
from moorage.live.client import MERGE_PATCH, Client, Fence

NOTHING = {"allocation": None, "reservedFor": None, "devices": None}

_log = logs.named("claims")


async def write(client: Client, request: ClaimRequest, fence: Fence) -> ResourceClaim | None:
    """Perform a request; returns the claim as it is afterwards, None if it was deleted.

    Raises ApiError, or ClaimChangedError if the claim cannot be changed as planned.
    """
    writer = ClaimWriter(client, fence)
    if isinstance(request, CreateResourceClaim):
        return await writer.create(request)
    if isinstance(request, DeallocateResourceClaim):
        known = {"uid": request.uid, "resourceVersion": request.version}
        path = paths.device_claim(request.namespace, request.name, "status")
        return await writer.patch(path, {"metadata": known, "status": NOTHING})
    return await writer.change(request)


class ClaimWriter:
    """Reads and writes claims with one client."""

    def __init__(self, client: Client, fence: Fence) -> None:
        self._client = client
        self._fence = fence

    async def create(self, request: CreateResourceClaim) -> ResourceClaim:
        """Create a claim; one that exists and belongs to the pod was created by an earlier try."""
        claim, ref = request.claim, request.pod
        body = {**msgspec.to_builtins(claim), **_type_meta()}
        try:
            path = paths.device_claim(claim.namespace)
            return _decode(await self._send("POST", path, body, repeatable=bool(claim.name)))
        except ApiStatusError as error:
            if error.code != api_errors.CONFLICT or not claim.name:
                raise
            known = await self._read(claim.namespace, claim.name)
            if known is None or known.controller is None or known.controller.uid != ref.uid:
                raise
            return known

    async def change(
        self, request: ReserveResourceClaim | ReleaseResourceClaim | DeleteResourceClaim
    ) -> ResourceClaim | None:
        """Change a claim, until no other writer comes in between."""
        observed = request.claim if isinstance(request, ReserveResourceClaim) else None
        for attempt in count(1):
            known = observed or await self._read(request.namespace, request.name, request.uid)
            try:
                match request:
                    case ReserveResourceClaim():
                        return await self._reserve(request, known)
                    case ReleaseResourceClaim():
                        return await self._release(request, known)
                    case DeleteResourceClaim():
                        await self._delete(request, known)
                        return None
            except ClaimChangedError:
                if observed is None:
                    raise
            except ApiError as error:
                if attempt == CLAIM_TRIES or not _may_read_again(error):
                    raise
            if observed is None:
                await asyncio.sleep(CLAIM_RETRY_SECONDS)
            observed = None
        raise AssertionError("the loop has no end")

    async def _reserve(
        self, request: ReserveResourceClaim, known: ResourceClaim | None
    ) -> ResourceClaim:
        now = self._client.clock.second()
        pod = (request.pod.name, request.pod.uid)
        claim = resource_claims.reserved(known, request.key, pod, request.allocation, now)
        assert known is not None, "a missing claim cannot be reserved"
        if claim.metadata.finalizers != known.metadata.finalizers:
            known = await self._set_finalizers(request, known, claim)
        if claim.status == known.status:
            return known
        status = msgspec.to_builtins(claim.status)
        fields = ("reservedFor",) if request.allocation is None else ("allocation", "reservedFor")
        return await self._set_status(request, known, {field: status[field] for field in fields})

    async def _release(
        self, request: ReleaseResourceClaim, known: ResourceClaim | None
    ) -> ResourceClaim:
        if known is None:
            raise _missing(request)
        claim = resource_claims.released(known, request.pod.uid)
        if claim is known:
            return known
        users = msgspec.to_builtins(claim.status.reserved_for)
        return await self._set_status(request, known, {"reservedFor": users or None})

    async def _delete(self, request: DeleteResourceClaim, known: ResourceClaim | None) -> None:
        if known is None:
            return  # An earlier request, or the garbage collector, has deleted it.
        claim = resource_claims.without_finalizer(known)
        if claim is not known:
            await self._set_finalizers(request, known, claim)
        options = {"apiVersion": "v1", "kind": "DeleteOptions"}
        path = paths.device_claim(request.namespace, request.name)
        try:
            body = options | {"preconditions": {"uid": request.uid}}
            await self._send("DELETE", path, body, repeatable=True)
        except ApiStatusError as error:
            if error.code != api_errors.NOT_FOUND:  # It went with its last finalizer.
                raise

    async def _set_finalizers(
        self, request: ResourceClaimRequest, known: ResourceClaim, claim: ResourceClaim
    ) -> ResourceClaim:
        meta = _unchanged(known) | {"finalizers": list(claim.metadata.finalizers)}
        return await self.patch(
            paths.device_claim(request.namespace, request.name), {"metadata": meta}
        )

    async def _set_status(
        self, request: ResourceClaimRequest, known: ResourceClaim, status: dict[str, Any]
    ) -> ResourceClaim:
        path = paths.device_claim(request.namespace, request.name, "status")
        return await self.patch(path, {"metadata": _unchanged(known), "status": status})

    async def patch(self, path: str, body: dict[str, Any]) -> ResourceClaim:
        """Patch a claim that must have the version in the body."""
        return _decode(await self._send("PATCH", path, body, content_type=MERGE_PATCH))

    async def _read(self, namespace: str, name: str, uid: str = "") -> ResourceClaim | None:
        """The claim, if it exists and has the UID."""
        try:
            found = _decode(await self._client.get(paths.device_claim(namespace, name)))
        except ApiStatusError as error:
            if error.code == api_errors.NOT_FOUND:
                return None
            raise
        return found if uid in ("", found.uid) else None

    async def _send(self, method: str, path: str, body: dict[str, Any], **options: Any) -> bytes:
        encoded = msgspec.json.encode(body)
        return await self._client.request(method, path, encoded, fence=self._fence, **options)


def _may_read_again(error: ApiError) -> bool:
    """Whether the claim has to be read again: it was modified, or may have been by this request."""
    if isinstance(error, ApiStatusError):
        return error.code == api_errors.CONFLICT or not error.is_final
    return isinstance(error, NoResponseError)


def _unchanged(claim: ResourceClaim) -> dict[str, Any]:
    """Metadata of a patch that is refused if the claim has another UID or version."""
    return {"uid": claim.uid, "resourceVersion": claim.metadata.resource_version}


def _missing(request: ResourceClaimRequest) -> ApiStatusError:
    text = f'resourceclaims.resource.k8s.io "{request.name}" not found'
    return ApiStatusError(api_errors.NOT_FOUND, text, "NotFound")


def _type_meta() -> dict[str, str]:
    kind = KINDS["ResourceClaim"]
    return {"apiVersion": kind.api_version, "kind": kind.name}


def _decode(body: bytes) -> ResourceClaim:
    try:
        claim = wire.decode_object(body, KINDS["ResourceClaim"], _log)
    except wire.UnreadableError as error:
        raise NoResponseError(str(error)) from None
    if claim is None:
        raise NoResponseError("the response is no device claim")
    assert isinstance(claim, ResourceClaim)
    return claim
