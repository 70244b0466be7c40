"""`reads` and `depends` are honest: answers that are kept for later stay right."""

from collections.abc import Hashable, Iterator

import msgspec
import numpy as np
from msgspec.structs import replace

from moorage.api.pod import Pod, PodSpec, PodStatus
from moorage.framework.points import Depends, Plugin
from moorage.nodes.table import NodeTable
from moorage.testing import strategies
from moorage.testing.checks import showing
from moorage.testing.checks.examples import Example
from moorage.testing.cycle import Answers, PluginCycle


def check_reads(plugin: Plugin, example: Example, table: NodeTable, said: Answers) -> None:
    """Pods that are the same to `reads` get the same answers."""
    read = _read(plugin, example.pod)
    for field, variant in _variants(example.pod, example.other):
        if _read(plugin, variant) == read:
            showing.check_same(
                said,
                PluginCycle(plugin, variant, table).answers(),
                f"two pods that are the same to `reads` and differ in {field} get different "
                f"answers; add what it depends on to `reads`\n  pod:  {showing.shown(example.pod)}"
                f"\n  and:  {showing.shown(variant)}",
            )


def _read(plugin: Plugin, pod: Pod) -> Hashable:
    if not hasattr(plugin, "reads"):
        return msgspec.msgpack.encode((replace(pod.metadata, name="", uid=""), pod.spec))
    read: Hashable = plugin.reads(pod)
    try:
        hash(read)
    except TypeError:
        raise AssertionError(
            f"`reads` must return something hashable, as a tuple of values, not {read!r}"
        ) from None
    return read


def _variants(pod: Pod, other: Pod) -> Iterator[tuple[str, Pod]]:
    """The pod with one thing at a time as another pod has it."""
    for field in PodSpec.__struct_fields__:
        changed = {field: getattr(other.spec, field)}
        yield f"spec.{field}", replace(pod, spec=replace(pod.spec, **changed))
    meta = other.metadata
    for field in ("namespace", "labels", "annotations"):
        changed = {field: getattr(meta, field)}
        yield f"metadata.{field}", replace(pod, metadata=replace(pod.metadata, **changed))
    named = replace(pod.metadata, name="another", uid="another")
    yield "name and UID", replace(pod, metadata=named)
    yield "status", replace(pod, status=PodStatus(phase="Pending", nominated_node_name="n1"))


def check_depends(
    plugin: Plugin, depends: Depends, example: Example, another: Example, said: Answers
) -> None:
    """Answers change with nothing but what `depends` admits."""
    if depends is Depends.ANYTHING:
        return
    # The order of rows and the time of day never matter.
    nodes, running, changes = list(reversed(example.nodes)), example.running, "rows and time"
    names = {node.name for node in nodes}
    if depends in (Depends.NODE, Depends.USAGE):
        nodes += [node for node in another.nodes if node.name not in names]
        running = running + [pod for pod in another.running if pod.node_name not in names]
        changes += ", other nodes and their pods"
    if depends in (Depends.NODE, Depends.NODES):
        running = another.running
        changes += ", all pods on nodes"
    cycle = PluginCycle(plugin, example.pod, strategies.worn_table(nodes, running), now=1000.0)
    complaint = f"`depends` is {depends.name}, but answers changed with {changes}; widen it"
    showing.check_same(said, cycle.answers().of(names), complaint)
    if depends is not Depends.PLACEMENTS and cycle.scores:
        cycle.scores = cycle.pre_score(np.zeros_like(cycle.table.active_rows))
        complaint = f"with `depends` {depends.name}, pre_score must not look at `feasible`"
        showing.check_same(said, cycle.answers().of(names), complaint)
