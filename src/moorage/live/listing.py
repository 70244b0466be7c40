"""List all objects of a kind, page by page; read a whole cluster once for `explain`, `snapshot`."""

import asyncio
from typing import Any

import msgspec
from msgspec import Struct, structs

from moorage.api.kinds import KINDS, Kind
from moorage.api.manifests.shared_parts import SharedParts
from moorage.api.meta import KubeObject
from moorage.errors import InputError
from moorage.live import api_errors, kinds, logs, paths, wire
from moorage.live.api_errors import ApiError, ApiStatusError
from moorage.live.client import TRIES, Client
from moorage.live.connection import Connection
from moorage.live.logs import Logger

PAGE_SIZE = 500
LIST_SECONDS = 60.0

# A terminal pod uses no resources; to the scheduler it is deleted.
NON_TERMINAL = "status.phase!=Succeeded,status.phase!=Failed"


class ClusterObjects(Struct, frozen=True):
    """The objects that scheduling reads, and why some kinds could not be listed."""

    objects: list[KubeObject]
    unserved: dict[str, str]


def read_cluster(connection: Connection) -> ClusterObjects:
    """List everything in a cluster that scheduling reads; changes nothing."""
    return asyncio.run(_read_cluster(connection))


async def _read_cluster(connection: Connection) -> ClusterObjects:
    objects: list[KubeObject] = []
    unserved: dict[str, str] = {}
    log = logs.named("reading")
    async with Client(connection, user_agent="reader") as client:
        for kind in KINDS.values():
            try:
                found, _ = await list_all(client, kind, log.bound(kind=kind.name))
            except (ApiError, wire.UnreadableError) as error:
                is_unserved = isinstance(error, ApiStatusError) and (
                    error.code in api_errors.NOT_SERVED and kind.name not in kinds.INDISPENSABLE
                )
                if not is_unserved:
                    raise InputError(f"{connection.server}, {kind.plural}: {error}") from None
                unserved[kind.plural] = str(error)
                continue
            # The items of a list do not state their kind.
            objects += (
                structs.replace(obj, kind=kind.name, api_version=kind.api_version) for obj in found
            )
    return ClusterObjects(objects, unserved)


def read_document(
    connection: Connection, path: str, *, tries: int = TRIES
) -> dict[str, Any] | None:
    """A JSON document of the API server; None if it does not serve it, or not to us."""

    async def read() -> dict[str, Any] | None:
        async with Client(connection, user_agent="reader") as client:
            try:
                body = await client.get(path, seconds=LIST_SECONDS, tries=tries)
                found = msgspec.json.decode(body)
            except (ApiError, msgspec.MsgspecError):
                return None
        return found if isinstance(found, dict) else None

    return asyncio.run(read())


def field_selector(kind: Kind) -> str:
    """Selects the objects of a kind that a scheduler reads."""
    return NON_TERMINAL if kind.name == "Pod" else ""


async def list_all(
    client: Client, kind: Kind, log: Logger, *, page_size: int = PAGE_SIZE
) -> tuple[list[KubeObject], str]:
    """All objects of a kind from one consistent snapshot, and the list's resourceVersion."""
    objects: list[KubeObject] = []
    parts = SharedParts()
    continued = ""
    while True:
        path = paths.query(
            paths.of_kind(kind),
            fieldSelector=field_selector(kind),
            limit=page_size or None,
            **{"continue": continued},
        )
        try:
            body = await client.get(path, seconds=LIST_SECONDS)
        except ApiStatusError as error:
            if error.code == api_errors.GONE and continued:
                # The snapshot expired between two pages: list without pages.
                return await list_all(client, kind, log, page_size=0)
            raise
        page = wire.decode_page(body, kind, log)
        objects += map(parts.share, page.items or ())
        continued = page.metadata.continue_
        if not continued:
            return objects, page.metadata.resource_version


async def current_version(client: Client, kind: Kind) -> str:
    """The resourceVersion of a kind now, from a list of one object."""
    path = paths.query(paths.of_kind(kind), limit=1)
    body = await client.get(path, seconds=LIST_SECONDS)
    return wire.decode_version(body)
