"""Where a pod's volumes are, can be found, or can be made; the numbers are those of the facts."""

import pytest
from msgspec.structs import replace
from tests.storage_builders import (
    HOSTNAME,
    claimed,
    ephemeral,
    make_capacity,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_free_volume,
    make_volume,
    make_waiting_claim,
    reaching,
)

from moorage import plugin as mp
from moorage.api import csi_migration
from moorage.api.meta import LabelSelector, LabelSelectorRequirement, NodeSelector, NodeSelectorTerm
from moorage.api.storage import (
    GCEDiskSource,
    TopologySelectorLabel,
    TopologySelectorTerm,
    TypedReference,
    VolumeNodeAffinity,
)
from moorage.plugins.volume_binding import VolumeBinding, finding
from moorage.plugins.volume_binding.plugin import CLAIMS
from moorage.testing import check_plugin, check_twins, make_cluster, make_node, make_pod, make_state

FAR, NOT_FOUND, NO_ROOM, LOST = finding.REASONS.values()
BY_HAND = make_class(provisioner="kubernetes.io/no-provisioner")
N1, N2 = (make_node(name, labels={HOSTNAME: name, "zone": name[1:]}) for name in ("n1", "n2"))


def pod_with(*claims):
    return make_pod(volumes=tuple(claimed(name) for name in claims or ("data",)))


def cluster_of(*objects, nodes=(N1, N2)):
    return make_cluster(nodes, objects=objects)


def pre_filter(cluster, pod):
    return VolumeBinding().pre_filter(make_state(pod, cluster), pod)


def reasons(cluster, pod, node="n1"):
    """Why a pod does not fit a node; both forms are called."""
    state = make_state(pod, cluster)
    assert VolumeBinding().pre_filter(state, pod).is_success
    check_twins(VolumeBinding(), pod, cluster)
    status = VolumeBinding().filter(state, pod, cluster.table.info(cluster.table.row_of[node]))
    assert status.is_success or status.code is mp.Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    return list(status.reasons)


def found(cluster, pod, node="n1"):
    """What the claims of a pod get on a node: volumes by claim, and claims to provision."""
    state = make_state(pod, cluster)
    assert VolumeBinding().pre_filter(state, pod).is_success
    answer = finding.find(cluster, state[CLAIMS], cluster.table.node(node))
    return (
        {claim.name: volume.name for claim, volume in answer.matched},
        [each.claim.name for each in answer.provisioned],
    )


# Before any node


def deleted(claim):
    meta = replace(claim.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    return replace(claim, metadata=meta)


def prebound(claim):
    return replace(claim, spec=replace(claim.spec, volume_name="pv"))


UNBOUND = mp.unresolvable("pod has unbound immediate PersistentVolumeClaims")


@pytest.mark.parametrize(
    ("objects", "status"),
    [
        pytest.param(
            [],
            mp.unresolvable('persistentvolumeclaim "data" not found'),
            id="no such claim",
        ),
        pytest.param([make_claim(volume="pv")], mp.SUCCESS, id="bound"),
        pytest.param([make_waiting_claim(storage_class="")], UNBOUND, id="without a class"),
        pytest.param([make_waiting_claim()], UNBOUND, id="a class that is not there"),
        pytest.param(
            [make_class(mode="Immediate"), make_waiting_claim()], UNBOUND, id="need not wait"
        ),
        pytest.param([make_class(), make_waiting_claim()], mp.SUCCESS, id="waits for a pod"),
        pytest.param(
            [make_class(), prebound(make_waiting_claim())],
            UNBOUND,
            id="5: names a volume, and is not through",
        ),
        pytest.param(
            [replace(make_claim(volume="pv-7"), status=replace(make_claim().status, phase="Lost"))],
            mp.unresolvable(
                'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv-7"'
            ),
            id="7: lost",
        ),
        pytest.param(
            [deleted(make_claim(volume="pv"))],
            mp.unresolvable('persistentvolumeclaim "data" is being deleted'),
            id="being deleted",
        ),
    ],
)
def test_claims(objects, status):
    assert pre_filter(cluster_of(*objects), pod_with()) == status


def test_a_class_without_a_binding_mode_is_an_error():
    cluster = cluster_of(make_class(mode=None), make_waiting_claim())
    with pytest.raises(Exception, match='VolumeBindingMode not set for StorageClass "fast"'):
        pre_filter(cluster, pod_with())


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        pytest.param(
            [],
            mp.unresolvable(
                "waiting for ephemeral volume controller to create the persistentvolumeclaim "
                '"pod-scratch"'
            ),
            id="8: not made yet",
        ),
        pytest.param(
            [make_claim("pod-scratch", volume="pv")],
            mp.unresolvable(
                "PVC default/pod-scratch was not created for pod default/pod (pod is not owner)"
            ),
            id="8: bound to another claim",
        ),
        pytest.param(
            [make_claim("pod-scratch", volume="pv", owner=make_pod())], mp.SUCCESS, id="its own"
        ),
    ],
)
def test_ephemeral_claims(claims, status):
    assert pre_filter(cluster_of(*claims), make_pod(volumes=(ephemeral("scratch"),))) == status


