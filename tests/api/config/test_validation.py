import pytest
from msgspec.structs import replace

from moorage.api import config
from moorage.api.config import structs
from moorage.errors import ConfigError


def load(**members):
    return config.load({"apiVersion": config.API_VERSION, "kind": config.KIND, **members})


def plugins(point, *names):
    return {"plugins": {point: {"enabled": [{"name": name} for name in names]}}}


SPAN = "must be greater than zero"
MULTI_POINT = "profiles[0].plugins.multiPoint.enabled"
REMOVED = (
    'was invalid in version "v1" '
    '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")'
)


@pytest.mark.parametrize(
    ("members", "problems"),
    [
        pytest.param(
            {"parallelism": 0},
            ["parallelism: Invalid value: 0: should be an integer value greater than zero"],
            id="no parallelism",
        ),
        pytest.param(
            {"percentageOfNodesToScore": 101},
            ["percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"],
            id="more than all nodes",
        ),
        pytest.param(
            {"percentageOfNodesToScore": -1},
            ["percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]"],
            id="less than no nodes",
        ),
        pytest.param(
            {"profiles": [{"percentageOfNodesToScore": 140}]},
            [
                "profiles[0].percentageOfNodesToScore: Invalid value: 140: "
                "not in valid range [0-100]"
            ],
            id="more than all nodes in one profile",
        ),
        pytest.param(
            {"podInitialBackoffSeconds": 0, "podMaxBackoffSeconds": -1},
            [
                "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
                "podMaxBackoffSeconds: Invalid value: -1: "
                "must be greater than or equal to PodInitialBackoffSeconds",
            ],
            id="back-offs upside down",
        ),
        pytest.param(
            {"clientConnection": {"burst": -1, "qps": -1}},
            ["clientConnection.burst: Invalid value: -1: must be non-negative"],
            id="a negative burst, while qps may be",
        ),
        pytest.param(
            {"leaderElection": {"leaseDuration": "-1s", "retryPeriod": "-2s"}},
            [
                f'leaderElection.leaseDuration: Invalid value: "-1s": {SPAN}',
                f'leaderElection.retryPeriod: Invalid value: "-2s": {SPAN}',
                'leaderElection.leaseDuration: Invalid value: "10s": '
                "must be greater than `RenewDeadline`",
            ],
            id="a lease that ends before it begins",
        ),
        pytest.param(
            {"leaderElection": {"renewDeadline": "2s"}},
            [
                'leaderElection.renewDeadline: Invalid value: "2s": '
                "renewDeadline must be greater than retryPeriod*JitterFactor"
            ],
            id="no time to try again",
        ),
        pytest.param(
            {"leaderElection": {"resourceLock": "configmap"}},
            [
                'leaderElection.resourceLock: Invalid value: "configmap": '
                'resourceLock value must be "leases"'
            ],
            id="a lock of old",
        ),
        pytest.param(
            {"profiles": [{}, {"schedulerName": "b"}]},
            ["profiles[0].schedulerName: Required value"],
            id="only a profile without company gets a name",
        ),
        pytest.param(
            {"profiles": [{"schedulerName": ""}]},
            ["profiles[0].schedulerName: Required value"],
            id="an empty name is not an unset one",
        ),
        pytest.param(
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}, {"schedulerName": "a"}]},
            ["profiles[2].schedulerName: Duplicate value: profiles[0].schedulerName"],
            id="two profiles of one name",
        ),
        pytest.param(
            {"profiles": [plugins("score", "EBSLimits")]},
            [
                f'profiles[0].plugins.score.enabled[0]: Invalid value: "EBSLimits": {REMOVED}, '
                "use NodeVolumeLimits instead"
            ],
            id="a plugin that left",
        ),
        pytest.param(
            {"profiles": [plugins("multiPoint", "SelectorSpread", "ServiceAffinity")]},
            [
                f'{MULTI_POINT}: Invalid value: "SelectorSpread": {REMOVED}, '
                "use PodTopologySpread instead",
                f'{MULTI_POINT}: Invalid value: "ServiceAffinity": {REMOVED}, '
                "use InterPodAffinity instead",
            ],
            id="plugins that left, in multiPoint",
        ),
        pytest.param(
            {"profiles": [{"pluginConfig": [{"name": "CinderLimits"}]}]},
            [
                f'profiles[0].pluginConfig[0]: Invalid value: "CinderLimits": {REMOVED}, '
                "use NodeVolumeLimits instead"
            ],
            id="arguments of a plugin that left",
        ),
        pytest.param(
            {"profiles": [{"pluginConfig": [{"name": "A"}, {"name": "A"}]}]},
            ['profiles[0].pluginConfig[1]: Duplicate value: "A"'],
            id="arguments given twice",
        ),
        pytest.param(
            {
                "profiles": [
                    {"schedulerName": "a", **plugins("queueSort", "X")},
                    {"schedulerName": "b", **plugins("queueSort", "Y")},
                ]
            },
            [
                "profiles[1].plugins.queueSort: Invalid value: "
                '{"enabled":[{"name":"Y"}]}: must be the same for all profiles'
            ],
            id="another queue sort plugin in the second profile",
        ),
        pytest.param(
            {
                "profiles": [
                    {"schedulerName": "a", **plugins("queueSort", "X")},
                    {"schedulerName": "b"},
                ]
            },
            ["profiles[1].plugins.queueSort: Invalid value: {}: must be the same for all profiles"],
            id="no queue sort plugin in the second profile",
        ),
        pytest.param(
            {"profiles": [plugins("queueSort", "X", "Y")]},
            [
                "profiles[0].plugins.queueSort.Enabled: Invalid value: 2: "
                "only one queue sort plugin can be enabled"
            ],
            id="two queue sort plugins",
        ),
        pytest.param(
            {
                "profiles": [
                    {"schedulerName": name, **plugins("queueSort", "X"), "pluginConfig": [args]}
                    for name, args in [
                        ("a", {"name": "X", "args": {"by": "age"}}),
                        ("b", {"name": "X", "args": {"by": "size"}}),
                    ]
                ]
            },
            [
                'profiles[1].pluginConfig.args: Invalid value: {"by":"size"}: '
                "queueSort must be the same for all profiles"
            ],
            id="one queue sort plugin, two ways to configure it",
        ),
        pytest.param(
            {
                "extenders": [
                    {
                        "urlPrefix": "http://a",
                        "bindVerb": "bind",
                        "prioritizeVerb": "p",
                        "weight": -1,
                    },
                    {"urlPrefix": "http://b", "bindVerb": "bind"},
                ]
            },
            [
                "extenders[0].weight: Invalid value: -1: must have a positive weight applied to it",
                'extenders: Invalid value: "found 2 extenders implementing bind": '
                "only one extender can implement bind",
            ],
            id="two extenders that bind, one that weighs nothing",
        ),
        pytest.param(
            {
                "extenders": [
                    {"managedResources": [{"name": "example.com/a"}, {"name": "cpu"}]},
                    {"managedResources": [{"name": "example.com/a"}, {"name": "kubernetes.io/b"}]},
                ]
            },
            [
                'extenders[0].managedResources[1].name: Invalid value: "cpu": '
                "is an invalid extended resource name",
                'extenders[1].managedResources[0].name: Invalid value: "example.com/a": '
                "duplicate extender managed resource name",
                'extenders[1].managedResources[1].name: Invalid value: "kubernetes.io/b": '
                "is an invalid extended resource name",
            ],
            id="resources that nobody else may manage",
        ),
        pytest.param(
            {"extenders": [{"tlsConfig": {"insecure": True, "caFile": "ca.pem"}}]},
            [
                "extenders[0].tlsConfig.insecure: Invalid value: true: "
                "specifying a root certificates file with the insecure flag is not allowed"
            ],
            id="an authority, and no wish to ask it",
        ),
        pytest.param(
            {"parallelism": -1, "percentageOfNodesToScore": 101, "podInitialBackoffSeconds": 0},
            [
                "parallelism: Invalid value: -1: should be an integer value greater than zero",
                "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
                "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
            ],
            id="all faults at once",
        ),
    ],
)
def test_faults(members, problems):
    with pytest.raises(ConfigError) as caught:
        load(**members)
    assert caught.value.problems == problems


