"""Which feature gates can be set, and how they are written."""

import pytest

from moorage.api import config
from moorage.api.config import known_gates
from moorage.errors import ConfigError

HEADER = {"apiVersion": config.API_VERSION, "kind": config.KIND}


def test_gates_of_a_file():
    loaded = config.load({**HEADER, "featureGates": {"DRADeviceTaints": False}})
    assert loaded.feature_gates == {"DRADeviceTaints": False}
    assert config.load(config.to_dict(loaded)) == loaded


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        pytest.param("DRAAdminAccess", False, "the feature is locked to true", id="locked"),
        pytest.param(
            "DRADeviceTaintRules",
            True,
            "off by default in 1.36, and not implemented here",
            id="off by default",
        ),
        pytest.param("DRADeviceTaint", True, "unrecognized feature gate", id="unknown"),
        pytest.param(
            "SchedulerPopFromBackoffQ",
            False,
            "on by default in 1.36, and cannot be turned off here",
            id="on by default",
        ),
        pytest.param("SidecarContainers", False, "the feature is locked to true", id="stable"),
        pytest.param(
            "EventedPLEG",
            True,
            "kube-scheduler knows the gate, but does not read it; leave it out",
            id="of another component",
        ),
        pytest.param(
            "GangScheduling",
            True,
            "depends on features that are disabled: [GenericWorkload]",
            id="without the gate that it needs",
        ),
    ],
)
def test_gates_that_are_refused(name, value, rule):
    with pytest.raises(ConfigError) as caught:
        config.load({**HEADER, "featureGates": {name: value}})
    [problem] = caught.value.problems
    assert problem.startswith(f"featureGates[{name}]: ")
    assert problem.endswith(rule)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[(name, True) for name in sorted(known_gates.LOCKED | known_gates.ON)],
        *[(name, False) for name in sorted(known_gates.OFF)],
        ("OpportunisticBatching", False),
    ],
)
def test_gates_that_are_accepted(name, value):
    loaded = config.load({**HEADER, "featureGates": {name: value}})
    assert config.feature_gates.is_on(loaded.feature_gates, name) is value
    assert config.feature_gates.is_on({}, name) is (name not in known_gates.OFF)


def test_gates_of_a_command_line():
    parsed = config.feature_gates.parse("DRADeviceTaints=false, DRAExtendedResource=True")
    assert parsed == {"DRADeviceTaints": False, "DRAExtendedResource": True}
    with pytest.raises(ValueError, match="must be NAME=true or NAME=false"):
        config.feature_gates.parse("DRADeviceTaints")


def test_gates_that_are_off_by_default_add_plugins():
    def enabled(gates):
        [profile] = config.load({**HEADER, "featureGates": gates}).profiles
        return [plugin.name for plugin in profile.plugins.multi_point.enabled]

    assert "GangScheduling" not in enabled({})
    groups = {"GenericWorkload": True}
    assert enabled(groups) == enabled({})
    assert enabled({**groups, "GangScheduling": True}) == [*enabled({}), "GangScheduling"]
