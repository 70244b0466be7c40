"""A request of the core -> one API call -> how it ended.

    request         call                                    tries   if nobody knows how it ended
    BindPod         POST pods/NAME/binding                  one     Unknown: the core looks it up
    PatchPodStatus  PATCH pods/NAME/status                  eight   Unknown
    DeletePod       DELETE pods/NAME, only this UID         eight   Unknown
    PatchVolume     PATCH persistentvolumes/NAME            one     Unknown: the attempt fails
    PatchClaim      PATCH persistentvolumeclaims/NAME       one     Unknown: the attempt fails
    LookUpPod       GET pods/NAME                           eight   Failed: the core asks again

A binding that the server turned away unread (429) is sent again; any other is not, because the
first may have been carried out. Likewise for volumes and claims, which are patched in one version
only: a second try would be refused because of the first. Events have a file of their own:
`event_recorder`.
"""

from datetime import UTC, datetime
from typing import Any, assert_never

import msgspec
from msgspec import UNSET

from moorage.api.kinds import KINDS
from moorage.api.meta import Condition
from moorage.core.effects import Done, Failed, Outcome, Unknown
from moorage.framework.effects import (
    BindPod,
    DeletePod,
    EmitEvent,
    LookUpPod,
    PatchClaim,
    PatchPodStatus,
    PatchVolume,
    PodRef,
    Request,
)
from moorage.live import logs, paths, wire
from moorage.live.client import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Client, Fence
from moorage.live.refusals import ApiError, Lost, Refused

BIND_SECONDS = 10
PATIENT_TRIES = 8
NOT_FOUND = 404
CONFLICT = 409

_log = logs.named("calls")


async def carry_out(client: Client, request: Request, fence: Fence) -> Outcome:
    """Ask the API server; everything that changes something passes the fence first."""
    try:
        match request:
            case BindPod():
                return await _bind(client, request, fence)
            case PatchPodStatus():
                return await _patch_status(client, request, fence)
            case DeletePod():
                return await _delete(client, request.pod, fence)
            case LookUpPod():
                return await _look_up(client, request.pod)
            case EmitEvent():
                raise AssertionError("Events go to the event recorder")
            case PatchVolume():
                return await _patch_volume(client, request, fence)
            case PatchClaim():
                return await _patch_claim(client, request, fence)
            case _:
                assert_never(request)
    except ApiError as error:
        return _outcome(error)


async def _bind(client: Client, request: BindPod, fence: Fence) -> Outcome:
    ref = request.pod
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": _identity(ref),
        "target": {"kind": "Node", "name": request.node},
    }
    # The server gives up when we do, lest it binds a pod that was looked up in vain.
    path = f"{paths.pod(ref.namespace, ref.name, 'binding')}?timeout={BIND_SECONDS}s"
    await client.request("POST", path, _encoded(body), seconds=BIND_SECONDS, fence=fence)
    return Done()


async def _patch_status(client: Client, request: PatchPodStatus, fence: Fence) -> Outcome:
    ref = request.pod
    status: dict[str, Any] = {}
    if request.condition is not None:
        status["conditions"] = [_condition(request.condition)]
    if request.nominated_node_name is not UNSET:
        status["nominatedNodeName"] = request.nominated_node_name or None
    await client.request(
        "PATCH",
        paths.pod(ref.namespace, ref.name, "status"),
        # With the UID in it, the server refuses to patch a namesake.
        _encoded({"metadata": {"uid": ref.uid}, "status": status}),
        content_type=STRATEGIC_MERGE_PATCH,
        tries=PATIENT_TRIES,
        repeatable=True,
        fence=fence,
    )
    return Done()


async def _patch_volume(client: Client, request: PatchVolume, fence: Fence) -> Outcome:
    path = paths.volume(request.name)
    spec = {"claimRef": msgspec.to_builtins(request.claim)}
    return await _patch_version(client, path, request, {"spec": spec}, fence)


async def _patch_claim(client: Client, request: PatchClaim, fence: Fence) -> Outcome:
    return await _patch_version(
        client, paths.claim(request.namespace, request.name), request, {}, fence
    )


async def _patch_version(
    client: Client,
    path: str,
    request: PatchVolume | PatchClaim,
    change: dict[str, Any],
    fence: Fence,
) -> Outcome:
    """Change an object, unless it is another or of another version by now."""
    meta = {
        "uid": request.uid,
        "resourceVersion": request.version,
        "annotations": request.annotations,
    }
    body = _encoded({"metadata": meta, **change})
    await client.request("PATCH", path, body, content_type=MERGE_PATCH, fence=fence)
    return Done()


async def _delete(client: Client, ref: PodRef, fence: Fence) -> Outcome:
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": ref.uid}}
    await client.request(
        "DELETE",
        paths.pod(ref.namespace, ref.name),
        _encoded(body),
        tries=PATIENT_TRIES,
        repeatable=True,
        fence=fence,
    )
    return Done()


async def _look_up(client: Client, ref: PodRef) -> Outcome:
    try:
        body = await client.get(paths.pod(ref.namespace, ref.name), tries=PATIENT_TRIES)
        pod = wire.one(body, KINDS["Pod"], _log)
    except Refused as refused:
        if refused.code == NOT_FOUND:
            return Done(None)
        return Failed(str(refused))
    except (ApiError, wire.Unreadable) as trouble:
        return Failed(str(trouble))
    return Done(pod if pod is not None and pod.uid == ref.uid else None)


def _outcome(error: ApiError) -> Outcome:
    match error:
        case Refused() if error.is_certain:
            # A conflict is a namesake, or a pod that has a node already: the watch will tell.
            return Failed(str(error), missing=error.code == NOT_FOUND)
        case Refused() | Lost():
            return Unknown(str(error))
        case _:
            return Failed(str(error))


def _identity(ref: PodRef) -> dict[str, str]:
    return {"name": ref.name, "namespace": ref.namespace, "uid": ref.uid}


def _condition(wanted: Condition) -> dict[str, Any]:
    return {
        "type": wanted.type,
        "status": wanted.status,
        "lastProbeTime": None,
        "lastTransitionTime": wanted.last_transition_time or _now(),
        "reason": wanted.reason,
        "message": wanted.message,
        "observedGeneration": wanted.observed_generation,
    }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_encoded = msgspec.json.encode
