"""Plugins that a profile calls at some of their extension points only.

Without the point that prepares another one, kube-scheduler's plugins compute what they lack, or
fail with a text of their own, or do nothing. Every subset of the points of every plugin is compared
with the plugin at all its points, by way of `explain` and of three attempts of the scheduler.
"""

from itertools import combinations
from typing import Any

import pytest

from moorage import explain
from moorage.api.server_requests import BindPod
from moorage.core.journal import Erred

from .test_engine import ATTEMPTS, Engine, check_decided, check_rejected

FILTER, SCORE = ("preFilter", "filter"), ("preScore", "score")
# The points of plugins that are compared, and the errors of those that do not compute what they
# lack.
POINTS: dict[str, tuple[str, ...]] = {
    "NodeAffinity": (*FILTER, *SCORE),
    "NodePorts": FILTER,
    "NodeResourcesFit": (*FILTER, *SCORE),
    "VolumeRestrictions": FILTER,
    "NodeVolumeLimits": FILTER,
    "VolumeBinding": (*FILTER, *SCORE),
    "VolumeZone": FILTER,
    "PodTopologySpread": (*FILTER, *SCORE),
    "InterPodAffinity": (*FILTER, *SCORE),
    "DynamicResources": (*FILTER, "score"),
    "NodeDeclaredFeatures": FILTER,
    "TaintToleration": ("filter", *SCORE),
    "NodeResourcesBalancedAllocation": SCORE,
    "ImageLocality": ("score",),
}
NO_PRE_FILTER = {
    "NodePorts": 'reading "PreFilterNodePorts" from cycleState: not found',
    "NodeResourcesFit": 'error reading "PreFilterNodeResourcesFit" from cycleState: not found',
    "VolumeRestrictions": 'cannot read "PreFilterVolumeRestrictions" from cycleState',
    "VolumeBinding": "not found",
    "PodTopologySpread": 'reading "PreFilterPodTopologySpread" from cycleState: not found',
    "InterPodAffinity": 'error reading "PreFilterInterPodAffinity" from cycleState: not found',
    "DynamicResources": "not found",
    "NodeDeclaredFeatures": (
        'error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found'
    ),
}
NO_PRE_SCORE = {
    "PodTopologySpread": 'error reading "PreScorePodTopologySpread" from cycleState: not found',
    "InterPodAffinity": 'failed to read "PreScoreInterPodAffinity" from cycleState: not found',
    "TaintToleration": 'failed to read "PreScoreTaintToleration" from cycleState: not found',
}
SUBSETS = [
    pytest.param(plugin, subset, id=f"{plugin} at {', '.join(subset)}")
    for plugin, points in POINTS.items()
    for size in range(1, len(points) + 1)
    for subset in combinations(points, size)
]


def node(name: str, **spec: Any) -> dict[str, Any]:
    zone = {"topology.kubernetes.io/zone": f"z-{name}", "kubernetes.io/hostname": name}
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": zone},
        "spec": spec,
        "status": {
            "allocatable": room if name != "small" else {"cpu": "1", "memory": "1Gi", "pods": "9"},
            "declaredFeatures": [] if name == "small" else ["UserNamespacesHostNetworkSupport"],
            "images": [{"names": ["app:1"], "sizeBytes": 800_000_000}] if name == "n1" else [],
        },
    }


def runs(name: str, at: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "500m"}}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": "web"}},
        "spec": {"nodeName": at, "containers": containers, **spec},
    }


ZONE = "topology.kubernetes.io/zone"
WEB = {"matchLabels": {"app": "web"}}


def has(*zones: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [*zones]}]}


def pending() -> dict[str, Any]:
    """A pod about which every plugin has something to say."""
    disk = {"name": "disk", "gcePersistentDisk": {"pdName": "disk"}}
    term = {"topologyKey": ZONE, "labelSelector": WEB}
    hard = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    soft = {**hard, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    container = {
        "name": "c",
        "image": "app:1",
        "ports": [{"containerPort": 80, "hostPort": 80}],
        "resources": {"requests": {"cpu": "2", "memory": "1Gi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod", "namespace": "default", "uid": "pod", "labels": {"app": "web"}},
        "spec": {
            "containers": [container],
            "hostNetwork": True,
            "hostUsers": False,
            "volumes": [disk, {"name": "own", "persistentVolumeClaim": {"claimName": "own"}}],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [has("z-n1", "z-n2", "z-small")]
                    },
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 5, "preference": has("z-n2")}
                    ],
                },
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 5, "podAffinityTerm": term}
                    ]
                },
                "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
            },
            "topologySpreadConstraints": [{**each, "labelSelector": WEB} for each in (hard, soft)],
        },
    }


def volume(zones: str) -> list[dict[str, Any]]:
    """A claim, and the volume in some zones that it is bound to."""
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    own = {"name": "own", "namespace": "default", "uid": "own", "annotations": bound}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": own,
            "spec": {**spec, "volumeName": "pv", "resources": {"requests": {"storage": "1Gi"}}},
            "status": {"phase": "Bound"},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "pv", "labels": {ZONE: zones}},
            "spec": {
                **spec,
                "capacity": {"storage": "1Gi"},
                "csi": {"driver": "disk.example.com", "volumeHandle": "h"},
                "claimRef": {"name": "own", "namespace": "default", "uid": "own"},
            },
        },
    ]


