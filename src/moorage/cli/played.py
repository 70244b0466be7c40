"""What commands that play a plan have in common: a progress bar, and how they tell the result."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.api.config import Source
    from moorage.api.meta import KubeObject
    from moorage.scenarios.plan import Plan
    from moorage.sim.results.result import Result
    from moorage.sim.run import Simulation


def play(
    plan: "Plan",
    objects: "Iterable[KubeObject]",
    config: "Source",
    seed: int | None,
    record_file: str | None = None,
) -> "Simulation":
    """Play a plan to its end, and keep a recording if one is wanted."""
    from moorage.cli.progress import Progress
    from moorage.scenarios.play import Play

    with Progress("playing") as progress:
        playing = Play(plan, objects, config, seed, trace=record_file is not None)
        simulation = playing.run(progress.update)
    if record_file is not None:
        from moorage.planning import recording

        recording.write(record_file, simulation)
    return simulation


def show(result: "Result", name: str, seed: int, output: str) -> None:
    """Print a result."""
    if output == "table":
        from moorage.cli import result_tables

        result_tables.show(result, name, seed)
    else:
        from moorage.cli import documents

        documents.write({"name": name, "seed": seed, **result.to_dict()}, output)
