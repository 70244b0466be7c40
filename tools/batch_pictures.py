"""The picture of docs/batch.md: one trace with and without gangs and fair shares.

For each of the four runs: the share of the GPUs that each team uses over time against what it is
entitled to, and the mean wait of its pods.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from moorage.api import config, manifests
from moorage.scenarios import openb
from moorage.scenarios.play import Play
from moorage.sim.results.result import Result

FOLDER = Path(__file__).parents[1] / "examples" / "batch"
RUNS = {
    "neither": None,
    "gangs": "gangs.yaml",
    "fair shares": "fair.yaml",
    "gangs and fair shares": "both.yaml",
}
COLORS = ("#0072b2", "#d55e00", "#009e73")
PANEL, GAP, LEFT, TOP = (400, 170), 60, 48, 58
WAITS = 150


class Run(NamedTuple):
    """One run of the trace."""

    title: str
    result: Result


def runs() -> list[Run]:
    """All four."""
    queues = manifests.load([str(FOLDER / "queues.yaml")]).everything
    found = []
    for title, file in RUNS.items():
        plan = openb.load(FOLDER / "jobs.csv", FOLDER / "nodes.csv")
        chosen = config.load(None if file is None else FOLDER / file)
        found.append(Run(title, Play(plan, queues, chosen).run().result))
    return found


def svg(all_runs: Sequence[Run]) -> str:
    """The picture."""
    width, height = PANEL
    total = 2 * (width + GAP) + LEFT, TOP + 2 * (height + GAP) + WAITS
    names = [each.name for each in all_runs[0].result.queues]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total[0]} {total[1]}" '
        'font-family="sans-serif" font-size="12" fill="#222">',
        f'<rect width="{total[0]}" height="{total[1]}" fill="#fff"/>',
        *_legend(names),
    ]
    for i, run in enumerate(all_runs):
        x, y = LEFT + (i % 2) * (width + GAP), TOP + (i // 2) * (height + GAP)
        parts += _shares(run, names, x, y)
    parts += _waits(all_runs, names, TOP + 2 * (height + GAP) + 10)
    return "\n".join([*parts, "</svg>\n"])


def _legend(names: Sequence[str]) -> Iterator[str]:
    for i, (name, color) in enumerate(zip(names, COLORS, strict=True)):
        x = LEFT + 110 * i
        yield f'<rect x="{x}" y="12" width="12" height="12" fill="{color}"/>'
        yield f'<text x="{x + 18}" y="22">{name}</text>'
    yield f'<text x="{LEFT + 340}" y="22">dashed: entitled share of the GPUs</text>'


def _shares(run: Run, names: Sequence[str], x: float, y: float) -> Iterator[str]:
    """The shares over time of one run."""
    (width, height), result = PANEL, run.result
    ended = sum(place.ended_at is not None for place in result.history)
    yield f'<text x="{x}" y="{y - 8}" font-weight="bold">{run.title}</text>'
    yield f'<text x="{x + width}" y="{y - 8}" text-anchor="end">{ended} pods ended</text>'
    for percent in (0, 50, 100):
        at = y + height * (1 - percent / 100)
        yield f'<path d="M{x} {at}h{width}" stroke="#ddd"/>'
        yield f'<text x="{x - 6}" y="{at + 4}" text-anchor="end">{percent}%</text>'
    end = result.samples[-1].at
    for hour in range(0, int(end // 3600) + 1, 2):
        yield (
            f'<text x="{x + width * hour * 3600 / end}" y="{y + height + 16}" '
            f'text-anchor="middle">{hour} h</text>'
        )
    for queue, color in zip(names, COLORS, strict=True):
        entitled = next(each.entitled for each in result.queues if each.name == queue)
        at = y + height * (1 - entitled)
        dashes = 'stroke-dasharray="3 4"'
        yield f'<path d="M{x} {at:.1f}h{width}" stroke="{color}" {dashes} opacity=".7"/>'
        points = " ".join(
            f"{x + width * each.at / end:.1f},{y + height * (1 - each.queue_shares[queue]):.1f}"
            for each in result.samples
        )
        yield f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.8"/>'


def _waits(all_runs: Sequence[Run], names: Sequence[str], y: float) -> Iterator[str]:
    """The mean wait of bound pods, a group of bars per run."""
    yield f'<text x="{LEFT}" y="{y}" font-weight="bold">mean wait of pods that were bound</text>'
    waits = {(run.title, each.name): each.waits for run in all_runs for each in run.result.queues}
    most = max(each.mean for each in waits.values()) or 1.0
    for i, run in enumerate(all_runs):
        x = LEFT + i * 225
        yield f'<text x="{x}" y="{y + 122}">{run.title}</text>'
        for j, (name, color) in enumerate(zip(names, COLORS, strict=True)):
            found = waits[run.title, name]
            height = 80 * found.mean / most
            at = x + 48 * j
            top = y + 104 - height
            yield f'<rect x="{at}" y="{top:.1f}" width="40" height="{height:.1f}" fill="{color}"/>'
            text = f"{found.mean / 60:.0f} min" if found.count else "none"
            yield f'<text x="{at}" y="{top - 4:.1f}" font-size="11">{text}</text>'


def main() -> None:
    """Print the figures."""
    for run in runs():
        result = run.result
        ended = sum(each.ended_at is not None for each in result.history)
        print(f"{run.title}: {ended} pods ended")
        for each in result.queues:
            mean, wait = f"{each.mean_share:.0%}", each.waits
            print(f"  {each.name:10} entitled {each.entitled:.0%}, mean share {mean}, ", end="")
            print(f"{wait.count} bound after {wait.mean / 60:.0f} min, {each.pending} pending")


if __name__ == "__main__":
    main()
