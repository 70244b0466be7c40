"""Notes: what a decision or a failed attempt leaves in the journal."""

from moorage.core.cycle import Decision
from moorage.core.diagnosis import Diagnosis
from moorage.core.journal import Considered, Decided, Erred, Journal, Refused, SlowPlugin
from moorage.core.queued_pod import QueuedPod
from moorage.framework.profile import Profile
from moorage.framework.status import Status

# How many of the best nodes are kept with their scores.
BEST_KEPT = 3
# So many rows' notes are held ready: the leaders of one cycle are most often those of the next.
MOST_KNOWN = 64


def decision(journal: Journal, entry: QueuedPod, decided: Decision, now: float) -> None:
    """A node was picked: how many fitted, who refused the rest, and the best with their scores."""
    journal.add(
        Decided(
            at=now,
            pod=entry.key,
            uid=entry.uid,
            node=decided.node,
            nodes=decided.nodes,
            feasible=decided.feasible_count,
            rejected_by=decided.rejected_by(),
            best=_best(decided),
        )
    )


def _best(decided: Decision) -> tuple[Considered, ...]:
    scored = decided.scored
    if scored is None:
        return ()
    known, best = scored.parts.notes, []
    names, totals, scores_of = decided.state.table.names, scored.totals, scored.parts.of
    for row in decided.best_rows(BEST_KEPT):
        considered = known.get(row)
        if considered is None:
            if len(known) >= MOST_KNOWN:
                known.clear()
            considered = known[row] = Considered(names[row], totals.item(row), scores_of(row))
        best.append(considered)
    return tuple(best)


def failure(
    journal: Journal,
    entry: QueuedPod,
    status: Status,
    found: Diagnosis | None,
    nominated: str | None,
    rejected_by: dict[str, int],
    now: float,
) -> None:
    """An attempt failed, by refusal or by trouble."""
    if not status.is_rejected:
        journal.add(Erred(at=now, pod=entry.key, uid=entry.uid, message=status.message))
        return
    journal.add(
        Refused(
            at=now,
            pod=entry.key,
            uid=entry.uid,
            message=status.message,
            plugins=() if found is None else tuple(sorted(found.unschedulable_plugins)),
            rejected_by=rejected_by,
            nominated=nominated or "",
        )
    )


def slow_plugins(journal: Journal, profile: Profile, now: float) -> None:
    """Plugins that were asked about very many nodes one by one, each once."""
    for plugin, point, nodes in profile.loops.newly_slow():
        journal.add(SlowPlugin(at=now, plugin=plugin, point=point, nodes=nodes))
