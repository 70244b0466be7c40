"""GangScheduling: the queue, permit and hints. Ids are specification rows."""

import pytest

from moorage import plugin as mp
from moorage.api.meta import ObjectMeta
from moorage.api.pod import PodSchedulingGroup
from moorage.api.pod_groups import GangSchedulingPolicy, PodGroupSchedulingPolicy, PodGroupSpec
from moorage.framework.cluster import WaitingPod
from moorage.nodes.pod_groups import PodGroupMembers
from moorage.plugins.gang_scheduling import NO_QUORUM, WAIT, GangScheduling
from moorage.testing import check_plugin, make_cluster, make_pod, make_state


def member(name, group="g", namespace="default", node=None):
    named = PodSchedulingGroup(pod_group_name=group)
    return make_pod(name, namespace=namespace, node=node, scheduling_group=named)


def gang(min_count=None, name="g"):
    policy = None if min_count is None else GangSchedulingPolicy(min_count=min_count)
    return mp.PodGroup(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=PodGroupSpec(scheduling_policy=PodGroupSchedulingPolicy(gang=policy)),
    )


def attached(group=None, unscheduled=(), placed=()):
    """The plugin, and a cluster with these members."""
    cluster = make_cluster([], objects=() if group is None else [group])
    cluster.pod_groups = PodGroupMembers()
    for pod in unscheduled:
        cluster.pod_groups.add(pod)
    for pod in placed:
        cluster.pod_groups.place(pod)
    plugin = GangScheduling()
    plugin.attach(cluster)
    return plugin, cluster


POD = member("p0")
ABSENT = mp.unresolvable('waiting for pods\'s pod group "g" to appear in scheduling queue')


@pytest.mark.parametrize(
    ("group", "pods", "status"),
    [
        pytest.param(None, [POD], ABSENT, id="21: no PodGroup"),
        pytest.param(gang(3), [POD, member("p1")], NO_QUORUM, id="21: two of three"),
        pytest.param(gang(3), [POD, member("p1"), member("p2")], mp.SUCCESS, id="21: three"),
        pytest.param(gang(), [POD], mp.SUCCESS, id="a basic group"),
    ],
)
def test_pre_enqueue(group, pods, status):
    plugin, _ = attached(group, pods)
    assert plugin.pre_enqueue(POD) == status


def test_pods_without_a_group_are_not_held():
    plugin, cluster = attached()
    pod = make_pod()
    assert plugin.pre_enqueue(pod) is mp.SUCCESS
    assert plugin.permit(make_state(pod, cluster), pod, "n1") is mp.SUCCESS


def waits_on_permit(cluster, *pods):
    for pod in pods:
        cluster.waiting[pod.uid] = WaitingPod(pod, "n1", {"GangScheduling": 300.0})


def test_row_22_the_members_that_are_missing_are_activated():
    waiting, missing = member("p1"), member("p2")
    plugin, cluster = attached(gang(3), [missing], [waiting, POD])
    waits_on_permit(cluster, waiting)
    state = make_state(POD, cluster)
    assert plugin.permit(state, POD, "n1") == WAIT
    assert list(state.to_activate.values()) == [missing]


@pytest.mark.parametrize("in_group_cycle", [False, True])
def test_row_23_the_last_one_allows_the_others(in_group_cycle):
    others = [member("p1"), member("p2")]
    plugin, cluster = attached(gang(3), [], [*others, POD])
    waits_on_permit(cluster, *others)
    state = make_state(POD, cluster)
    state[mp.IN_POD_GROUP_CYCLE] = in_group_cycle
    assert plugin.permit(state, POD, "n1") is mp.SUCCESS
    # While the group is being decided it has no effect: the members may all be withdrawn again.
    allowed = [waiting.signal is mp.SUCCESS for waiting in cluster.waiting.values()]
    assert allowed == [not in_group_cycle] * 2


def test_a_member_in_a_group_cycle_activates_no_others():
    plugin, cluster = attached(gang(3), [member("p1")], [POD])
    state = make_state(POD, cluster)
    state[mp.IN_POD_GROUP_CYCLE] = True
    assert plugin.permit(state, POD, "n1") == WAIT
    assert state.to_activate == {}


def test_permit_without_the_pod_group_fails():
    plugin, cluster = attached(None, [], [POD])
    with pytest.raises(mp.PluginFailure, match="failed to get podGroup default/g: not found"):
        plugin.permit(make_state(POD, cluster), POD, "n1")


QUEUE, SKIP = mp.Hint.QUEUE, mp.Hint.QUEUE_SKIP


@pytest.mark.parametrize(
    ("added", "hint"),
    [
        pytest.param(member("p1"), QUEUE, id="24: same group"),
        pytest.param(member("p1", namespace="x"), SKIP, id="24: other namespace"),
        pytest.param(member("p1", "other"), SKIP, id="24: other group"),
        pytest.param(make_pod("p1"), SKIP, id="no group"),
    ],
)
def test_hint_for_a_new_pod(added, hint):
    plugin, _ = attached()
    hints = plugin.events_to_register()
    assert hints[mp.ClusterEvent.UNSCHEDULABLE_POD_ADD](POD, None, added) is hint


def test_hint_for_a_new_group():
    plugin, _ = attached(None, [POD, member("p1", "other")])
    hint = plugin.events_to_register()[mp.ClusterEvent.POD_GROUP_ADD]
    assert hint(POD, None, gang(3)) is QUEUE
    assert hint(POD, None, gang(3, "other")) is SKIP
    assert hint.pods(None, gang(3)) == (POD.key,)


def test_conforms():
    check_plugin(GangScheduling())
