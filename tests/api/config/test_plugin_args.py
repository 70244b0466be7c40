import pytest

from moorage.api import config
from moorage.api.config import structs
from moorage.errors import ConfigError


def load_args(plugin, args):
    document = {
        "apiVersion": config.API_VERSION,
        "kind": config.KIND,
        "profiles": [{"pluginConfig": [{"name": plugin, "args": args}]}],
    }
    return config.load(document).profiles[0].args(plugin)


def constraint(**changes):
    return {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"} | changes


def term(operator, *values, key="disk"):
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("plugin", "args", "loaded"),
    [
        pytest.param(
            "InterPodAffinity",
            {"hardPodAffinityWeight": 0},
            structs.InterPodAffinityArgs(hard_pod_affinity_weight=0),
            id="an explicit zero is kept",
        ),
        pytest.param(
            "InterPodAffinity", None, structs.InterPodAffinityArgs(), id="args left empty"
        ),
        pytest.param(
            "InterPodAffinity",
            {"apiVersion": config.API_VERSION, "kind": "InterPodAffinityArgs"},
            structs.InterPodAffinityArgs(hard_pod_affinity_weight=1),
            id="version and kind may stand there",
        ),
        pytest.param(
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 0},
            structs.DefaultPreemptionArgs(min_candidate_nodes_percentage=0),
            id="one of the two may be zero",
        ),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu"}, {"name": "gpu", "weight": 0}]},
            structs.NodeResourcesBalancedAllocationArgs(
                resources=(structs.ResourceSpec(name="cpu"), structs.ResourceSpec(name="gpu"))
            ),
            id="no weight and weight 0 are 1",
        ),
        pytest.param(
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "MostAllocated", "resources": []}},
            structs.NodeResourcesFitArgs(
                scoring_strategy=structs.ScoringStrategy(type="MostAllocated")
            ),
            id="without resources, cpu and memory",
        ),
        pytest.param(
            "PodTopologySpread",
            {"defaultingType": ""},
            structs.PodTopologySpreadArgs(defaulting_type="System"),
            id="an empty defaulting type is System",
        ),
        pytest.param(
            "DynamicResources",
            {"filterTimeout": "0s", "bindingTimeout": "1m30s"},
            structs.DynamicResourcesArgs(filter_timeout_seconds=0.0, binding_timeout_seconds=90.0),
            id="durations are seconds",
        ),
        pytest.param(
            "Mine", {"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}, id="not ours to read"
        ),
        pytest.param("Mine", {"kind": "MineArgs"}, {"kind": "MineArgs"}, id="not even the kind"),
        pytest.param("Mine", None, None, id="nothing at all"),
    ],
)
def test_args(plugin, args, loaded):
    assert load_args(plugin, args) == loaded


AFFINITY = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
OUT_OF_RANGE = "not in valid range [0, 100]"


