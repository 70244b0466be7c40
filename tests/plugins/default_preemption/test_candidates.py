"""The ranks of candidates, and which of them is chosen for which reason."""

import random

import numpy as np
import pytest
from msgspec import structs

from moorage import plugin as mp
from moorage.api.pod import PodStatus
from moorage.plugins.default_preemption import candidates
from moorage.plugins.default_preemption import results as results_module
from moorage.plugins.default_preemption.results import REJECTED, UNTRIED, DryRunResults, figures
from moorage.testing import make_pod

NO = mp.unschedulable("no")


def candidate(priorities, violations=0, started="2026-01-01T00:00:00Z"):
    victims = [
        structs.replace(make_pod(f"p{i}", priority=priority), status=PodStatus(start_time=started))
        for i, priority in enumerate(sorted(priorities, reverse=True))
    ]
    return mp.Candidate("n", tuple(victims), violations)


def naive_choice(found):
    """The position of the best, and the criterion by which it is better than all others."""
    left = list(range(len(found)))
    for criterion in range(5):
        best = min(found[i][criterion] for i in left)
        rest = [i for i in left if found[i][criterion] == best]
        if len(rest) == 1 < len(left):
            return rest[0], candidates.REASONS[criterion]
        left = rest
    return left[0], None


def random_candidate(rng):
    priorities = [rng.choice((0, 1, 5)) for _ in range(rng.randint(1, 3))]
    return candidate(priorities, rng.choice((0, 0, 1)), f"2026-01-01T00:00:0{rng.randint(0, 3)}Z")


@pytest.mark.parametrize("seed", range(20))
def test_ranks_follow_the_figures_whatever_was_recorded_and_forgotten_before(seed):
    rng, results = random.Random(seed), DryRunResults(30)
    held = {}
    for _ in range(100):
        row = rng.randrange(30)
        if rng.random() < 0.2:
            results.forget({row})
            held.pop(row, None)
        elif rng.random() < 0.2:
            results.record(row, NO)
            held[row] = None
        else:
            made = random_candidate(rng)
            results.record(row, made)
            held[row] = figures(made)
    helps = [row for row, found in held.items() if found is not None]
    assert {row: results.figures[results.ranks[row]] for row in helps} == {
        row: held[row] for row in helps
    }
    assert results.figures == sorted(set(results.figures))
    assert all(found[0] == (rank >= results.harmful) for rank, found in enumerate(results.figures))
    assert [results.ranks[row] == UNTRIED for row in range(30)] == [
        row not in held for row in range(30)
    ]
    rejected = [row for row, found in held.items() if found is None]
    assert all(results.ranks[row] >= REJECTED for row in rejected)
    assert results.rejections(np.arange(30)) == ({NO: len(rejected)} if rejected else {})


@pytest.mark.parametrize("seed", range(20))
def test_the_choice_is_that_of_one_criterion_after_the_other(seed):
    rng, results = random.Random(seed), DryRunResults(12)
    made = [random_candidate(rng) for _ in range(rng.randint(2, 12))]
    for row, each in enumerate(made):
        results.record(row, each)
    position, why = naive_choice([figures(each) for each in made])
    by_row = candidates.best(results.ranks[: len(made)], results.figures)
    assert by_row == candidates.choose(made)
    assert by_row.position == position
    if why is None:
        assert by_row.why.startswith("it equals")
    else:
        assert by_row.why == why


@pytest.mark.parametrize("few", [0, 9], ids=["all at once", "one by one"])
def test_results_of_a_block_and_of_single_rows_are_compared(few, monkeypatch):
    monkeypatch.setattr(results_module, "FEW_FIGURES", few)
    results = DryRunResults(4)
    results.record(0, candidate([5, 5]))
    block = [figures(each) for each in (candidate([5]), candidate([0]), candidate([5, 5]))]
    results.record_block(np.array([1, 2, 3]), block, leaving=None)
    assert results.ranks.tolist() == [2, 1, 0, 2]


@pytest.mark.parametrize("harmful_share", [0.0, 0.1, 0.5, 0.95, 1.0])
@pytest.mark.parametrize("seed", range(20))
def test_the_search_ends_when_there_are_enough_candidates(seed, harmful_share):
    rng, results = random.Random(seed), DryRunResults(400)
    outcomes = [random_candidate(rng) if rng.random() < 0.3 else NO for _ in range(400)]
    for i, each in enumerate(outcomes):
        if isinstance(each, mp.Candidate):
            violations = rng.choice((1, 2)) if rng.random() < harmful_share else 0
            outcomes[i] = structs.replace(each, violations=violations)
    rows, needed = np.array(rng.sample(range(400), 300)), rng.choice((0, 1, 5, 40, 300))

    def dry_run(untried):
        for row in untried.tolist():
            assert results.ranks[row] == UNTRIED
            results.record(row, outcomes[row])

    found = candidates.find(rows, needed, results, dry_run)
    harmless, harmful = [], []
    for row in rows.tolist():
        if isinstance(outcomes[row], mp.Candidate):
            (harmful if outcomes[row].violations else harmless).append(row)
            if min(len(harmless), needed) and (
                min(len(harmless), needed) + min(len(harmful), needed) >= needed
            ):
                break
        assert results.ranks[row] != UNTRIED
    assert found.rows.tolist() == harmless[:needed] + harmful[:needed]
    assert found.ranks.tolist() == results.ranks[found.rows].tolist()
    assert found.best == min(found.rows.tolist(), key=results.ranks.item, default=None)
