"""PreFiltered: the combined result of the pre_filter plugins."""

from collections.abc import Sequence

from msgspec import Struct

from moorage.framework.status import Status, unresolvable
from moorage.framework.views.policy import IndexedFilter


class PreFiltered(Struct, eq=False):
    """The combined result of the pre_filter plugins; reused for other pods, so never changed."""

    rejected: Status | None = None
    names: frozenset[str] | None = None
    narrowed_by: list[str] = []
    skipped: set[str] = set()
    # The filters that do not skip the pod and are not cached by row.
    uncached: Sequence[IndexedFilter] = ()
    by_placement: Sequence[IndexedFilter] = ()

    def narrow(self, plugin: str, names: frozenset[str]) -> None:
        """Search only nodes that this plugin names, too."""
        self.narrowed_by.append(plugin)
        self.names = names if self.names is None else self.names & names
        if not self.names:
            by = self.narrowed_by
            reason = (
                f"node(s) didn't satisfy plugin {plugin}"
                if len(by) == 1
                else f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(by))}] simultaneously"
            )
            self.rejected = unresolvable(reason)

    @property
    def absent(self) -> Status:
        """The status of nodes that narrowing left out."""
        by = " ".join(sorted(self.narrowed_by))
        return unresolvable(f"node(s) didn't satisfy plugin(s) [{by}]")
