"""Legacy Policy files: what becomes of predicates, priorities and extenders."""

import json

import pytest
import yaml
from tests import command_line

from moorage.api import config, policy_files
from moorage.core.scheduler import Scheduler
from moorage.errors import ConfigError
from moorage.framework import points
from moorage.framework.registry import Registry

HEADER = {"kind": "Policy", "apiVersion": "v1"}
MANDATORY = ["NodeUnschedulable", "TaintToleration"]
NEWER = ["DynamicResources", "NodeDeclaredFeatures"]  # Came after the format.


@pytest.fixture
def migrate(tmp_path):
    def run(**policy):
        file = tmp_path / "policy.cfg"
        file.write_text(json.dumps({**HEADER, **policy}))
        return policy_files.migrate(file)

    return run


def named(*names, weight=None):
    extra = {} if weight is None else {"weight": weight}
    return [{"name": name, **extra} for name in names]


def effective(migration, point):
    """Plugins with weights at a point, as far as they exist."""
    loaded = config.load(migration.configuration)
    registry = Registry()
    classes = {
        name: found
        for name in loaded.profiles[0].plugins.names()
        if (found := registry.find(name, loaded.base_dir)) is not None
    }

    def takes_part(name, at):
        return name in classes and points.implements(classes[name], at)

    return dict(config.effective_plugins(loaded.profiles[0], takes_part, set(classes))[point])


def args(migration, plugin):
    return config.load(migration.configuration).profiles[0].args(plugin)


@pytest.mark.parametrize(
    ("predicates", "plugins"),
    [
        pytest.param([], [], id="34: none: only the mandatory ones"),
        pytest.param(named("PodFitsPorts"), ["NodePorts"], id="an alias"),
        pytest.param(named("PodFitsHostPorts"), ["NodePorts"], id="the name itself"),
        pytest.param(named("HostName"), ["NodeName"], id="HostName"),
        pytest.param(named("MatchNodeSelector"), ["NodeAffinity"], id="MatchNodeSelector"),
        pytest.param(named("PodFitsResources"), ["NodeResourcesFit"], id="PodFitsResources"),
        pytest.param(
            named("GeneralPredicates"),
            ["NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"],
            id="four in one",
        ),
        pytest.param(
            named("HostName", "GeneralPredicates"),
            ["NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"],
            id="twice the same",
        ),
        pytest.param(named("EvenPodsSpread"), ["PodTopologySpread"], id="EvenPodsSpread"),
        pytest.param(
            named("MatchInterPodAffinity"), ["InterPodAffinity"], id="MatchInterPodAffinity"
        ),
        pytest.param(
            named("PodToleratesNodeTaints", "CheckNodeUnschedulable"), [], id="mandatory anyway"
        ),
        pytest.param(named("CheckNodeCondition"), [], id="taints say the same"),
    ],
)
def test_predicates(migrate, predicates, plugins):
    found = effective(migrate(predicates=predicates, priorities=[]), "filter")
    assert sorted(found) == sorted([*MANDATORY, *plugins, *NEWER])


def test_filters_come_in_their_old_order_whatever_the_file_says(migrate):
    names = named("MatchInterPodAffinity", "EvenPodsSpread", "PodFitsResources", "HostName")
    found = list(effective(migrate(predicates=names), "filter"))
    assert found[:6] == [
        "NodeUnschedulable",
        "NodeName",
        "NodeResourcesFit",
        "TaintToleration",
        "PodTopologySpread",
        "InterPodAffinity",
    ]


def test_volumes(migrate):
    names = (
        "NoDiskConflict",
        "CheckVolumeBinding",
        "NoVolumeZoneConflict",
        "MaxCSIVolumeCountPred",
    )
    enabled = migrate(predicates=named(*names)).configuration["profiles"][0]["plugins"]
    found = {each["name"] for each in enabled["multiPoint"]["enabled"]}
    assert {"VolumeRestrictions", "VolumeBinding", "VolumeZone", "NodeVolumeLimits"} <= found


@pytest.mark.parametrize(
    ("priorities", "weights"),
    [
        pytest.param([], {}, id="none"),
        pytest.param(
            named("TaintTolerationPriority", weight=7), {"TaintToleration": 7}, id="a weight"
        ),
        pytest.param(
            named("BalancedResourceAllocation", "ImageLocalityPriority", weight=1),
            {"NodeResourcesBalancedAllocation": 1, "ImageLocality": 1},
            id="by another name",
        ),
        pytest.param(named("EqualPriority", weight=1), {}, id="one that told nothing apart"),
        pytest.param(
            [
                {"name": "SelectorSpreadPriority", "weight": 5},
                {"name": "EvenPodsSpreadPriority", "weight": 2},
            ],
            {"PodTopologySpread": 2},
            id="two that are one plugin: the first by name",
        ),
    ],
)
def test_priorities(migrate, priorities, weights):
    found = effective(migrate(predicates=[], priorities=priorities), "score")
    found.pop("DynamicResources", None)
    assert found == weights


