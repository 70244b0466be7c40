"""All objects of a kind, page by page."""

from moorage.api.kinds import Kind
from moorage.api.meta import KubeObject
from moorage.live import paths, refusals, wire
from moorage.live.client import Client
from moorage.live.logs import Log
from moorage.live.refusals import Refused

PAGE_SIZE = 500
LIST_SECONDS = 60.0

# A pod that has ended holds no room; the scheduler is told that it is gone.
NON_TERMINAL = "status.phase!=Succeeded,status.phase!=Failed"


def selector(kind: Kind) -> str:
    """The objects of a kind that matter to a scheduler."""
    return NON_TERMINAL if kind.name == "Pod" else ""


async def everything(
    client: Client, kind: Kind, log: Log, *, page_size: int = PAGE_SIZE
) -> tuple[list[KubeObject], str]:
    """The objects as they are now, and the version of the list; from one consistent moment."""
    objects: list[KubeObject] = []
    continued = ""
    while True:
        path = paths.query(
            paths.of_kind(kind),
            fieldSelector=selector(kind),
            limit=page_size or None,
            **{"continue": continued},
        )
        try:
            body = await client.get(path, seconds=LIST_SECONDS)
        except Refused as refused:
            if refused.code == refusals.GONE and continued:
                # It took longer than the server remembers: take it whole.
                return await everything(client, kind, log, page_size=0)
            raise
        page = wire.page(body, kind, log)
        objects += page.items or ()
        continued = page.metadata.continue_
        if not continued:
            return objects, page.metadata.resource_version
