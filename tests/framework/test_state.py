"""CycleState: typed keys, layers and clones."""

import pytest

from moorage.errors import PluginError, PluginFailure
from moorage.framework.cluster import Cluster
from moorage.framework.state import CycleState, StateKey
from moorage.nodes.template import Templates
from moorage.testing import make_pod, make_state, make_table

COUNT = StateKey[int]("Test.count")
PODS = StateKey[dict]("Test.pods")
TALLY = StateKey["Tally"]("Test.tally")


class Tally:
    """State that knows how to clone itself."""

    def __init__(self, of):
        self.of = of

    def clone(self):
        return Tally(list(self.of))


def layered():
    below = make_state(make_pod(), make_table([]))
    return below, CycleState.of(below.cluster, below.template, 5.0, below)


def test_a_written_value_can_be_read():
    state = make_state(make_pod(), make_table([]))
    state[COUNT] = 3
    assert state[COUNT] == 3
    assert COUNT in state
    assert state.get(PODS, {}) == {}


def test_a_missing_key_raises_kubernetes_error_text():
    with pytest.raises(KeyError, match=r"Test\.count: not found"):
        make_state(make_pod(), make_table([]))[COUNT]


def test_a_missing_key_may_have_a_text_of_its_own():
    key = StateKey[int]("Test.text", missing='reading "Text" from cycleState: not found')
    with pytest.raises(PluginFailure, match="^" + key.missing):
        make_state(make_pod(), make_table([]))[key]


def test_the_cycles_own_values_hide_those_of_the_lower_layer():
    below, state = layered()
    below[COUNT] = 1
    assert (state[COUNT], COUNT in state, state.get(COUNT, 9)) == (1, True, 1)
    state[COUNT] = 2
    assert (state[COUNT], below[COUNT]) == (2, 1)


def test_a_clone_has_copies_of_all_layers():
    below, state = layered()
    below[PODS] = {"a": 1}
    below[TALLY] = Tally([1])
    state[COUNT] = 7
    clone = state.clone()
    clone[PODS]["b"] = 2
    clone[TALLY].of.append(2)
    clone[COUNT] = 8
    assert (below[PODS], below[TALLY].of, state[COUNT]) == ({"a": 1}, [1], 7)
    assert (clone[PODS], clone[TALLY].of, clone.now) == ({"a": 1, "b": 2}, [1, 2], 5.0)


def test_a_value_that_cannot_be_cloned_names_its_plugin():
    _, state = layered()
    state[PODS] = (number for number in range(3))
    with pytest.raises(PluginError, match=r"cloning the state Test\.pods: cannot pickle") as raised:
        state.clone()
    assert raised.value.plugin == "Test"


def test_the_upper_layer_wins_in_a_clone():
    below, state = layered()
    below[COUNT], state[COUNT] = 1, 2
    assert state.clone()[COUNT] == 2


def test_pods_to_activate_are_shared_with_clones():
    _, state = layered()
    state.clone().to_activate["default/p"] = make_pod("p")
    assert list(state.to_activate) == ["default/p"]


def test_the_table_is_that_of_the_cluster():
    cluster = Cluster()
    state = CycleState.of(cluster, Templates().of(make_pod()))
    assert state.table is cluster.table
