"""Which classes a device belongs to."""

import msgspec
import pytest
from tests import device_builders

from moorage.api.devices import Device, DeviceClass
from moorage.nodes import device_classes


@pytest.mark.parametrize(
    ("expression", "belongs"),
    [
        pytest.param('device.driver == "gpu.example.com"', True, id="its driver"),
        pytest.param('device.driver == "other"', False, id="another driver"),
        pytest.param("device.driver ==", True, id="a selector that does not compile"),
    ],
)
def test_classes_of_a_device(expression, belongs):
    class_ = msgspec.convert(device_builders.device_class("gpu", expression), DeviceClass)
    names = device_classes.names_of([class_], "gpu.example.com", Device(name="gpu-0"))
    assert names == (["gpu"] if belongs else [])
