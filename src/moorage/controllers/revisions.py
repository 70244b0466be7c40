"""ControllerRevisions: the templates that a DaemonSet or StatefulSet had, for rollouts and undo.

A revision holds a patch that sets the template again. An equal template gets its revision back,
with the highest number.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from moorage.controllers import objects, ownership
from moorage.controllers.index import ObjectIndex
from moorage.controllers.objects import Object
from moorage.controllers.writes import Create, Delete, Update, Write

KIND = "apps/ControllerRevision"


class History(NamedTuple):
    """The revisions of a workload."""

    latest: Object
    """The revision of the current template; it does not exist yet if `known` lacks it."""
    known: Sequence[Object]
    adoptions: Sequence[Write]

    def find(self, name: str) -> Object | None:
        """The revision of that name."""
        return next((each for each in self.known if objects.name(each) == name), None)

    def recorded(self) -> Iterator[Write]:
        """Create the latest revision, or give it the highest number."""
        yield from self.adoptions
        if self.latest not in self.known:
            yield Create(self.latest)
            return
        others = [number(each) for each in self.known if each is not self.latest]
        if others and max(others) >= number(self.latest):
            yield Update({**self.latest, "revision": max(others) + 1})

    def pruned(self, workload: Object, used: Iterable[str]) -> Iterator[Write]:
        """Delete the oldest revisions beyond the limit that no pod uses; `used` are names."""
        kept = objects.spec_number(workload, "revisionHistoryLimit", 10)
        live = {objects.name(self.latest), *used}
        old = [each for each in self.known if objects.name(each) not in live]
        old.sort(key=number)
        yield from map(Delete, old[: max(0, len(old) - kept)])


def history(workload: Object, index: ObjectIndex, hash_label: str) -> History:
    """The revisions of a workload, with a new one if its template has none."""
    known, adoptions = ownership.claim(workload, KIND, index)
    current = objects.canonical(objects.template(workload))
    equal = [each for each in known if objects.canonical(template(each)) == current]
    if equal:
        return History(max(equal, key=number), known, adoptions)
    highest = max(map(number, known), default=0)
    return History(of_template(workload, hash_label, highest + 1), known, adoptions)


def number(revision: Object) -> int:
    return int(revision.get("revision") or 0)


def template(revision: Object) -> Object:
    """The pod template that a revision holds."""
    held = objects.value_at(revision, "data", "spec", "template") or {}
    return {key: value for key, value in held.items() if key != "$patch"}


def hash_of(revision: Object, hash_label: str) -> str:
    return objects.labels(revision).get(hash_label, "")


def _in_order(value: Any) -> Any:
    """The value with sorted keys: clients compare the JSON of a template byte by byte."""
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value)}
    return [_in_order(each) for each in value] if isinstance(value, list) else value


def of_template(workload: Object, hash_label: str, revision: int, hashed: str = "") -> Object:
    """A revision of the workload's template; `hashed` is its hash, if another program set that."""
    own = objects.template(workload)
    hashed = hashed or objects.template_hash(own)
    labels = (own.get("metadata") or {}).get("labels") or {}
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"{objects.name(workload)}-{hashed}",
            "namespace": objects.namespace(workload),
            "labels": {**labels, hash_label: hashed},
            "ownerReferences": [objects.controller_reference(workload)],
            **({"annotations": kept} if (kept := objects.annotations(workload)) else {}),
        },
        "data": {"spec": {"template": _in_order({**own, "$patch": "replace"})}},
        "revision": revision,
    }
