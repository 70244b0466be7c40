"""Answers on the wire."""

from typing import Any

from aiohttp import web

from moorage.serve.change_log import Stored
from moorage.serve.refusals import Refusal
from moorage.serve.resources import Resource
from moorage.serve.rest import views
from moorage.serve.rest.lists import Page
from moorage.serve.store import encode


def json(value: Any, status: int = 200) -> web.Response:
    """Any value as JSON."""
    return raw(encode(value), status)


def raw(body: bytes, status: int = 200) -> web.Response:
    """JSON that is encoded already."""
    return web.Response(body=body, status=status, headers={"Content-Type": "application/json"})


def refusal(error: Refusal) -> web.Response:
    """What went wrong, as a Status."""
    answer = json(error.to_status(), error.status_code)
    if error.retry_after_seconds:
        answer.headers["Retry-After"] = str(error.retry_after_seconds)
    return answer


def done(resource: Resource, meta: dict[str, Any], code: int = 200) -> web.Response:
    """That it worked, where there is no object to show."""
    details = {"name": meta["name"], "kind": resource.plural, "uid": meta["uid"]}
    if resource.group:
        details["group"] = resource.group
    return json(success(details) | ({"code": code} if code != 200 else {}), code)


def success(details: dict[str, Any] | None = None) -> dict[str, Any]:
    """A Status that says so."""
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
    }
    return {**status, "details": details} if details else status


def listing(resource: Resource, page: Page) -> bytes:
    """A list, put together from bytes that are there already."""
    head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version}
    items = b",".join([views.body(resource, stored) for stored in page.items])
    return b"%b,%b,%b%b]}" % (
        encode(head)[:-1],
        b'"metadata":' + encode(list_metadata(page)),
        b'"items":[',
        items,
    )


def list_metadata(page: Page) -> dict[str, Any]:
    """The metadata of a list."""
    meta: dict[str, Any] = {"resourceVersion": str(page.version)}
    if page.token:
        meta["continue"] = page.token
    if page.remaining is not None:
        meta["remainingItemCount"] = page.remaining
    return meta


def partial_list(resource: Resource, page: Page) -> dict[str, Any]:
    """A list of metadata alone."""
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_metadata(page),
        "items": [_partial(resource, stored) for stored in page.items],
    }


def _partial(resource: Resource, stored: Stored) -> dict[str, Any]:
    return views.partial(views.outward(resource, stored.object))
