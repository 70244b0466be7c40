"""Which device class serves an extended resource, also when two name the same one."""

from moorage.api.devices import DeviceClass, DeviceClassSpec
from moorage.api.meta import ObjectMeta
from moorage.nodes.device_resources import DeviceResources, may_be_served

GPU = "example.com/gpu"


def device_class(name, resource=GPU, created="2026-01-01T00:00:00Z"):
    meta = ObjectMeta(name=name, creation_timestamp=created)
    return DeviceClass(metadata=meta, spec=DeviceClassSpec(extended_resource_name=resource))


def implicit(name):
    return f"deviceclass.resource.kubernetes.io/{name}"


def test_a_class_serves_two_names():
    served = DeviceResources()
    assert served.put(None, device_class("a"))
    assert (served.class_of(GPU), served.class_of(implicit("a"))) == ("a", "a")
    assert not served.put(device_class("a"), device_class("a"))
    assert served.class_of("cpu") is None


def test_the_newer_class_wins_and_then_the_first_by_name():
    served = DeviceResources()
    served.put(None, device_class("b"))
    served.put(None, device_class("c"))
    assert (served.class_of(GPU), served.class_of(implicit("c"))) == ("b", None)
    served.put(None, device_class("a"))
    assert served.class_of(GPU) == "a"
    served.put(None, device_class("z", created="2026-02-01T00:00:00Z"))
    assert served.class_of(GPU) == "z"


def test_a_deleted_class_takes_its_resource_along_whoever_serves_it():
    served = DeviceResources()
    served.put(None, device_class("b"))
    served.put(None, device_class("a"))
    assert served.drop(device_class("b"))
    assert (served.class_of(GPU), served.class_of(implicit("a"))) == (None, "a")


def test_a_class_that_names_another_resource():
    served = DeviceResources()
    served.put(None, device_class("a"))
    assert served.put(device_class("a"), device_class("a", "example.com/other"))
    assert (served.class_of(GPU), served.class_of("example.com/other")) == (None, "a")


def test_names_that_a_class_may_serve():
    assert may_be_served(GPU)
    assert may_be_served(implicit("a"))
    assert not may_be_served("cpu")
    assert not may_be_served("hugepages-2Mi")
