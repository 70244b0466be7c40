"""Awaiting: a pre_bind plugin's requests were carried out, and now the world has to follow."""

from msgspec import Struct

from moorage.api.meta import KubeObject


class Awaiting(Struct, frozen=True, kw_only=True):
    """Not yet: ask again when one of these objects changes, at the latest in so many seconds.

    Objects are kinds with keys: `namespace/name`, or a bare name for a cluster-scoped one.
    """

    seconds: float
    objects: tuple[tuple[type[KubeObject], str], ...] = ()
