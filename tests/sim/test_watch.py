from msgspec.structs import replace

from moorage.api.meta import ObjectMeta
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.core.observations import Listed
from moorage.sim.clock import Clock
from moorage.sim.cluster import MemoryCluster
from moorage.sim.faults import FaultPlan, Faults
from moorage.sim.watch import DeliverObservation, Relist, Watch


class Harness:
    """A cluster with one watcher behind a bad line."""

    def __init__(self, faults: Faults, seed: int = 7) -> None:
        self.cluster = MemoryCluster()
        self.clock: Clock[object] = Clock()
        self.watch = Watch(0, self.cluster, self.clock, FaultPlan(seed, faults))
        self.cluster.watch_active(self.watch.send)

    def change(self, times: int) -> None:
        node = self.cluster.create(Node(metadata=ObjectMeta(name="n1")), 0)
        for i in range(1, times):
            meta = replace(node.metadata, labels={"i": str(i)}, resource_version="")
            self.cluster.update(replace(node, metadata=meta))

    def delivered(self) -> list[str]:
        """Versions in the order in which they arrive; a listing in brackets."""
        delivered = []
        while len(self.clock):
            what = self.clock.pop()
            if isinstance(what, Relist):
                self.watch.relist(what.kind)
            elif isinstance(what, DeliverObservation) and isinstance(what.observation, Listed):
                delivered.append(f"[{','.join(map(_version, what.observation.objects))}]")
            elif isinstance(what, DeliverObservation):
                delivered.append(_version(what.observation.obj))  # type: ignore[union-attr]
        return delivered


def _version(obj) -> str:
    return obj.metadata.resource_version


def test_good_news_arrives_at_once_and_in_order():
    harness = Harness(Faults())
    harness.change(3)
    assert harness.delivered() == ["1", "2", "3"]
    assert harness.clock.now == 0


def test_late_news_keeps_its_order():
    harness = Harness(Faults(late_seconds=5))
    harness.change(10)
    assert harness.delivered() == [str(i) for i in range(1, 11)]
    assert harness.clock.now > 0


def test_doubled_news():
    harness = Harness(Faults(duplicated=1))
    harness.change(2)
    assert harness.delivered() == ["1", "1", "2", "2"]


def test_stale_news_is_followed_by_the_latest():
    harness = Harness(Faults(stale=1))
    harness.change(3)
    assert harness.delivered() == ["1", "2", "1", "2", "3", "2", "3"]


def test_a_lost_watch_is_mended_by_a_listing():
    harness = Harness(Faults(watch_lost=1, relist_seconds=5))
    harness.change(4)
    assert harness.delivered() == ["[4]"]


def test_each_kind_has_its_own_watch():
    harness = Harness(Faults(watch_lost=1, relist_seconds=5))
    harness.change(1)
    harness.cluster.create(Pod(metadata=ObjectMeta(name="web")), 0)
    assert sorted(harness.delivered()) == ["[1]", "[2]"]


def test_a_scheduler_that_starts_is_told_everything_there_is():
    harness = Harness(Faults())
    harness.cluster.create(Pod(metadata=ObjectMeta(name="web")), 0)
    harness.change(1)
    listings = harness.watch.initial_lists()
    assert [(each.kind, len(each.objects)) for each in listings] == [(Node, 1), (Pod, 1)]
