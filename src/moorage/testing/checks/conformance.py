"""All the checks, one after the other, on random examples."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from random import Random

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.framework.cluster import Cluster
from moorage.framework.points import Depends, Plugin
from moorage.testing.checks import hints, results, shape
from moorage.testing.checks.examples import Example, Examples
from moorage.testing.cycle import PluginCycle


def check_plugin(
    plugin: Plugin,
    *,
    pods: Sequence[Pod] | None = None,
    nodes: Sequence[Node] | None = None,
    examples: int = 50,
) -> None:
    """Prove, as far as random examples can, that a plugin keeps its contract.

    That is: its methods take the right arguments and return what their points allow; its two
    forms agree, for all rows and for some; it is pure and repeatable; normalised scores are
    integers from 0 to 100; it can be pickled; `reads` and `depends` are honest; and no hint turns
    down a change of a node that cures the plugin's refusal.

    Pods and nodes are random, with values for those labels and annotations that the plugin turns
    out to look at. If it looks at something less usual, hand in `pods` and `nodes` to draw from.
    """
    shape.check_shape(plugin)
    drawn = Examples(pods, nodes)
    drawn.learn(partial(_look, plugin))
    for seed in range(examples):
        rng = Random(seed)
        try:
            _check_example(plugin, drawn.draw(rng), drawn.draw(rng))
        except AssertionError as broken:
            raise AssertionError(f"{plugin.name}, example {seed}: {broken}") from broken
        except Exception as trouble:
            raise AssertionError(
                f"{plugin.name}, example {seed}: raised {trouble!r} for a pod and nodes that an "
                "API server accepts; return a Status, or cope with what is missing"
            ) from trouble


def _look(plugin: Plugin, example: Example) -> None:
    with suppress(Exception):  # Trouble is reported when examples are checked.
        PluginCycle(plugin, example.pod, example.table()).answers()


def _check_example(plugin: Plugin, example: Example, another: Example) -> None:
    content = example.content()
    pod, table = example.pod, example.table()
    if hasattr(plugin, "attach"):
        plugin.attach(Cluster(table=table))
    results.check_twins(plugin, pod, table)
    cycle = PluginCycle(plugin, pod, table)
    said = cycle.answers()
    assert example.content() == content, (
        "a pod or a node was modified; make a new one with msgspec.structs.replace"
    )
    if cycle.scores:
        results.check_scores(cycle, said)
    results.check_repeats(plugin, example, table, said)
    results.check_other_points(plugin, example)
    results.check_optional_methods(plugin, example)
    hints.check_hints(plugin, example)
    if isinstance(depends := getattr(plugin, "depends", None), Depends):
        results.check_reads(plugin, example, table, said)
        results.check_depends(plugin, depends, example, another, said)
    if depends is Depends.NODE:
        hints.check_cures(plugin, example)