def test_a_pod_without_claims_is_of_no_concern():
    pod = make_pod(volumes=(mp.Volume(name="secret"),))
    assert pre_filter(cluster_of(), pod) is mp.SKIP
    assert pre_filter(cluster_of(), make_pod()) is mp.SKIP


# Claims that have a volume


def selector(*terms):
    required = NodeSelector(node_selector_terms=terms)
    return VolumeNodeAffinity(required=required)


FIELD = LabelSelectorRequirement(key="metadata.name", operator="In", values=("other",))
BROKEN = LabelSelectorRequirement(key="zone", operator="Near", values=("1",))


@pytest.mark.parametrize(
    ("affinity", "why"),
    [
        pytest.param(None, [], id="no affinity"),
        pytest.param(VolumeNodeAffinity(), [], id="nothing required"),
        pytest.param(reaching("zone", "1"), [], id="here"),
        pytest.param(reaching("zone", "2", "3"), [FAR], id="elsewhere"),
        pytest.param(selector(), [FAR], id="no terms"),
        pytest.param(selector(NodeSelectorTerm()), [FAR], id="an empty term"),
        pytest.param(
            selector(NodeSelectorTerm(match_fields=(FIELD,))), [], id="fields do not count"
        ),
        pytest.param(
            selector(NodeSelectorTerm(match_expressions=(BROKEN,))), [FAR], id="unreadable"
        ),
        pytest.param(
            selector(
                NodeSelectorTerm(match_expressions=(BROKEN,)),
                *reaching("zone", "1").required.node_selector_terms,
            ),
            [],
            id="unreadable, and a term that matches",
        ),
    ],
)
def test_the_reach_of_a_volume(affinity, why):
    cluster = cluster_of(make_claim(volume="pv"), make_volume(node_affinity=affinity))
    assert reasons(cluster, pod_with()) == why


def test_7_a_volume_that_is_not_there():
    assert reasons(cluster_of(make_claim(volume="pv")), pod_with()) == [LOST]


def test_the_first_claim_that_fails_decides():
    objects = [make_claim("a", volume="far"), make_claim("b", volume="gone")]
    cluster = cluster_of(*objects, make_volume("far", node_affinity=reaching("zone", "2")))
    assert reasons(cluster, pod_with("a", "b")) == [FAR]
    assert reasons(cluster, pod_with("a", "b"), "n2") == [LOST]
    assert reasons(cluster, pod_with("b", "a")) == [LOST]


@pytest.mark.parametrize(
    ("plugins", "why"),
    [
        pytest.param("kubernetes.io/gce-pd", [FAR], id="12: served through CSI"),
        pytest.param("kubernetes.io/aws-ebs,kubernetes.io/gce-pd", [FAR], id="one of several"),
        pytest.param("kubernetes.io/aws-ebs", [], id="another plugin"),
        pytest.param(None, [], id="12: without the annotation"),
    ],
)
def test_12_an_in_tree_disk(plugins, why):
    disk = make_volume(
        gce_persistent_disk=GCEDiskSource(pd_name="disk"),
        labels={"failure-domain.beta.kubernetes.io/zone": "us-east-1"},
    )
    csi_node = make_csi_node("n1")
    if plugins:
        marks = {csi_migration.MIGRATED_PLUGINS: plugins}
        csi_node = replace(csi_node, metadata=replace(csi_node.metadata, annotations=marks))
    node = make_node("n1", labels={"topology.gke.io/zone": "us-east-2"})
    cluster = cluster_of(make_claim(volume="pv"), disk, csi_node, nodes=[node])
    assert reasons(cluster, pod_with()) == why


