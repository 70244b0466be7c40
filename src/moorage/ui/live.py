"""The objects of a live cluster as the web UI reads them: those that the reflectors know."""

import asyncio

import msgspec

from moorage.api.config import SchedulerConfiguration
from moorage.live.run import LiveScheduler
from moorage.ui.activity import Activity
from moorage.ui.server import ChangingSource, StoredObjects

# How many objects are encoded before other work of the event loop may run.
OBJECTS_AT_ONCE = 200


def source(live: LiveScheduler, configuration: SchedulerConfiguration) -> ChangingSource:
    """Snapshots of a live cluster."""
    encode = msgspec.json.Encoder().encode

    async def read() -> StoredObjects:
        version = live.observations.put_count
        objects = [
            (reflector.kind.name, obj)
            for reflector in live.reflectors
            for obj in reflector.objects()
        ]
        bodies = []
        for index, (kind, obj) in enumerate(objects):
            bodies.append((kind, encode(obj)))
            if index % OBJECTS_AT_ONCE == 0:
                await asyncio.sleep(0)
        return StoredObjects(version, bodies)

    scheduler = live.scheduler
    activity = Activity(scheduler.journal, scheduler.queue.counts)
    title = live.client.server
    return ChangingSource(lambda: live.observations.put_count, read, configuration, title, activity)
