"""Awaiting: the result of a pre_bind plugin that waits for changes of objects."""

from msgspec import Struct

from moorage.api.meta import KubeObject


class Awaiting(Struct, frozen=True, kw_only=True):
    """Call pre_bind_next when one of these objects changes, or after so many seconds.

    Objects are kinds with keys: `namespace/name`, or a bare name for a cluster-scoped one.
    """

    seconds: float
    objects: tuple[tuple[type[KubeObject], str], ...] = ()