def test_an_unqualified_resource_is_told_what_a_name_is():
    with pytest.raises(
        ConfigError, match=r"managedResources\[0\]\.name: Invalid value: \"a b\": name"
    ):
        load(extenders=[{"managedResources": [{"name": "a b"}]}])


def test_leader_election_is_looked_at_only_if_it_is_on():
    election = {"leaderElect": False, "resourceLock": "configmap", "leaseDuration": "-1s"}
    assert not load(leaderElection=election).leader_election.leader_elect


def election(**changes):
    configuration = load()
    changed = replace(configuration.leader_election, **changes)
    return replace(configuration, leader_election=changed)


# A file cannot say these: it is completed first. Flags and programs can.
@pytest.mark.parametrize(
    ("configuration", "problems"),
    [
        pytest.param(
            election(resource_name=""),
            ["leaderElection.resourceName: Required value"],
            id="a lease without a name",
        ),
        pytest.param(
            election(resource_namespace=""),
            ["leaderElection.resourceNamespace: Required value"],
            id="a lease without a namespace",
        ),
        pytest.param(replace(load(), profiles=()), ["profiles: Required value"], id="no profile"),
        pytest.param(
            replace(
                load(),
                profiles=(
                    config.KubeSchedulerProfile(
                        scheduler_name="a",
                        plugin_config=(
                            structs.PluginConfig(
                                name="DefaultPreemption", args=structs.InterPodAffinityArgs()
                            ),
                        ),
                    ),
                ),
            ),
            [
                "profiles[0].pluginConfig[0].args: Invalid value: "
                '{"hardPodAffinityWeight":1,"ignorePreferredTermsOfExistingPods":false}: '
                "has to match plugin args"
            ],
            id="another plugin's arguments",
        ),
    ],
)
def test_faults_of_programs(configuration, problems):
    assert config.problems(configuration) == problems
