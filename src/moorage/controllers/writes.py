"""The writes that a controller returns, as plain data."""

from collections.abc import Iterator
from typing import NamedTuple

from moorage.controllers.objects import Object

BACKGROUND, FOREGROUND, ORPHAN = "Background", "Foreground", "Orphan"


class Create(NamedTuple):
    """Create an object; the API completes a `generateName`."""

    obj: Object


class Update(NamedTuple):
    """Replace an object; it carries the version that it was made from."""

    obj: Object


class Delete(NamedTuple):
    """Delete an object; a pod with its own grace period unless one is given.

    Without a propagation policy the finalizers decide about dependents, else they are deleted
    after the object.
    """

    obj: Object
    grace_seconds: int | None = None
    propagation: str | None = None


class RequeueAt(NamedTuple):
    """Reconcile the object again at that time.

    `awaited`: the workload makes progress then, so a simulation does not end before.
    """

    at: float
    awaited: bool = False


class Report(NamedTuple):
    """Emit an Event about an object."""

    obj: Object
    reason: str
    message: str
    reporter: str
    type: str = "Warning"


Write = Create | Update | Delete | RequeueAt | Report


def update_if_changed(old: Object, new: Object) -> Iterator[Write]:
    if new != old:
        yield Update(new)


def requeue(at: float | None) -> Iterator[Write]:
    """Requeue at a time when the workload makes progress, if there is one."""
    if at is not None:
        yield RequeueAt(at, awaited=True)
