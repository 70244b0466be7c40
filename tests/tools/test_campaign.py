"""The tool behind `make campaign`: it goes on where it was interrupted, and counts failures."""

import json

import campaign
import pytest
from campaign import Campaign, Result

SEEDS = {"faults": range(3), "volumes": range(2)}


@pytest.fixture
def finished(tmp_path):
    """A campaign whose file has some results already."""
    results = [
        Result("faults", 1, 0.5, ""),
        Result("volumes", 0, 1.5, "InvariantError: wrong"),
        Result("faults", 700, 9.0, ""),
    ]
    file = tmp_path / "results.jsonl"
    file.write_text("".join(f"{json.dumps(result)}\n" for result in results))
    return Campaign(SEEDS, file)


def test_seeds_with_a_result_are_not_run_again(finished):
    assert finished.tasks() == [("faults", 0), ("faults", 2), ("volumes", 1)]


def test_totals(finished):
    assert finished.table().splitlines()[2:] == [
        "| faults | 1 | 0 | 0 | 0.5 |",
        "| volumes | 1 | 1 | 2 | 1.5 |",
        "| all | 2 | 1 | 2 | 1.5 |",
    ]


def test_what_a_seed_raises_is_its_result(monkeypatch):
    monkeypatch.setitem(campaign.RUNS, "faults", lambda seed: 1 // seed)
    assert [campaign.run_seed(("faults", seed)).error for seed in (1, 0)] == [
        "",
        "ZeroDivisionError: integer division or modulo by zero",
    ]


def test_every_family_runs(tmp_path):
    seeds = {family: range(1) for family in campaign.SEEDS}
    results = list(Campaign(seeds, tmp_path / "build" / "results.jsonl").run(1))
    assert {each.family for each in results if not each.error} == set(campaign.SEEDS)
    assert Campaign(seeds, tmp_path / "build" / "results.jsonl").tasks() == []


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (["--jobs", "0"], "--jobs is 0; at least one process is needed"),
        (["--scale", "nan"], "--scale is nan; it has to be above 0, and 1000 at most"),
        (["--results", "/nowhere/x"], "--results: the folder /nowhere does not exist"),
    ],
)
def test_bad_flags(monkeypatch, capsys, flags, error):
    monkeypatch.setattr("sys.argv", ["campaign.py", *flags])
    with pytest.raises(SystemExit) as ended:
        campaign.arguments()
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith(error)
