"""The defaults that an API server sets, and what it does not change."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from moorage.api import defaults, manifests, requests
from moorage.api.admission import PriorityClasses
from moorage.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from moorage.api.pod import Pod
from moorage.api.policy import PriorityClass
from moorage.errors import ManifestError

NO_CLASSES = PriorityClasses()
DEVICES = "resource.k8s.io/v1"


def make_pod(labels=None, meta=None, status=None, **spec):
    """A pod from fields as in a manifest."""
    [pod] = manifests.from_dicts(
        [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "web", "labels": labels or {}, **(meta or {})},
                "spec": spec,
                "status": status or {},
            }
        ]
    )
    assert isinstance(pod, Pod)
    return pod


def make(kind, api_version="v1", name="x", meta=None, **fields):
    [obj] = manifests.from_dicts(
        [
            {
                "apiVersion": api_version,
                "kind": kind,
                "metadata": {"name": name, **(meta or {})},
                **fields,
            }
        ]
    )
    return obj


def only(obj, *others):
    """The object, completed among the others."""
    return defaults.complete([obj, *others])[0]


def test_a_bare_pod():
    pod = only(make_pod())
    assert (pod.namespace, pod.kind, pod.api_version) == ("default", "Pod", "v1")
    assert (pod.spec.priority, pod.spec.preemption_policy) == (0, "PreemptLowerPriority")
    assert pod.spec.scheduler_name == "default-scheduler"
    assert pod.spec.termination_grace_period_seconds == 30


def test_nothing_to_do_gives_the_same_object_back():
    pod = only(make_pod(containers=[{"name": "a", "ports": [{"hostPort": 1}]}]))
    assert only(pod) is pod


def test_uids_follow_from_names():
    first, again = only(make_pod()), only(make_pod())
    other = only(make_pod(meta={"namespace": "other"}))
    assert first.uid == again.uid
    assert first.uid != other.uid
    assert len(first.uid) == 36
    assert only(make_pod(meta={"uid": "mine"})).uid == "mine"


def test_cluster_scoped_objects_have_no_namespace():
    assert only(make("Node", meta={"namespace": "lost"})).namespace == ""


@pytest.mark.parametrize(
    ("resources", "asks"),
    [
        pytest.param({"limits": {"cpu": "1"}}, {"cpu": "1"}, id="limits become requests"),
        pytest.param(
            {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}},
            {"cpu": "1", "memory": "1Gi"},
            id="only those that are missing",
        ),
        pytest.param(
            {"limits": {"cpu": "2"}, "requests": {"cpu": 0}}, {"cpu": 0}, id="zero is not missing"
        ),
        pytest.param(
            {"requests": {"cpu": "0.1005"}}, {"cpu": "101m"}, id="finer than a milli rounds up"
        ),
    ],
)
def test_requests_from_limits(resources, asks):
    container = {"name": "a", "resources": resources}
    pod = only(make_pod(containers=[container], initContainers=[container]))
    assert pod.spec.containers[0].resources.requests == asks
    assert pod.spec.init_containers[0].resources.requests == asks


@pytest.mark.parametrize(
    ("level", "container", "asks"),
    [
        pytest.param({"limits": {"cpu": "2"}}, {}, {"cpu": "2"}, id="limits by default"),
        pytest.param(
            {"limits": {"cpu": "2"}},
            {"requests": {"cpu": "500m", "memory": "1Mi"}},
            {"cpu": "500m", "memory": 2**20},
            id="the sum of the containers' requests",
        ),
        pytest.param(
            {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}},
            {"requests": {"cpu": "500m"}},
            {"cpu": "1"},
            id="explicit requests are kept",
        ),
        pytest.param(
            {"requests": {"cpu": "1"}},
            {"requests": {"memory": "1Mi"}},
            {"cpu": "1"},
            id="without limits nothing is added",
        ),
        pytest.param(
            {"requests": {"cpu": "1"}},
            {"limits": {"hugepages-2Mi": "4Mi"}},
            {"cpu": "1", "hugepages-2Mi": 4 * 2**20},
            id="huge pages of the containers limit the pod",
        ),
    ],
)
def test_pod_level_requests(level, container, asks):
    pod = only(make_pod(resources=level, containers=[{"name": "a", "resources": container}]))
    assert pod.spec.resources is not None
    assert pod.spec.resources.requests == asks


@pytest.mark.parametrize(
    ("host_network", "port", "ports"),
    [
        pytest.param(True, {"containerPort": 80}, (("0.0.0.0", "TCP", 80),), id="host network"),
        pytest.param(
            True,
            {"containerPort": 80, "hostPort": 81},
            (("0.0.0.0", "TCP", 81),),
            id="a host port of its own",
        ),
        pytest.param(False, {"containerPort": 80}, (), id="a network of its own"),
        pytest.param(
            False,
            {"containerPort": 53, "hostPort": 53, "protocol": "UDP"},
            (("0.0.0.0", "UDP", 53),),
            id="an explicit protocol",
        ),
    ],
)
def test_ports(host_network, port, ports):
    pod = only(make_pod(hostNetwork=host_network, containers=[{"name": "a", "ports": [port]}]))
    assert requests.host_ports(pod) == ports
    assert pod.spec.containers[0].ports[0].protocol == port.get("protocol", "TCP")


LABELS = {"app": "web", "hash": "7"}
MERGED_IN = LabelSelectorRequirement(key="hash", operator="In", values=("7",))
MERGED_NOT_IN = LabelSelectorRequirement(key="app", operator="NotIn", values=("web",))


def affinity_of(term):
    pod = make_pod(
        labels=LABELS,
        affinity={
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "podAffinityTerm": term}
                ]
            },
        },
    )
    return pod


def selectors_of(pod):
    affinity = pod.spec.affinity
    return (
        affinity.pod_affinity.required[0].label_selector,
        affinity.pod_anti_affinity.preferred[0].pod_affinity_term.label_selector,
    )


@pytest.mark.parametrize(
    ("term", "selector"),
    [
        pytest.param(
            {"labelSelector": {}, "matchLabelKeys": ["hash", "absent"]},
            LabelSelector(match_expressions=(MERGED_IN,)),
            id="a key to match, another that the pod lacks",
        ),
        pytest.param(
            {
                "labelSelector": {"matchLabels": {"a": "b"}},
                "matchLabelKeys": ["hash"],
                "mismatchLabelKeys": ["app"],
            },
            LabelSelector(match_labels={"a": "b"}, match_expressions=(MERGED_IN, MERGED_NOT_IN)),
            id="one to match, one to differ",
        ),
        pytest.param(
            {
                "labelSelector": {
                    "matchExpressions": [{"key": "hash", "operator": "In", "values": ["7"]}]
                },
                "matchLabelKeys": ["hash"],
            },
            LabelSelector(match_expressions=(MERGED_IN,)),
            id="merged already",
        ),
        pytest.param({"matchLabelKeys": ["hash"]}, None, id="no selector stays none"),
    ],
)
def test_label_keys_of_affinity_terms(term, selector):
    pod = only(affinity_of(term))
    assert selectors_of(pod) == (selector, selector)
    assert only(pod) is pod


def test_label_keys_of_spread_constraints():
    pod = only(
        make_pod(
            labels=LABELS,
            topologySpreadConstraints=[
                {"maxSkew": 1, "labelSelector": {}, "matchLabelKeys": ["hash"]}
            ],
        )
    )
    [constraint] = pod.spec.topology_spread_constraints
    assert constraint.label_selector == LabelSelector(match_expressions=(MERGED_IN,))


def test_label_keys_of_pods_from_a_server_are_not_merged():
    pod = affinity_of({"labelSelector": {}, "matchLabelKeys": ["hash"]})
    seen = {"uid": "u", "resource_version": "1", "creation_timestamp": "2024-01-01T00:00:00Z"}
    pod = only(structs.replace(pod, metadata=structs.replace(pod.metadata, **seen)))
    assert selectors_of(pod) == (LabelSelector(), LabelSelector())


def priority_class(name, value, **fields):
    return PriorityClass(metadata=ObjectMeta(name=name), value=value, **fields)


GOLD = priority_class("gold", 1000, preemption_policy="Never")


@pytest.mark.parametrize(
    ("classes", "spec", "resolved"),
    [
        pytest.param([], {}, ("", 0, "PreemptLowerPriority"), id="no class, no default"),
        pytest.param(
            [GOLD], {"priorityClassName": "gold"}, ("gold", 1000, "Never"), id="by its class"
        ),
        pytest.param(
            [],
            {"priorityClassName": "system-node-critical"},
            ("system-node-critical", 2000001000, "PreemptLowerPriority"),
            id="node critical is built in",
        ),
        pytest.param(
            [],
            {"priorityClassName": "system-cluster-critical"},
            ("system-cluster-critical", 2000000000, "PreemptLowerPriority"),
            id="cluster critical is built in",
        ),
        pytest.param(
            [
                priority_class("b", 2000, global_default=True),
                priority_class("a", 1000, global_default=True),
            ],
            {},
            ("a", 1000, "PreemptLowerPriority"),
            id="of two defaults the smaller",
        ),
        pytest.param(
            [GOLD],
            {"priorityClassName": "gold", "priority": 1000},
            ("gold", 1000, "Never"),
            id="an equal value is fine",
        ),
        pytest.param(
            [],
            {"priority": 7, "preemptionPolicy": "Never"},
            ("", 7, "Never"),
            id="a priority without a class is kept",
        ),
        pytest.param(
            [priority_class("a", 1000, global_default=True)],
            {"priority": 7},
            ("", 7, "PreemptLowerPriority"),
            id="even if there is a default class",
        ),
        pytest.param(
            [],
            {"priorityClassName": "gone", "priority": 7},
            ("gone", 7, "PreemptLowerPriority"),
            id="admitted elsewhere",
        ),
    ],
)
def test_priority(classes, spec, resolved):
    got = only(make_pod(**spec), *classes).spec
    assert (got.priority_class_name, got.priority, got.preemption_policy) == resolved


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        pytest.param(
            {"priorityClassName": "silver"},
            "Pod default/web, spec.priorityClassName: no PriorityClass with name silver was found",
            id="unknown class",
        ),
        pytest.param(
            {"priorityClassName": "gold", "priority": 5},
            "Pod default/web, spec.priorityClassName: the integer value of priority (5) must not "
            "be provided in pod spec; priority admission controller computed 1000 from the given "
            "PriorityClass name",
            id="another priority",
        ),
        pytest.param(
            {"priorityClassName": "gold", "preemptionPolicy": "PreemptLowerPriority"},
            "Pod default/web, spec.priorityClassName: the string value of PreemptionPolicy "
            "(PreemptLowerPriority) must not be provided in pod spec; priority admission "
            "controller computed Never from the given PriorityClass name",
            id="another policy",
        ),
    ],
)
def test_priority_errors(spec, text):
    with pytest.raises(ManifestError) as caught:
        only(make_pod(**spec), GOLD)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("name", "value", "default", "text"),
    [
        pytest.param("gold", 1_000_000_000, True, None, id="the highest that users may have"),
        pytest.param("low", -(2**31), False, None, id="no lower bound"),
        pytest.param("system-node-critical", 2_000_001_000, False, None, id="as the system has it"),
        pytest.param(
            "gold", 1_000_000_001, False, "maximum allowed value of a user defined", id="too high"
        ),
        pytest.param("system-x", 1, False, "system-x is not a known system", id="reserved name"),
        pytest.param(
            "system-node-critical", 1, False, "PriorityClass must be 2000001000", id="other value"
        ),
        pytest.param(
            "system-node-critical", 2_000_001_000, True, "must be false", id="as the default"
        ),
    ],
)
def test_priority_classes_are_checked(name, value, default, text):
    candidate = priority_class(name, value, global_default=default)
    if text is None:
        assert only(candidate).preemption_policy == "PreemptLowerPriority"
    else:
        with pytest.raises(ManifestError, match=text):
            only(candidate)


@pytest.mark.parametrize(
    ("status", "allocatable"),
    [
        pytest.param({"capacity": {"cpu": "4"}}, {"cpu": "4"}, id="all it has"),
        pytest.param(
            {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}, {"cpu": "3"}, id="less of it"
        ),
        pytest.param({}, {}, id="nothing said"),
    ],
)
def test_node_allocatable(status, allocatable):
    assert only(make("Node", status=status)).status.allocatable == allocatable


def test_a_cordoned_node_gets_neither_taint_nor_label():
    node = only(make("Node", spec={"unschedulable": True}))
    assert (node.spec.taints, node.labels) == ((), {})


def test_namespaces_have_their_name_as_a_label():
    namespace = only(make("Namespace", name="prod", meta={"labels": {"a": "b"}}))
    assert namespace.labels == {"a": "b", "kubernetes.io/metadata.name": "prod"}


def storage_class(name, created=None, default="true"):
    return make(
        "StorageClass",
        "storage.k8s.io/v1",
        name,
        meta={
            "annotations": {"storageclass.kubernetes.io/is-default-class": default},
            "creationTimestamp": created,
        },
    )


@pytest.mark.parametrize(
    ("classes", "spec", "meta", "name"),
    [
        pytest.param([storage_class("a")], {}, {}, "a", id="the default class"),
        pytest.param([storage_class("a", default="false")], {}, {}, None, id="no default class"),
        pytest.param([storage_class("a")], {"storageClassName": ""}, {}, "", id="explicitly none"),
        pytest.param([storage_class("a")], {"storageClassName": "b"}, {}, "b", id="another one"),
        pytest.param(
            [storage_class("a")],
            {},
            {"annotations": {"volume.beta.kubernetes.io/storage-class": "b"}},
            None,
            id="another one, the old way",
        ),
        pytest.param(
            [
                storage_class("a", "2024-01-01T00:00:00Z"),
                storage_class("b", "2024-01-02T00:00:00Z"),
            ],
            {},
            {},
            "b",
            id="the newest default",
        ),
        pytest.param([storage_class("b"), storage_class("a")], {}, {}, "a", id="the first by name"),
        pytest.param(
            [storage_class("a")],
            {},
            {"uid": "u", "resourceVersion": "1", "creationTimestamp": "2024-01-01T00:00:00Z"},
            None,
            id="a claim from a server",
        ),
    ],
)
def test_claims_get_the_default_storage_class(classes, spec, meta, name):
    claim = only(make("PersistentVolumeClaim", meta=meta, spec=spec), *classes)
    assert claim.spec.storage_class_name == name
    assert (claim.spec.volume_mode, claim.status.phase) == ("Filesystem", "Pending")


def test_known_objects_are_read_but_not_returned():
    [pod] = defaults.complete([make_pod(priorityClassName="gold")], known=[GOLD])
    assert pod.spec.priority == 1000


def test_storage_defaults():
    assert only(make("StorageClass", "storage.k8s.io/v1")).volume_binding_mode == "Immediate"
    volume = only(make("PersistentVolume"))
    assert (volume.spec.volume_mode, volume.status.phase) == ("Filesystem", "Available")
    taken = only(make("PersistentVolume", spec={"claimRef": {"name": "c", "uid": "u"}}))
    assert taken.status.phase == "Bound"
    driver = only(make("CSIDriver", "storage.k8s.io/v1"))
    assert (driver.spec.attach_required, driver.spec.storage_capacity) == (True, False)


def test_budgets_stay_as_they_are():
    budget = only(make("PodDisruptionBudget", "policy/v1", spec={"minAvailable": "50%"}))
    assert budget.status.disruptions_allowed == 0
    assert budget.spec.min_available == "50%"


def test_device_requests_ask_for_one_device():
    requests = [
        {"name": "a", "exactly": {"deviceClassName": "gpu", "tolerations": [{"key": "k"}]}},
        {"name": "b", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}},
        {"name": "c", "firstAvailable": [{"name": "x"}, {"name": "y", "count": 2}]},
    ]
    made = make("ResourceClaim", DEVICES, spec={"devices": {"requests": requests}})
    [claim] = defaults.complete([made])
    first, every, either = claim.spec.devices.requests
    assert (first.exactly.allocation_mode, first.exactly.count) == ("ExactCount", 1)
    assert first.exactly.tolerations[0].operator == "Equal"
    assert (every.exactly.allocation_mode, every.exactly.count) == ("All", 0)
    assert [sub.count for sub in either.first_available] == [1, 2]
    assert claim.namespace == "default"
    assert defaults.complete([claim]) == [claim]


def test_claims_of_a_template_get_the_same_defaults():
    spec = {"spec": {"devices": {"requests": [{"name": "a", "exactly": {}}]}}}
    [template] = defaults.complete([make("ResourceClaimTemplate", DEVICES, spec=spec)])
    assert template.spec.spec.devices.requests[0].exactly.count == 1


@given(st.text())
def test_uid_of_a_name(name):
    assert defaults.uid_of(name) == str(uuid.uuid5(defaults.UIDS, name))
