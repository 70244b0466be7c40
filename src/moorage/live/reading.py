"""A cluster read once, without touching it: what `explain` and `snapshot` look at."""

import asyncio

from msgspec import Struct, structs

from moorage.api.kinds import KINDS, Kind
from moorage.api.meta import KubeObject
from moorage.errors import InputError
from moorage.live import kinds, listing, logs, refusals
from moorage.live.client import Client
from moorage.live.connection import Connection
from moorage.live.refusals import ApiError, Refused
from moorage.live.wire import Unreadable


class Reading(Struct, frozen=True):
    """The objects that scheduling reads, and the kinds that could not be read, with the reason."""

    objects: list[KubeObject]
    unserved: dict[str, str]


def read(connection: Connection) -> Reading:
    """Everything that scheduling reads of a cluster; only lists are asked for."""
    return asyncio.run(_read(connection))


async def _read(connection: Connection) -> Reading:
    objects: list[KubeObject] = []
    unserved: dict[str, str] = {}
    async with Client(connection, user_agent="reader") as client:
        for kind in KINDS.values():
            try:
                objects += await _objects(client, kind)
            except Refused as refused:
                is_needed = kind.name in kinds.INDISPENSABLE
                if refused.code not in refusals.NOT_SERVED or is_needed:
                    raise InputError(f"{connection.server}, {kind.plural}: {refused}") from None
                unserved[kind.plural] = str(refused)
            except (ApiError, Unreadable) as error:
                raise InputError(f"{connection.server}, {kind.plural}: {error}") from None
    return Reading(objects, unserved)


async def _objects(client: Client, kind: Kind) -> list[KubeObject]:
    log = logs.named("reading").bound(kind=kind.name)
    found, _ = await listing.everything(client, kind, log)
    # Items of a list do not say what they are.
    return [structs.replace(o, kind=kind.name, api_version=kind.api_version) for o in found]
