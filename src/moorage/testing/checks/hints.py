"""Hints are hints, and none of them turns down a change that cures the plugin's refusal."""

from collections.abc import Iterator

from msgspec.structs import replace

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.core import updates
from moorage.core.requeueing import HintMap
from moorage.framework import events
from moorage.framework.events import Action, ClusterEvent, Hint
from moorage.framework.points import Plugin
from moorage.testing.builders import make_table
from moorage.testing.checks import results
from moorage.testing.checks.examples import Example
from moorage.testing.cycle import PluginCycle


def registered(plugin: Plugin) -> events.Events:
    """What the plugin wants to hear of; nothing if it does not say."""
    return plugin.events_to_register() if hasattr(plugin, "events_to_register") else {}


def check_hints(plugin: Plugin, example: Example) -> None:
    """Every hint answers with a Hint, whatever happened."""
    versions = {events.NODE: _two_versions(example), events.POD: (example.other, example.pod)}
    for event, hint in registered(plugin).items():
        if hint is None or event.resource not in versions:
            continue
        before, after = versions[event.resource]
        if event.action & Action.ADD:
            _allow_hint(event, hint(example.pod, None, after))
        if event.action & Action.DELETE:
            _allow_hint(event, hint(example.pod, before, None))
        if event.action & Action.UPDATE:
            _allow_hint(event, hint(example.pod, before, after))


def _allow_hint(event: ClusterEvent, said: object) -> None:
    assert isinstance(said, Hint), (
        f"a hint must return mp.Hint.QUEUE or mp.Hint.QUEUE_SKIP; for {event.label} it is {said!r}"
    )


def check_cures(plugin: Plugin, example: Example) -> None:
    """A change that makes a node fit must not be turned down: the pod would wait forever."""
    if not hasattr(plugin, "events_to_register"):
        return  # It is told of everything.
    heard = HintMap({plugin.name: plugin.events_to_register()})
    pod, (old, other) = example.pod, _two_versions(example)
    if _fits(plugin, pod, old):
        return
    for field, new in _node_variants(old, other):
        changed = updates.node_update(old, new)
        if changed and _fits(plugin, pod, new):
            _check_heard(heard, changed, (pod, old, new), f"a change of {field}")
    if _fits(plugin, pod, other):
        _check_heard(heard, [ClusterEvent.NODE_ADD], (pod, None, other), "a new node")


def _check_heard(
    heard: HintMap,
    changed: list[ClusterEvent],
    versions: tuple[Pod, Node | None, Node],
    what: str,
) -> None:
    registrations = [found for event in changed for found in heard.covering(event)]
    assert any(found.hint(*versions) is Hint.QUEUE for found in registrations), (
        f"{what} makes the node fit, but no hint for {' or '.join(e.label for e in changed)} says "
        f"QUEUE: the pod would never be tried again\n  pod:  {results.shown(versions[0])}"
        f"\n  old:  {results.shown(versions[1])}\n  new:  {results.shown(versions[2])}"
    )


def _fits(plugin: Plugin, pod: Pod, node: Node) -> bool:
    table = make_table([node])
    return PluginCycle(plugin, pod, table).status(table.row_of[node.name]).is_success


def _two_versions(example: Example) -> tuple[Node, Node]:
    old, other = example.nodes[0], example.nodes[-1]
    return old, replace(other, metadata=replace(other.metadata, name=old.name))


def _node_variants(node: Node, other: Node) -> Iterator[tuple[str, Node]]:
    """The node with one thing at a time as another node has it."""
    for part in ("metadata", "spec", "status"):
        mine, its = getattr(node, part), getattr(other, part)
        for field in type(mine).__struct_fields__:
            changed = replace(mine, **{field: getattr(its, field)})
            yield f"{part}.{field}", replace(node, **{part: changed})
