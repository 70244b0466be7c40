"""PartitionedHeap: pods in a tree of partitions, whose order is decided when a pod is popped.

For queue_sort plugins with `queue_path`. A heap needs keys that stay as they are, but the order of
partitions changes with every pod that comes to a node or leaves one. So each partition has a heap
of its pods, and each inner node of the tree a heap of its children; the plugin reports the paths
whose keys changed. Push, pop and a changed key cost O(depth * log n).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from moorage.core.heap import Heap, comparable
from moorage.core.queued_pod import QueuedPod
from moorage.errors import PluginError
from moorage.framework.invoke import PluginMethod

Path = tuple[str, ...]
# Of a pod for which the plugin fails.
NO_PATH: Path = ("",)


@dataclass(slots=True)
class QueuePaths:
    """The methods of a queue_sort plugin that has partitions; an exception never stops a pop."""

    path: PluginMethod
    key: PluginMethod
    changes: PluginMethod

    def of(self, entry: QueuedPod) -> Path:
        """The partition of a pod."""
        try:
            return tuple(map(str, self.path.call(entry.pod))) or NO_PATH
        except Exception:  # It raised, or returned no path.
            return NO_PATH

    def key_of(self, path: Path) -> Any:
        """The present key of a path among its siblings; a failure comes last."""
        try:
            return False, comparable(self.key.call(path))
        except PluginError:
            return True, ()

    def changed(self) -> Sequence[Path] | None:
        """The paths with another key; None: pods may have other paths."""
        try:
            found: Sequence[Path] | None = self.changes.call()
            return found if found is None else [tuple(map(str, path)) for path in found]
        except Exception:  # As above.
            return None


class Branch:
    """A node of the tree: an inner one has children, a partition has pods."""

    __slots__ = ("children", "key", "named", "path", "pods")

    def __init__(self, path: Path, key: Any) -> None:
        self.path = path
        self.key = key
        self.named: dict[str, Branch] = {}
        self.children: Heap[Branch] = Heap()
        self.pods: Heap[QueuedPod] = Heap()


class PartitionedHeap:
    """See the module. Within a partition, the order is that of `Heap`."""

    def __init__(
        self, paths: QueuePaths, on_incomparable: Callable[[Exception], None] | None = None
    ) -> None:
        self._order = paths
        self._on_incomparable = on_incomparable
        self._root = Branch((), ())
        # The paths of all pods, by id.
        self.live: dict[str, Path] = {}

    def push(self, item_id: str, entry: QueuedPod, key: Any) -> None:
        """Add a pod that is not in the heap."""
        path = self.live[item_id] = self._order.of(entry)
        branch = self._root
        for depth, name in enumerate(path, 1):
            child = branch.named.get(name)
            if child is None:
                child = Branch(path[:depth], self._order.key_of(path[:depth]))
                child.pods.on_incomparable = self._on_incomparable
                branch.named[name] = child
                branch.children.push(name, child, child.key)
            branch = child
        branch.pods.push(item_id, entry, key)

    def update(self, item_id: str, entry: QueuedPod, key: Any) -> None:
        """Replace a pod, which may be in another partition now."""
        path = self.live[item_id]
        if path == self._order.of(entry):
            self._find(path).pods.update(item_id, entry, key)
        else:
            self.remove(item_id)
            self.push(item_id, entry, key)

    def pop(self) -> QueuedPod:
        """Remove and return the first pod of the first partition; IndexError if there is none."""
        branch = self._first()
        entry = branch.pods.pop()
        del self.live[entry.key]
        self._prune(branch)
        return entry

    def remove(self, item_id: str) -> QueuedPod:
        """Remove and return a pod; KeyError if it is not in the heap."""
        branch = self._find(self.live.pop(item_id))
        entry = branch.pods.remove(item_id)
        self._prune(branch)
        return entry

    def rank(self) -> list[Any]:
        """The keys on the path to the first pod, to compare with another heap's."""
        first = self._first()
        return [self._find(first.path[:depth]).key for depth in range(1, len(first.path) + 1)]

    def changed(self, paths: Sequence[Path]) -> None:
        """Sort partitions again whose keys changed."""
        for path in paths if self.live else ():
            if not path:
                continue
            parent = self._root
            for name in path[:-1]:
                parent = parent.named.get(name, self._root)
            branch = parent.named.get(path[-1])
            if branch is not None and branch.path == path:
                branch.key = self._order.key_of(path)
                parent.children.update(path[-1], branch, branch.key)

    def rekey(self, key_of: Callable[[QueuedPod], Any]) -> None:
        """Give every pod another key; it stays in its partition."""
        for heap in self.heaps():
            heap.rekey(key_of)

    def rebuild(self, key_of: Callable[[QueuedPod], Any]) -> None:
        """Place every pod again, with its present path and another key."""
        entries = list(self)
        self._root, self.live = Branch((), ()), {}
        for entry in entries:
            self.push(entry.key, entry, key_of(entry))

    def __contains__(self, item_id: str) -> bool:
        return item_id in self.live

    def __len__(self) -> int:
        return len(self.live)

    def __iter__(self) -> Iterator[QueuedPod]:
        """All pods, partition by partition in their present order."""
        for heap in self.heaps():
            yield from heap

    def heaps(self) -> list[Heap[QueuedPod]]:
        """The heap of each partition."""
        return list(_heaps(self._root))

    def _first(self) -> Branch:
        branch = self._root
        while branch.named:
            branch = branch.children.peek()
        return branch

    def _find(self, path: Path) -> Branch:
        branch = self._root
        for name in path:
            branch = branch.named[name]
        return branch

    def _prune(self, branch: Branch) -> None:
        """Remove a partition without pods, and the inner nodes above that are empty then."""
        path = branch.path
        while path and not (branch.pods or branch.named):
            name, path = path[-1], path[:-1]
            branch = self._find(path)
            branch.children.remove(name)
            del branch.named[name]


def _heaps(branch: Branch) -> Iterator[Heap[QueuedPod]]:
    if branch.pods:
        yield branch.pods
    for child in branch.children:
        yield from _heaps(child)