def case(plugin: str, points: tuple[str, ...]) -> dict[str, Any]:
    sets: dict[str, Any] = {
        "multiPoint": {
            "disabled": [{"name": "*"}],
            "enabled": [{"name": "PrioritySort"}, {"name": "DefaultBinder"}],
        },
        **{point: {"enabled": [{"name": plugin}]} for point in points},
    }
    disk = {"volumes": [{"name": "disk", "gcePersistentDisk": {"pdName": "disk"}}]}
    return {
        "objects": [
            *(node(name) for name in ("n1", "n2", "n3")),
            node("small", taints=[{"key": "k", "effect": "PreferNoSchedule"}]),
            node("tainted", taints=[{"key": "k", "effect": "NoSchedule"}]),
            *(runs(f"on-{at}", at) for at in ("n1", "n2", "n3", "small")),
            runs("disk", "n3", **disk),
            *volume("z-n1__z-n2__z-small"),
            pending(),
        ],
        "pod": {"namespace": "default", "name": "pod"},
        "config": {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": sets}],
        },
    }


def answer(described: dict[str, Any]) -> dict[str, Any]:
    return explain(described["objects"], "default/pod", config=described["config"]).to_dict()


def expected(plugin: str, points: tuple[str, ...]) -> dict[str, Any]:
    """What kube-scheduler answers, by what the plugin says where it has all its points."""
    full = answer(case(plugin, POINTS[plugin]))
    if "filter" in points and "preFilter" not in points and plugin in NO_PRE_FILTER:
        error = f'running "{plugin}" filter plugin: {NO_PRE_FILTER[plugin]}'
        return {"errorAnyOf": [error]}
    if "score" in points:
        text = NO_PRE_SCORE.get(plugin) if "preScore" not in points else None
        if plugin == "DynamicResources" and "preFilter" not in points:
            text = "not found"
        if text is not None:
            error = f'running Score plugins: plugin "{plugin}" failed with: {text}'
            return {"errorAnyOf": [error]}
    same = {"feasible", "rejected"} if "filter" in points else set()
    same |= {"scores"} if "score" in points else set()
    return {key: value for key, value in full.items() if key in same}


@pytest.mark.usefixtures("best_nodes")
@pytest.mark.parametrize(("plugin", "points"), SUBSETS)
def test_a_plugin_at_some_of_its_points(plugin: str, points: tuple[str, ...]) -> None:
    described, want = case(plugin, points), expected(plugin, points)
    got = answer(described)
    if "errorAnyOf" in want:
        assert [got["error"]] == want["errorAnyOf"]
    else:
        assert "error" not in got
        assert got.get("rejected", {}) == want.get("rejected", {})
        assert ("scores" in got) == ("score" in points and len(got["feasible"]) > 1)
        for name, scores in got.get("scores", {}).items():
            assert name not in want["scores"] or compared(plugin, scores, want["scores"][name])
    engine = Engine(described)
    for number in range(ATTEMPTS):
        pod, effects = engine.attempt(number)
        if "errorAnyOf" in want:
            assert engine.last(Erred, pod).message == got["error"]
        elif got.get("best"):
            check_decided(engine, pod, got)
        else:
            check_rejected(engine, pod, got)
        engine.undo(pod, effects)


def compared(plugin: str, scores: dict[str, int], full: dict[str, int]) -> bool:
    """Whether scores are the same, unless they are normalised over other nodes."""
    by_nodes = ("PodTopologySpread", "InterPodAffinity", "NodeAffinity")
    return plugin in by_nodes or scores.get(plugin, 0) == full.get(plugin, 0)


@pytest.mark.parametrize(
    ("plugin", "points", "error"),
    [
        pytest.param("VolumeBinding", ("reserve",), "Reserve", id="volumes are reserved"),
        pytest.param("VolumeBinding", ("preBind",), "PreBind", id="volumes are bound"),
        pytest.param("DynamicResources", ("reserve",), "Reserve", id="devices are reserved"),
        pytest.param("DynamicResources", ("preBind",), "PreBind", id="devices are bound"),
    ],
)
def test_binding_without_pre_filter(plugin: str, points: tuple[str, ...], error: str) -> None:
    engine = Engine(case(plugin, points))
    pod, _ = engine.attempt(0)
    wording = {"Reserve": "running Reserve plugin", "PreBind": "running PreBindPreFlight"}
    assert engine.last(Erred, pod).message == f'{wording[error]} "{plugin}": not found'


@pytest.mark.parametrize(
    ("points", "error"),
    [
        pytest.param(FILTER, None, id="filter"),
        pytest.param(("preFilter",), "no pod volume found for node", id="pre_filter alone"),
    ],
)
def test_pre_bind_of_volumes_that_are_not_reserved(
    points: tuple[str, ...], error: str | None
) -> None:
    engine = Engine(case("VolumeBinding", (*points, "preBind")))
    pod, effects = engine.attempt(0)
    if error is None:
        assert [type(effect.request) for effect in effects] == [BindPod]
    else:
        assert error in engine.last(Erred, pod).message
