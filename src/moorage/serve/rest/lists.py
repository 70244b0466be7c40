"""Lists: whole, chosen, or page by page at one version."""

import base64
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from moorage.serve.change_log import Stored
from moorage.serve.refusals import BadRequest, Gone
from moorage.serve.resources import Resource
from moorage.serve.rest import field_paths
from moorage.serve.rest.query import Reading
from moorage.serve.store import Place, Store


class Page(NamedTuple):
    """What a list shows, and how it goes on."""

    items: Sequence[Stored]
    version: int
    token: str = ""
    remaining: int | None = None


class Token(msgspec.Struct, array_like=True, frozen=True):
    """Where the next page begins, and at which version."""

    version: int
    namespace: str
    name: str


def read(
    store: Store,
    resource: Resource,
    namespace: str | None,
    reading: Reading,
    *,
    shown_as: Resource,
) -> Page:
    """The page that is asked for; raises BadRequest or Gone."""
    choice = field_paths.choose(shown_as, reading.label_selector, reading.field_selector)
    version, after = store.version, None
    if reading.token:
        token = _decoded(reading.token)
        version, after = token.version, (token.namespace, token.name)
    elif reading.match == "Exact":
        assert reading.version is not None
        version = reading.version
    if max(version, reading.version or 0) > store.version:
        # An API server would wait, and then call it a timeout. Clients take both as "list anew".
        raise Gone(f"Too large resource version: {version}, current: {store.version}")
    items = store.snapshot(resource, namespace, version)
    if after is not None:
        items = [item for item in items if item[0] > after]
    if not choice.is_everything:
        items = [item for item in items if choice.matches(item[1].object)]
    return _page(items, version, reading.limit, whole=choice.is_everything)


def _page(items: Sequence[tuple[Place, Stored]], version: int, limit: int, *, whole: bool) -> Page:
    if not limit or len(items) <= limit:
        return Page([stored for _, stored in items], version)
    shown = items[:limit]
    token = _encoded(Token(version, *shown[-1][0]))
    left = len(items) - limit if whole else None
    return Page([stored for _, stored in shown], version, token, left)


def _encoded(token: Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _decoded(text: str) -> Token:
    try:
        padded = text + "=" * (-len(text) % 4)
        return msgspec.json.decode(base64.b64decode(padded, b"-_", validate=True), type=Token)
    except (ValueError, msgspec.MsgspecError):
        raise BadRequest("continue key is not valid: it is not one that a list gave") from None