def test_an_in_tree_disk_that_its_driver_cannot_take_over_is_an_error_of_migrated_nodes():
    disk = make_volume(
        gce_persistent_disk=GCEDiskSource(pd_name="disk"),
        labels={csi_migration.ZONE: "one__two"},
    )
    marks = {csi_migration.MIGRATED_PLUGINS: csi_migration.GCE}
    csi_node = make_csi_node("n1")
    csi_node = replace(csi_node, metadata=replace(csi_node.metadata, annotations=marks))
    nodes = [make_node("n1"), make_node("n2")]
    cluster = cluster_of(make_claim(volume="pv"), disk, csi_node, nodes=nodes)
    pod, plugin = pod_with(), VolumeBinding()
    state = make_state(pod, cluster)
    assert plugin.pre_filter(state, pod) == mp.SUCCESS
    verdicts = plugin.filter_all(state, pod, cluster.table)
    text = "could not translate pv: failed to get region from zones: zone in unexpected format"
    assert verdicts.status_of(verdicts.codes[cluster.table.row_of["n1"]]).message.startswith(text)
    with pytest.raises(mp.PluginFailure, match=text):
        plugin.filter(state, pod, cluster.table.info(cluster.table.row_of["n1"]))
    row = cluster.table.row_of["n2"]
    assert verdicts.codes[row] == 0
    assert plugin.filter(state, pod, cluster.table.info(row)) == mp.SUCCESS


# Claims for which a volume has to be found


def test_1_reasons_add_up():
    cluster = cluster_of(
        make_claim("a", volume="far"),
        make_volume("far", node_affinity=reaching("zone", "2")),
        BY_HAND,
        make_waiting_claim("b"),
    )
    assert reasons(cluster, pod_with("a", "b")) == [FAR, NOT_FOUND]


def test_2_small_claims_choose_first():
    claims = [make_waiting_claim("large", "10G"), make_waiting_claim("small", "1G")]
    volumes = [make_free_volume("five", "5G"), make_free_volume("ten", "10G")]
    cluster = cluster_of(BY_HAND, *claims, *volumes)
    assert reasons(cluster, pod_with("large", "small")) == []
    matched, _ = found(cluster, pod_with("large", "small"))
    assert matched == {"small": "five", "large": "ten"}


def test_3_what_was_found_stays_found():
    claims = [make_waiting_claim("large", "10G"), make_waiting_claim("small", "1G")]
    cluster = cluster_of(BY_HAND, *claims, make_free_volume("five", "5G"))
    assert reasons(cluster, pod_with("large", "small")) == [NOT_FOUND]
    assert found(cluster, pod_with("large", "small")) == ({"small": "five"}, [])


def test_4_the_smallest_that_reaches_the_node():
    volumes = [
        make_free_volume("there", "1G", on=["n2"]),
        make_free_volume("five", "5G", on=["n1"]),
        make_free_volume("ten", "10G", on=["n1"]),
    ]
    cluster = cluster_of(BY_HAND, make_waiting_claim(size="1G"), *volumes)
    assert found(cluster, pod_with()) == ({"data": "five"}, [])
    assert found(cluster, pod_with(), "n2") == ({"data": "there"}, [])


def reference(claim, **changes):
    given = TypedReference(name=claim.name, namespace=claim.namespace, uid=claim.uid)
    return replace(given, **changes)


CLAIM = make_waiting_claim()


