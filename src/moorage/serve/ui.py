"""The objects of the API server as the web UI reads them."""

from typing import Any

from moorage.cluster.api_server import ApiServer
from moorage.core.scheduler import Scheduler
from moorage.serve.control_plane import scheduler_kinds
from moorage.ui.activity import Activity
from moorage.ui.server import ChangingSource, StoredObjects

TITLE = "moorage serve"


def source(
    api: ApiServer, configuration: dict[str, Any] | None, scheduler: Scheduler | None
) -> ChangingSource:
    """Snapshots of a store; explained with the scheduler's configuration, or with the defaults."""
    store = api.store

    async def read() -> StoredObjects:
        bodies = [
            (kind.name, stored.body)
            for kind, resource in scheduler_kinds().values()
            for _, stored in store.snapshot(resource)
        ]
        return StoredObjects(store.version, bodies)

    activity = None
    if scheduler is not None:
        activity = Activity(scheduler.journal, scheduler.queue.counts)
    return ChangingSource(lambda: store.version, read, configuration, TITLE, activity)