@pytest.mark.parametrize(
    ("priorities", "defaulting"),
    [
        pytest.param(("SelectorSpreadPriority",), "System", id="35: by selectors"),
        pytest.param(("ServiceSpreadingPriority",), "System", id="by services"),
        pytest.param(("EvenPodsSpreadPriority",), "List", id="35: by constraints alone"),
        pytest.param(("EvenPodsSpreadPriority", "SelectorSpreadPriority"), "System", id="both"),
    ],
)
def test_spreading(migrate, priorities, defaulting):
    made = migrate(priorities=named(*priorities, weight=1))
    assert args(made, "PodTopologySpread").defaulting_type == defaulting


SHAPE = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
RATIO = {"requestedToCapacityRatioArguments": {"shape": SHAPE, "resources": [{"name": "a/gpu"}]}}


@pytest.mark.parametrize(
    ("priority", "strategy"),
    [
        pytest.param({"name": "LeastRequestedPriority"}, "LeastAllocated", id="least"),
        pytest.param({"name": "MostRequestedPriority"}, "MostAllocated", id="most"),
        pytest.param(
            {"name": "anything", "argument": RATIO}, "RequestedToCapacityRatio", id="by a shape"
        ),
    ],
)
def test_scoring_strategies(migrate, priority, strategy):
    made = migrate(priorities=[{**priority, "weight": 3}])
    scoring = args(made, "NodeResourcesFit").scoring_strategy
    assert scoring.type == strategy
    assert effective(made, "score")["NodeResourcesFit"] == 3
    if strategy == "RequestedToCapacityRatio":
        assert [each.name for each in scoring.resources] == ["a/gpu"]
        assert len(scoring.requested_to_capacity_ratio.shape) == 2


def test_nothing_said_is_the_default_set(migrate):
    made = migrate()
    assert effective(made, "score") == {
        "DynamicResources": 1,
        "ImageLocality": 1,
        "InterPodAffinity": 1,
        "NodeAffinity": 1,
        "NodeResourcesBalancedAllocation": 1,
        "NodeResourcesFit": 1,
        "PodTopologySpread": 2,
        "TaintToleration": 1,
    }
    assert "InterPodAffinity" in effective(made, "filter")
    assert made.warnings == ()


def test_labels_that_nodes_must_have_or_must_not(migrate):
    present = {"labelsPresence": {"labels": ["disk"], "presence": True}}
    absent = {"labelsPresence": {"labels": ["old", "retired"], "presence": False}}
    made = migrate(
        predicates=[
            {"name": "CheckNodeLabelPresence", "argument": present},
            {"name": "NotOld", "argument": absent},
        ]
    )
    (term,) = args(made, "NodeAffinity").added_affinity.required.node_selector_terms
    assert [(each.key, each.operator) for each in term.match_expressions] == [
        ("disk", "Exists"),
        ("old", "DoesNotExist"),
        ("retired", "DoesNotExist"),
    ]


def test_the_weight_of_hard_affinity(migrate):
    made = migrate(hardPodAffinitySymmetricWeight=10)
    assert args(made, "InterPodAffinity").hard_pod_affinity_weight == 10
    assert args(migrate(), "InterPodAffinity").hard_pod_affinity_weight == 1


def test_extenders_are_carried_over(migrate):
    (extender,) = config.load(
        migrate(
            extenders=[
                {
                    "URLPrefix": "https://e",
                    "filterverb": "filter",
                    "prioritizeVerb": "prioritize",
                    "weight": 5,
                    "enableHttps": True,
                    "httpTimeout": 100_000_000,
                    "nodeCacheCapable": True,
                    "managedResources": [{"name": "a/gpu", "IgnoredByScheduler": True}],
                    "tlsConfig": {"ServerName": "e", "insecure": True},
                }
            ]
        ).configuration
    ).extenders
    assert (extender.url_prefix, extender.filter_verb, extender.weight) == (
        "https://e",
        "filter",
        5,
    )
    assert extender.enable_https
    assert extender.http_timeout_seconds == 0.1
    assert extender.managed_resources[0].ignored_by_scheduler
    assert extender.tls_config.server_name == "e"


def test_what_comes_out_schedules(migrate):
    loaded = config.load(migrate(predicates=named("GeneralPredicates")).configuration)
    assert list(Scheduler(loaded).profiles) == ["default-scheduler"]


