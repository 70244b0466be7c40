import pytest

from moorage.api.config import plugin_sets
from moorage.api.config.structs import PluginEntry, Plugins, PluginSet


def plugins(*entries):
    """Plugins from names, or from (name, weight)."""
    pairs = [entry if isinstance(entry, tuple) else (entry, None) for entry in entries]
    return tuple(PluginEntry(name=name, weight=weight) for name, weight in pairs)


@pytest.mark.parametrize(
    ("defaults", "enabled", "disabled", "merged"),
    [
        pytest.param(["D1", "D2"], [], [], ["D1", "D2"], id="nothing said, the defaults"),
        pytest.param(["D1", "D2"], ["C"], [], ["D1", "D2", "C"], id="a new one goes to the end"),
        pytest.param(["D1", "D2"], [], ["D2"], ["D1"], id="a default switched off"),
        pytest.param(
            ["D1", "D2"], ["C", "D2"], ["D2"], ["D1", "C", "D2"], id="on and off is on, at the end"
        ),
        pytest.param(["D1", "D2"], ["D2", "D1"], ["*"], ["D2", "D1"], id="all off, own order"),
        pytest.param(
            ["P1", "P2", "P3"],
            [("P2", 2), ("P1", 1)],
            [],
            [("P1", 1), ("P2", 2), "P3"],
            id="new weights keep the default order",
        ),
        pytest.param(
            ["P1", "P2", "P3"],
            ["P1", ("P2", 2), "P3", ("P2", 4)],
            [],
            ["P1", ("P2", 4), "P3", ("P2", 2)],
            id="of a repeated name the last takes the place, the other stays",
        ),
        pytest.param(
            [("D", 3)], ["D"], [], ["D"], id="listed again without weight, it loses its own"
        ),
    ],
)
def test_merge(defaults, enabled, disabled, merged):
    custom = PluginSet(enabled=plugins(*enabled), disabled=plugins(*disabled))
    got = plugin_sets.merge(PluginSet(enabled=plugins(*defaults)), custom)
    assert got.enabled == plugins(*merged)
    assert got.disabled == plugins(*disabled)


def test_default_disabled_ones_follow_the_users():
    default = PluginSet(enabled=plugins("A", "B"), disabled=plugins("B"))
    got = plugin_sets.merge(default, PluginSet(disabled=plugins("A")))
    assert got == PluginSet(disabled=plugins("A", "B"))


def test_merging_twice_changes_nothing():
    custom = Plugins(
        multi_point=PluginSet(
            enabled=plugins("Mine", ("TaintToleration", 9), "NodePorts"),
            disabled=plugins("NodePorts", "ImageLocality"),
        ),
        score=PluginSet(enabled=plugins("Mine"), disabled=plugins("*")),
    )
    once = plugin_sets.with_defaults(custom)
    assert plugin_sets.with_defaults(once) == once