@pytest.mark.parametrize(
    ("volume", "does"),
    [
        pytest.param(make_free_volume(), True, id="as it is wanted"),
        pytest.param(make_free_volume(size="1023Mi"), False, id="too small"),
        pytest.param(make_free_volume(volume_mode="Block"), False, id="another mode"),
        pytest.param(make_free_volume(volume_mode="Filesystem"), True, id="the default mode"),
        pytest.param(
            make_free_volume(volume_attributes_class_name="gold"), False, id="other attributes"
        ),
        pytest.param(deleted(make_free_volume()), False, id="being deleted"),
        pytest.param(make_free_volume(on=["n2"]), False, id="on another node"),
        pytest.param(make_free_volume(phase="Released"), False, id="not available"),
        pytest.param(make_free_volume(storage_class="slow"), False, id="another class"),
        pytest.param(
            make_free_volume(access_modes=("ReadOnlyMany",)), False, id="not the access wanted"
        ),
        pytest.param(
            make_free_volume(access_modes=("ReadOnlyMany", "ReadWriteOnce")), True, id="more access"
        ),
        pytest.param(
            make_free_volume(given_to=reference(make_waiting_claim("other"))),
            False,
            id="another claim's",
        ),
        pytest.param(
            make_free_volume(given_to=reference(CLAIM, uid="older")), False, id="a namesake's"
        ),
        pytest.param(
            make_free_volume(given_to=reference(CLAIM, uid=""), phase="", access_modes=()),
            True,
            id="reserved for it: phase and access do not matter",
        ),
        pytest.param(
            make_free_volume(given_to=reference(CLAIM), size="1Mi"), False, id="reserved, too small"
        ),
    ],
)
def test_which_volume_does(volume, does):
    cluster = cluster_of(BY_HAND, CLAIM, volume)
    assert reasons(cluster, pod_with()) == ([] if does else [NOT_FOUND])


def test_a_reserved_volume_elsewhere_rules_out_all_others():
    reserved = make_free_volume("reserved", given_to=reference(CLAIM), on=["n2"])
    cluster = cluster_of(BY_HAND, CLAIM, reserved, make_free_volume("free", on=["n1"]))
    assert reasons(cluster, pod_with()) == [NOT_FOUND]
    assert found(cluster, pod_with(), "n2")[0] == {"data": "reserved"}


@pytest.mark.parametrize(
    ("wanted", "does"),
    [
        pytest.param(LabelSelector(), True, id="an empty selector"),
        pytest.param(LabelSelector(match_labels={"disk": "ssd"}), True, id="its labels"),
        pytest.param(LabelSelector(match_labels={"disk": "hdd"}), False, id="other labels"),
    ],
)
def test_selectors(wanted, does):
    cluster = cluster_of(
        BY_HAND, make_waiting_claim(selector=wanted), make_free_volume(labels={"disk": "ssd"})
    )
    assert reasons(cluster, pod_with()) == ([] if does else [NOT_FOUND])


def test_a_selector_that_does_not_parse_is_an_error():
    wanted = LabelSelector(match_expressions=(BROKEN,))
    pod, cluster = pod_with(), cluster_of(BY_HAND, make_waiting_claim(selector=wanted))
    state = make_state(pod, cluster)
    assert VolumeBinding().pre_filter(state, pod).is_success
    text = "error creating internal label selector for claim: default/data: "
    with pytest.raises(Exception, match=text):
        VolumeBinding().filter(state, pod, cluster.table.info(cluster.table.row_of["n1"]))
    with pytest.raises(Exception, match=text):
        VolumeBinding().filter_all(state, pod, cluster.table)


def test_a_claim_that_is_used_twice_looks_for_two_volumes():
    cluster = cluster_of(BY_HAND, CLAIM, make_free_volume())
    assert reasons(cluster, pod_with("data", "data")) == [NOT_FOUND]
    cluster.put(make_free_volume("another"))
    assert reasons(cluster, pod_with("data", "data")) == []


# Claims for which a volume has to be made


@pytest.mark.parametrize(
    ("selected", "why"),
    [
        pytest.param("n1", [], id="6: for this node, by an earlier attempt"),
        pytest.param("n2", [NOT_FOUND], id="6: for another node"),
        pytest.param("", [NOT_FOUND], id="for a node without a name"),
    ],
)
def test_6_the_node_for_which_a_volume_is_being_made(selected, why):
    claim = make_waiting_claim(selected_node=selected)
    cluster = cluster_of(make_class(), claim, make_free_volume())
    assert reasons(cluster, pod_with()) == why
    if not why:
        assert found(cluster, pod_with()) == ({}, ["data"])