@pytest.mark.parametrize(
    ("plugin", "args", "problems"),
    [
        pytest.param(
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 200, "minCandidateNodesAbsolute": -1},
            [
                f"minCandidateNodesPercentage: Invalid value: 200: {OUT_OF_RANGE}",
                "minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
            ],
            id="preemption out of range",
        ),
        pytest.param(
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            [
                "minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as "
                "minCandidateNodesAbsolute",
                "minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as "
                "minCandidateNodesPercentage",
            ],
            id="preemption without any candidates",
        ),
        pytest.param(
            "InterPodAffinity",
            {"hardPodAffinityWeight": 101},
            [f"hardPodAffinityWeight: Invalid value: 101: {OUT_OF_RANGE}"],
            id="too heavy an affinity",
        ),
        pytest.param(
            "NodeAffinity",
            {
                "addedAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [term("Like", "ssd")]
                    },
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 0, "preference": term("Like", "ssd")},
                        {"weight": 1, "preference": term("Gt", "many")},
                    ],
                }
            },
            [
                f'{AFFINITY}.matchExpressions[0].operator: Unsupported value: "Like": '
                'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
                "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[1]"
                '.matchExpressions[0].values[0]: Invalid value: "many": '
                "for 'Gt', 'Lt' operators, the value must be an integer",
            ],
            id="node selector terms that do not parse",
        ),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu"}, {"name": "cpu", "weight": 2}]},
            [
                'resources[1].name: Duplicate value: "cpu"',
                "resources[1].weight: Invalid value: 2: must be 1",
            ],
            id="balanced over the same resource, unevenly",
        ),
        pytest.param(
            "PodTopologySpread",
            {"defaultingType": "Some"},
            ['defaultingType: Unsupported value: "Some": supported values: "System", "List"'],
            id="no such defaulting type",
        ),
        pytest.param(
            "PodTopologySpread",
            {"defaultConstraints": [constraint()]},
            ['defaultingType: Invalid value: "System": when .defaultConstraints are not empty'],
            id="System and a list of one's own",
        ),
        pytest.param(
            "PodTopologySpread",
            {
                "defaultingType": "List",
                "defaultConstraints": [
                    constraint(maxSkew=0, topologyKey="", whenUnsatisfiable=""),
                    constraint(whenUnsatisfiable="Perhaps", labelSelector={}),
                    constraint(),
                    constraint(maxSkew=2),
                ],
            },
            [
                "defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
                "defaultConstraints[0].topologyKey: Required value: can not be empty",
                "defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty",
                'defaultConstraints[1].whenUnsatisfiable: Unsupported value: "Perhaps": '
                'supported values: "DoNotSchedule", "ScheduleAnyway"',
                "defaultConstraints[1].labelSelector: Forbidden: "
                "constraint must not define a selector, as they deduced for each pod",
                'defaultConstraints[3]: Duplicate value: "{zone, DoNotSchedule}"',
            ],
            id="constraints that say too little, too much and the same",
        ),
        pytest.param(
            "VolumeBinding",
            {"bindTimeoutSeconds": -1, "shape": [{"utilization": 0, "score": 10}]},
            [
                "bindTimeoutSeconds: Invalid value: -1: "
                "invalid BindTimeoutSeconds, should not be a negative value",
                'shape: Invalid value: [{"utilization":0,"score":10}]: unexpected field `shape`, '
                "remove it or turn on the feature gate StorageCapacityScoring",
            ],
            id="a shape while the feature is off",
        ),
        pytest.param(
            "DynamicResources",
            {"filterTimeout": "-1s", "bindingTimeout": "500ms"},
            [
                'filterTimeout: Invalid value: "-1s": must be zero or positive',
                'bindingTimeout: Invalid value: "500ms": must be at least 1 second',
            ],
            id="timeouts too short",
        ),
    ],
)
def test_faults(plugin, args, problems):
    with pytest.raises(ConfigError) as caught:
        load_args(plugin, args)
    path = "profiles[0].pluginConfig[0].args"
    assert caught.value.problems == [f"{path}.{problem}" for problem in problems]


def ratio(*points):
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    return {
        "scoringStrategy": {
            "type": "RequestedToCapacityRatio",
            "requestedToCapacityRatio": {"shape": shape},
        }
    }


SHAPE = "scoringStrategy.requestedToCapacityRatio.shape"
TYPES = 'supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
NAME_RULE = "name part must consist of alphanumeric characters"


