"""Objects other than pods and nodes, and the version numbers that grow when they change."""

from msgspec.structs import replace

from moorage.api.meta import ObjectMeta
from moorage.api.policy import PriorityClass
from moorage.api.workloads import Service
from moorage.framework.cluster import Cluster
from moorage.nodes.changes import Cursor


def service(name, namespace="default", **labels):
    return Service(metadata=ObjectMeta(name=name, namespace=namespace, labels=labels))


def test_objects_by_kind_and_key():
    cluster = Cluster()
    high = PriorityClass(metadata=ObjectMeta(name="high"))
    for obj in (service("a"), service("a", "other"), high):
        cluster.put(obj)
    assert cluster.get(Service, "other/a") == service("a", "other")
    assert cluster.get(PriorityClass, "high") is high
    assert cluster.get(Service, "high") is None
    assert list(cluster.all(Service)) == [service("a"), service("a", "other")]


def test_objects_of_a_namespace():
    cluster = Cluster()
    cluster.put(service("a"))
    assert list(cluster.in_namespace(Service, "default")) == [service("a")]
    cluster.put(service("b"))
    cluster.put(service("a", color="red"))
    cluster.put(service("a", "other"))
    found = list(cluster.in_namespace(Service, "default"))
    assert found == [service("a", color="red"), service("b")]
    cluster.drop(service("a"))
    assert list(cluster.in_namespace(Service, "default")) == [service("b")]
    assert list(cluster.in_namespace(Service, "unheard")) == []


def test_the_version_of_a_kind_is_unchanged_by_irrelevant_updates():
    cluster = Cluster()
    cluster.put(service("a"))
    before = cluster.version_of(Service)
    written = replace(service("a"), metadata=replace(service("a").metadata, resource_version="7"))
    cluster.put(written)
    cluster.put(PriorityClass(metadata=ObjectMeta(name="high")))
    assert cluster.version_of(Service) == before
    cluster.put(service("a", color="red"))
    assert cluster.version_of(Service) == before + 1
    cluster.drop(service("a"))
    assert cluster.version_of(Service) == before + 2


def test_the_version_grows_with_every_change():
    cluster = Cluster()
    versions = [cluster.version]
    for change in (cluster.put, cluster.put, cluster.drop, cluster.drop):
        change(service("a"))
        versions.append(cluster.version)
    assert versions == [0, 1, 2, 3, 4]
    assert list(cluster.all(Service)) == []


def test_a_kinds_version_grows_on_changes_but_not_on_equal_writes():
    cluster = Cluster()
    cluster.put(service("a"))
    assert (cluster.version_of(Service), cluster.version_of(PriorityClass)) == (1, 0)
    cluster.put(Service(metadata=ObjectMeta(name="a", namespace="default", resource_version="7")))
    assert cluster.version_of(Service) == 1
    cluster.put(service("a", tier="web"))
    cluster.drop(service("a"))
    assert cluster.version_of(Service) == 3


def test_objects_by_namespace():
    cluster = Cluster()
    for obj in (service("a"), service("b"), service("a", "other")):
        cluster.put(obj)
    assert list(cluster.in_namespace(Service, "default")) == [service("a"), service("b")]
    cluster.drop(service("a"))
    cluster.put(service("b", tier="web"))
    cluster.put(service("c", "third"))
    assert list(cluster.in_namespace(Service, "default")) == [service("b", tier="web")]
    assert list(cluster.in_namespace(Service, "third")) == [service("c", "third")]
    assert list(cluster.in_namespace(Service, "unheard-of")) == []


def test_a_change_log_lists_the_changed_objects_of_a_kind():
    cluster = Cluster()
    cluster.put(service("before"))
    log = cluster.changes_of(Service)
    position = log.position
    cluster.put(service("a"))
    cluster.put(Service(metadata=ObjectMeta(name="a", namespace="default", resource_version="7")))
    cluster.put(PriorityClass(metadata=ObjectMeta(name="high")))
    cluster.drop(service("before"))
    assert Cursor(log, position).changed() == ["default/a", "default/before"]
    assert cluster.changes_of(Service) is log


def test_a_derived_object_is_built_once_per_cluster():
    one, other = Cluster(), Cluster()
    names = Derived
    assert one.derived(names) is one.derived(names)
    assert one.derived(names).cluster is one
    assert other.derived(names).cluster is other


class Derived:
    def __init__(self, cluster):
        self.cluster = cluster