@pytest.mark.parametrize(
    ("policy", "warning"),
    [
        pytest.param(
            {"predicates": named("MaxEBSVolumeCount")},
            "predicate MaxEBSVolumeCount has become NodeVolumeLimits",
            id="a driver that is gone",
        ),
        pytest.param(
            {"predicates": named("CheckNodeMemoryPressure")},
            "predicate CheckNodeMemoryPressure is left out: taints say the same",
            id="before taints",
        ),
        pytest.param(
            {"priorities": named("NodePreferAvoidPodsPriority", weight=10000)},
            "priority NodePreferAvoidPodsPriority is left out: use taints instead",
            id="an annotation that is gone",
        ),
        pytest.param(
            {"alwaysCheckAllPredicates": True},
            "alwaysCheckAllPredicates has no equivalent and is left out",
            id="a way of asking",
        ),
    ],
)
def test_warnings(migrate, policy, warning):
    assert migrate(**policy).warnings == (warning,)


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        pytest.param(
            {"predicates": named("PodFitsMoon")},
            'predicate type not found for "PodFitsMoon"',
            id="an unknown predicate",
        ),
        pytest.param(
            {"priorities": named("MoonPriority", weight=1)},
            'priority type not found for "MoonPriority"',
            id="an unknown priority",
        ),
        pytest.param(
            {"priorities": named("ImageLocalityPriority", weight=0)},
            "priority ImageLocalityPriority should have a positive weight applied to it or it has "
            "overflown",
            id="no weight",
        ),
        pytest.param(
            {"priorities": named("LeastRequestedPriority", "MostRequestedPriority", weight=1)},
            "priorities LeastRequestedPriority and MostRequestedPriority cannot be had together: "
            "NodeResourcesFit has one scoring strategy; keep one of them",
            id="two strategies",
        ),
        pytest.param(
            {"predicates": named("CheckServiceAffinity")},
            "predicate CheckServiceAffinity has no equivalent; use pod affinity in the pods "
            "themselves",
            id="service affinity",
        ),
        pytest.param(
            {"predicates": [{"name": "x", "argument": {}}]},
            "predicates[0].argument: Invalid value: {}: must have exactly one member, has 0",
            id="an argument without a member",
        ),
        pytest.param(
            {
                "priorities": [
                    {"name": "x", "weight": 1, "argument": {"labelPreference": {"label": "a"}}}
                ]
            },
            "priority x has no equivalent; use NodeAffinity's addedAffinity with a preferred term",
            id="a label that is liked",
        ),
        pytest.param(
            {"hardPodAffinitySymmetricWeight": 101},
            "hardPodAffinitySymmetricWeight: Invalid value: 101: not in valid range [0, 100]",
            id="too heavy",
        ),
        pytest.param(
            {"kind": "Pod"},
            'this is kind "Pod" of version "v1"; kind "Policy" of version "v1" is expected',
            id="another kind",
        ),
        pytest.param({"other": 1}, 'unknown field "other"', id="an unknown field"),
        pytest.param(
            {"extenders": [{"wrong": 1}]},
            'extenders[0]: unknown field "wrong"',
            id="an unknown field of an extender",
        ),
        pytest.param(
            {"extenders": [{"urlPrefix": "http://e", "prioritizeVerb": "p"}]},
            "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
            id="what would not load",
        ),
        pytest.param({"predicates": "all"}, "predicates: must be a list", id="no list"),
        pytest.param({"predicates": [{}]}, "predicates[0].name: Required value", id="no name"),
    ],
)
def test_problems(migrate, tmp_path, policy, problem):
    with pytest.raises(ConfigError) as caught:
        migrate(**policy)
    assert caught.value.problems == [f"{tmp_path}/policy.cfg: {problem}"]


# The command


def test_the_command_reads_yaml_inside_of_a_config_map(tmp_path):
    text = yaml.safe_dump({**HEADER, "predicates": named("MaxEBSVolumeCount"), "priorities": []})
    held = {"kind": "ConfigMap", "apiVersion": "v1", "data": {"policy.cfg": text}}
    (tmp_path / "map.yaml").write_text(yaml.safe_dump(held))
    got = command_line.run("config", "migrate", tmp_path / "map.yaml")
    assert got.exit_code == 0
    assert got.stderr == "moorage: predicate MaxEBSVolumeCount has become NodeVolumeLimits\n"
    assert "&id" not in got.stdout  # Nobody wants to read anchors.
    assert config.load(yaml.safe_load(got.stdout)).profiles[0].scheduler_name == "default-scheduler"


def test_the_command_complains_in_one_line(tmp_path):
    (tmp_path / "p").write_text(json.dumps({**HEADER, "predicates": named("PodFitsMoon")}))
    got = command_line.run("config", "migrate", tmp_path / "p")
    assert got.exit_code == 2
    assert got.stderr == f'moorage: {tmp_path}/p: predicate type not found for "PodFitsMoon"\n'
