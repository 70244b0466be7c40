"""The examples that the docs point at."""

import sys
from pathlib import Path

import pytest

from moorage import Simulation
from moorage.api import manifests
from moorage.testing import check_plugin

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def spot_aware(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES / "plugins"))
    import spot_aware

    yield spot_aware
    del sys.modules["spot_aware"]


def test_the_plugin_conforms(spot_aware):
    check_plugin(spot_aware.SpotAware())


@pytest.mark.parametrize("config", [None, EXAMPLES / "plugins" / "config.yaml"])
def test_the_guide_s_outcome_does_not_hang_on_the_seed(config):
    objects = manifests.load([EXAMPLES / "plugins" / "cluster.yaml"]).objects

    def placements(seed):
        simulation = Simulation(objects, config, seed)
        simulation.run()
        return simulation.placements

    assert all(placements(seed) == placements(0) for seed in range(1, 8))


def test_the_demo_has_something_to_ask_about():
    simulation = Simulation(manifests.load([EXAMPLES / "demo"]).objects)
    simulation.run()
    assert "analytics/quarterly-report-0" in simulation.pending
    assert simulation.pending.keys() < simulation.placements.keys()


def test_devices_go_to_pods_that_claim_them():
    simulation = Simulation(manifests.load([EXAMPLES / "devices"]).everything)
    simulation.run()
    assert simulation.pending.keys() == {"default/benchmark"}
    devices = simulation.result.devices
    assert devices["default/serve-a"] == devices["default/serve-b"]
    trained = [each for pod, given in devices.items() if "train" in pod for each in given]
    assert len({(each.pool, each.device) for each in trained}) == len(trained) == 6
