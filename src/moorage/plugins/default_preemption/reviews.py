"""Reviews: those outside who have a word in preemption, HTTP extenders perhaps, asked in turn.

Each may strike nodes off the list, or name other victims; what it answers is what the next one
gets to see. One that may be ignored is passed over when it fails.
"""

from collections.abc import Iterable, Sequence

from moorage import plugin as mp


class ReviewError(Exception):
    """A reviewer that may not be ignored failed, or gave an answer that makes no sense."""


def after(
    pod: mp.Pod, candidates: Iterable[mp.Candidate], reviewers: Sequence[mp.Reviewer]
) -> list[mp.Candidate]:
    """The candidates that are left."""
    left = {each.node: each for each in candidates}
    for reviewer in reviewers:
        if left and reviewer.is_interested(pod):
            left = _review(pod, left, reviewer)
    return list(left.values())


def _review(
    pod: mp.Pod, candidates: dict[str, mp.Candidate], reviewer: mp.Reviewer
) -> dict[str, mp.Candidate]:
    try:
        answer = dict(reviewer.review(pod, candidates))
    except Exception as trouble:  # It is somebody else's code, and it may fail in any way.
        if reviewer.ignorable:
            return candidates
        raise ReviewError(str(trouble)) from trouble
    empty = [node for node, each in answer.items() if not each.victims]
    if empty and not reviewer.ignorable:
        raise ReviewError(f'expected at least one victim pod on node "{empty[0]}"')
    return {node: each for node, each in answer.items() if each.victims}