def topologies(*terms):
    return replace(
        make_class(),
        allowed_topologies=tuple(
            TopologySelectorTerm(
                match_label_expressions=tuple(
                    TopologySelectorLabel(key=key, values=values) for key, values in term
                )
            )
            for term in terms
        ),
    )


@pytest.mark.parametrize(
    ("storage_class", "why"),
    [
        pytest.param(make_class(), [], id="anywhere"),
        pytest.param(BY_HAND, [NOT_FOUND], id="11: by hand only"),
        pytest.param(make_class(provisioner=""), [NOT_FOUND], id="no provisioner"),
        pytest.param(topologies([("zone", ("1", "9"))]), [], id="in this zone"),
        pytest.param(topologies([("zone", ("2",))]), [NOT_FOUND], id="11: in another zone"),
        pytest.param(topologies([("rack", ("1",))]), [NOT_FOUND], id="a label that is not there"),
        pytest.param(
            topologies([("zone", ("2",))], [(HOSTNAME, ("n1",))]), [], id="one term is enough"
        ),
        pytest.param(
            topologies([("zone", ("1",)), (HOSTNAME, ("n2",))]), [NOT_FOUND], id="half a term"
        ),
        pytest.param(topologies([]), [NOT_FOUND], id="an empty term"),
    ],
)
def test_where_a_class_makes_volumes(storage_class, why):
    assert reasons(cluster_of(storage_class, CLAIM), pod_with()) == why


HERE = {"zone": "1"}


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        pytest.param([], [], id="10: no driver"),
        pytest.param([make_driver(storage_capacity=False)], [], id="10: no accounts"),
        pytest.param([make_driver(storage_capacity=None)], [], id="accounts not spoken of"),
        pytest.param([make_driver()], [NO_ROOM], id="9: no capacity"),
        pytest.param([make_driver(), make_capacity(on=HERE)], [], id="just enough"),
        pytest.param([make_driver(), make_capacity()], [], id="everywhere"),
        pytest.param([make_driver(), make_capacity(on={"zone": "2"})], [NO_ROOM], id="9: there"),
        pytest.param(
            [make_driver(), make_capacity(storage_class="slow")], [NO_ROOM], id="9: another class"
        ),
        pytest.param([make_driver(), make_capacity(capacity="1Mi")], [NO_ROOM], id="9: too little"),
        pytest.param(
            [make_driver(), make_capacity(capacity="9Gi", largest="1Mi")],
            [NO_ROOM],
            id="9: volumes that are too small",
        ),
        pytest.param(
            [make_driver(), make_capacity(capacity="1Mi", largest="1Gi")],
            [],
            id="the largest volume counts",
        ),
        pytest.param([make_driver(), make_capacity(capacity=None)], [NO_ROOM], id="9: not said"),
        pytest.param(
            [make_driver(), replace(make_capacity(), node_topology=None)], [NO_ROOM], id="nowhere"
        ),
        pytest.param(
            [
                make_driver(),
                replace(make_capacity(), node_topology=LabelSelector(match_expressions=(BROKEN,))),
            ],
            [NO_ROOM],
            id="an unreadable place",
        ),
    ],
)
def test_storage_capacity(objects, why):
    assert reasons(cluster_of(make_class(), CLAIM, *objects), pod_with()) == why


def test_a_claim_without_a_size_needs_no_capacity():
    cluster = cluster_of(make_class(), make_waiting_claim(size=None), make_driver())
    assert reasons(cluster, pod_with()) == []


def test_claims_are_not_summed_up():
    claims = [make_waiting_claim("a"), make_waiting_claim("b")]
    cluster = cluster_of(make_class(), *claims, make_driver(), make_capacity(capacity="1Gi"))
    assert reasons(cluster, pod_with("a", "b")) == []


def test_what_is_not_found_is_made():
    claims = [make_waiting_claim("large", "2Gi"), make_waiting_claim("small", "1Gi")]
    cluster = cluster_of(make_class(), *claims, make_free_volume(size="1Gi"))
    assert found(cluster, pod_with("large", "small")) == ({"small": "pv"}, ["large"])


def test_conforms():
    check_plugin(VolumeBinding())