@pytest.mark.parametrize(
    ("args", "problems"),
    [
        pytest.param(
            {"scoringStrategy": {"resources": [{"name": "cpu"}]}},
            [f'scoringStrategy.type: Unsupported value: "": {TYPES}'],
            id="a strategy without a type",
        ),
        pytest.param(
            {"scoringStrategy": {"type": "LeastAllocated", "requestedToCapacityRatio": {}}},
            [
                "scoringStrategy.requestedToCapacityRatio: Forbidden: "
                "must be nil when type is not RequestedToCapacityRatio"
            ],
            id="a ratio that is not used",
        ),
        pytest.param(
            {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
            [
                "scoringStrategy.requestedToCapacityRatio: Required value: "
                "must be specified when type is RequestedToCapacityRatio"
            ],
            id="a ratio that is missing",
        ),
        pytest.param(
            {
                "scoringStrategy": {
                    "type": "MostAllocated",
                    "resources": [{"name": "a", "weight": 101}],
                }
            },
            [
                "scoringStrategy.resources[0].weight: Invalid value: 101: "
                "resource weight of a not in valid range (0, 100]"
            ],
            id="too heavy a resource",
        ),
        pytest.param(
            ratio(),
            [f"{SHAPE}: Required value: at least one point must be specified"],
            id="no points",
        ),
        pytest.param(
            ratio((50, 0), (40, 5), (30, 11), (101, -1)),
            [
                f"{SHAPE}[1].utilization: Invalid value: 40: "
                "values must be sorted in increasing order",
                f"{SHAPE}[2].score: Invalid value: 11: not in valid range [0, 10]",
                f"{SHAPE}[3].utilization: Invalid value: 101: {OUT_OF_RANGE}",
                f"{SHAPE}[3].score: Invalid value: -1: not in valid range [0, 10]",
            ],
            id="points out of order and out of range",
        ),
        pytest.param(
            {"ignoredResources": ["a b"], "ignoredResourceGroups": ["example.com/x"]},
            [
                f'ignoredResources[0]: Invalid value: "a b": {NAME_RULE}',
                'ignoredResourceGroups[0]: Invalid value: "example.com/x": '
                "resource group name can't contain '/'",
            ],
            id="ignored names that are none",
        ),
    ],
)
def test_faults_of_fit_read_as_if_the_plugin_were_built(args, problems):
    with pytest.raises(ConfigError) as caught:
        load_args("NodeResourcesFit", args)
    prefix = (
        "initializing profiles: creating profile for scheduler name default-scheduler: "
        'initializing plugin "NodeResourcesFit": '
    )
    got = caught.value.problems
    assert len(got) == len(problems)
    for text, problem in zip(got, problems, strict=True):
        assert text.startswith(prefix + problem)


def test_fit_args_are_not_looked_at_while_the_plugin_is_off():
    profile = {
        "plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {}}}],
    }
    header = {"apiVersion": config.API_VERSION, "kind": config.KIND}
    assert config.load(header | {"profiles": [profile]})


DECODING = "decoding .profiles[0].pluginConfig[0]: "
ARGS = f"{DECODING}decoding args for plugin NodeResourcesFit: "


@pytest.mark.parametrize(
    ("args", "problems"),
    [
        pytest.param(
            {"scoringStrategy": {"resources": [{"Name": "cpu", "Weight": 1}]}},
            [
                f'{ARGS}strict decoding error: unknown field "scoringStrategy.resources[0].Name"',
                f'{ARGS}strict decoding error: unknown field "scoringStrategy.resources[0].Weight"',
            ],
            id="unknown fields",
        ),
        pytest.param(
            {"apiVersion": config.API_VERSION, "kind": "InterPodAffinityArgs"},
            [
                f"{DECODING}args for plugin NodeResourcesFit were not of type "
                "NodeResourcesFitArgs.kubescheduler.config.k8s.io, "
                "got InterPodAffinityArgs.kubescheduler.config.k8s.io"
            ],
            id="another plugin's kind",
        ),
        pytest.param(
            {"kind": "FooArgs"},
            [f'{ARGS}no kind "FooArgs" is registered for version "kubescheduler.config.k8s.io/v1"'],
            id="nobody's kind",
        ),
        pytest.param(
            {"kind": ["NodeResourcesFitArgs"]},
            [
                f'{ARGS}no kind ["NodeResourcesFitArgs"] is registered for version '
                '"kubescheduler.config.k8s.io/v1"'
            ],
            id="a list of kinds",
        ),
        pytest.param(
            {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"},
            [
                f'{ARGS}no kind "NodeResourcesFitArgs" is registered for version '
                '"kubescheduler.config.k8s.io/v1beta3"'
            ],
            id="an old version",
        ),
        pytest.param(["cpu"], [f"{ARGS}args must be an object"], id="a list"),
    ],
)
def test_args_that_cannot_be_decoded(args, problems):
    with pytest.raises(ConfigError) as caught:
        load_args("NodeResourcesFit", args)
    assert caught.value.problems == problems
