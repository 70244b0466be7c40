"""PartitionedHeap against a model that sorts everything again for every pop."""

from hypothesis import given
from hypothesis import strategies as st

from moorage.core.partitions import PartitionedHeap, QueuePaths
from moorage.core.queued_pod import QueuedPod
from moorage.framework.invoke import method_of
from moorage.testing import make_pod

PATHS = (("a", "x"), ("a", "y"), ("b",), ("c", "z"))
PREFIXES = sorted({path[:depth] for path in PATHS for depth in range(1, len(path) + 1)})


class Shares:
    """A queue_sort plugin whose keys a test sets."""

    name = "Shares"

    def __init__(self):
        self.keys = dict.fromkeys(PREFIXES, 0)

    def queue_path(self, pod):
        return PATHS[int(pod.labels["path"])]

    def queue_path_key(self, path):
        return self.keys[path]

    def queue_path_changes(self):
        return PREFIXES


def heap_of(plugin):
    methods = ("queue_path", "queue_path_key", "queue_path_changes")
    return PartitionedHeap(QueuePaths(*[method_of(plugin, name) for name in methods]))


def entry(number, path):
    return QueuedPod(make_pod(f"p{number}", labels={"path": str(path)}), 0.0)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.integers(0, 3), st.integers(0, 5)),
        st.tuples(st.just("key"), st.integers(0, len(PREFIXES) - 1), st.integers(0, 9)),
        st.tuples(st.just("remove"), st.integers(0, 20), st.none()),
        st.tuples(st.just("move"), st.integers(0, 20), st.integers(0, 3)),
        st.tuples(st.just("pop"), st.none(), st.none()),
        st.tuples(st.sampled_from(["rekey", "rebuild"]), st.none(), st.none()),
    ),
    max_size=60,
)


@given(STEPS)
def test_pods_leave_in_the_order_of_their_partitions(steps):
    plugin = Shares()
    heap = heap_of(plugin)
    waiting = {}  # pod -> path, key

    for number, (step, first, second) in enumerate(steps):
        found = sorted(waiting)
        if step == "push":
            pod = entry(number, first)
            heap.push(pod.key, pod, second)
            waiting[pod.key] = (PATHS[first], second)
        elif step == "key":
            plugin.keys[PREFIXES[first]] = second
            heap.changed([PREFIXES[first]])
        elif step in ("rekey", "rebuild"):
            waiting = {pod: (path, -key) for pod, (path, key) in waiting.items()}
            keys = {pod: key for pod, (_, key) in waiting.items()}
            getattr(heap, step)(lambda pod, keys=keys: keys[pod.key])
        elif step == "pop" and waiting:
            paths = [path for path, _ in waiting.values()]
            path, key = waiting.pop(heap.pop().key)
            # Keys order siblings; of siblings with equal keys either may be first.
            for depth in range(len(path)):
                siblings = {other[: depth + 1] for other in paths if other[:depth] == path[:depth]}
                assert plugin.keys[path[: depth + 1]] == min(map(plugin.keys.get, siblings))
            assert all(key <= other for same, other in waiting.values() if same == path)
        elif step == "remove" and first < len(found):
            heap.remove(found[first])
            del waiting[found[first]]
        elif step == "move" and first < len(found):
            number = int(found[first].rpartition("p")[2])
            heap.update(found[first], entry(number, second), 3)
            waiting[found[first]] = (PATHS[second], 3)
        assert {pod.key for pod in heap} == waiting.keys()
        assert len(heap) == len(waiting)


def test_a_plugin_that_raises_stops_nothing():
    plugin = Shares()
    heap = heap_of(plugin)
    bad = QueuedPod(make_pod("bad"), 0.0)  # without the label
    heap.push(bad.key, bad, 0)
    good = entry(1, 2)
    heap.push(good.key, good, 0)
    assert [heap.pop().key for _ in range(2)] == [good.key, bad.key]
