"""DeviceUsage: what of a driver's devices is offered and allocated, in the unit that suits them."""

import pytest
from tests import device_builders as make

from moorage import Simulation

GI = 2**30
SHARED = make.device(
    "shared", {"memory": "80Gi", f"{make.DRIVER}/cores": "8"}, allowMultipleAllocations=True
)
PLAIN = make.device("plain", {"memory": "80Gi"})


def share(number, **consumed):
    uid = f"00000000-0000-4000-8000-{number:012d}"
    return make.result("shared", shareID=uid, consumedCapacity=consumed)


@pytest.mark.parametrize(
    ("device", "results", "used"),
    [
        pytest.param(PLAIN, [[make.result("plain")]], {"": 1}, id="by number"),
        pytest.param(
            SHARED,
            [[share(1, memory="10Gi", cores="1")], [share(2, memory="20Gi", cores="1")]],
            {"memory.": 30 / 80, "cores.": 2 / 8},
            id="two small shares are not all of the device",
        ),
        pytest.param(
            SHARED, [[make.result("shared")]], {"memory.": 1, "cores.": 1}, id="all of it, no share"
        ),
        pytest.param(
            SHARED,
            [[make.result("shared", adminAccess=True)]],
            {"memory.": 0, "cores.": 0},
            id="a look at it",
        ),
        pytest.param(
            make.device("shared", allowMultipleAllocations=True),
            [[share(1)], [share(2)]],
            {"": 1},
            id="shares of a device without capacity",
        ),
    ],
)
def test_used_share(device, results, used):
    claims = [make.allocated(f"c{i}", *each) for i, each in enumerate(results)]
    sim = Simulation([make.node("n1"), make.resource_slice("n1", [device]), *claims])
    sim.run()
    expected = {f"devices/{name}{make.DRIVER}": value for name, value in used.items()}
    shares = {name: use.last for name, use in sim.result.utilisation().items()}
    assert {name: value for name, value in shares.items() if "/" in name} == expected


def test_shares_come_and_go():
    claims = [make.allocated(f"c{i}", share(i, memory="20Gi", cores="1")) for i in range(3)]
    published = make.resource_slice("n1", [SHARED])
    sim = Simulation([make.node("n1"), published, *claims])
    resource = f"devices/memory.{make.DRIVER}"

    def requested():
        sim.run(until=sim.now + 1)
        return sim.result.samples[-1].requested[resource]

    assert requested() == 60 * GI
    sim.delete("ResourceClaim", "default", "c1")
    assert requested() == 40 * GI
    sim.delete("ResourceSlice", "", "n1")
    sim.create([published])
    assert requested() == 40 * GI
