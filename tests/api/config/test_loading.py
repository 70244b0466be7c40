import gzip
import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api import config
from moorage.api.config import plugin_sets, structs
from moorage.errors import ConfigError

HEADER = {"apiVersion": config.API_VERSION, "kind": config.KIND}
GOLDEN = Path(__file__).parents[2] / "parity" / "golden" / "config.jsonl.gz"


def load(**members):
    return config.load(HEADER | members)


def golden_configs():
    with gzip.open(GOLDEN, "rt") as lines:
        for line in lines:
            case = json.loads(line)["case"]
            if "config" in case:
                yield pytest.param(case["config"], id=case["id"])


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(None, id="nothing"),
        pytest.param(HEADER, id="an empty document"),
        pytest.param(HEADER | {"profiles": []}, id="no profiles"),
        pytest.param(HEADER | {"profiles": None, "parallelism": None}, id="null is unset"),
        pytest.param(
            HEADER
            | {
                "clientConnection": {"qps": 0, "burst": 0, "contentType": ""},
                "leaderElection": {"leaseDuration": "0s", "resourceName": "", "resourceLock": ""},
            },
            id="zeros that mean unset",
        ),
    ],
)
def test_defaults(source):
    got = config.load(source)
    assert replace(got, profiles=()) == config.SchedulerConfiguration(
        parallelism=16,
        percentage_of_nodes_to_score=None,
        pod_initial_backoff_seconds=1,
        pod_max_backoff_seconds=10,
        delay_cache_until_active=False,
        enable_profiling=True,
        enable_contention_profiling=True,
        client_connection=structs.ClientConnection(
            kubeconfig="",
            accept_content_types="",
            content_type="application/vnd.kubernetes.protobuf",
            qps=50.0,
            burst=100,
        ),
        leader_election=structs.LeaderElection(
            leader_elect=True,
            lease_duration_seconds=15.0,
            renew_deadline_seconds=10.0,
            retry_period_seconds=2.0,
            resource_lock="leases",
            resource_name="kube-scheduler",
            resource_namespace="kube-system",
        ),
    )
    (profile,) = got.profiles
    assert profile.scheduler_name == "default-scheduler"
    assert profile.percentage_of_nodes_to_score is None
    assert profile.plugins == structs.Plugins(multi_point=plugin_sets.DEFAULT_MULTI_POINT)
    assert {entry.name: entry.args for entry in profile.plugin_config} == {
        "DefaultPreemption": structs.DefaultPreemptionArgs(),
        "DynamicResources": structs.DynamicResourcesArgs(),
        "InterPodAffinity": structs.InterPodAffinityArgs(),
        "NodeAffinity": structs.NodeAffinityArgs(),
        "NodeResourcesBalancedAllocation": structs.NodeResourcesBalancedAllocationArgs(),
        "NodeResourcesFit": structs.NodeResourcesFitArgs(),
        "PodTopologySpread": structs.PodTopologySpreadArgs(),
        "VolumeBinding": structs.VolumeBindingArgs(),
    }


@pytest.mark.parametrize(
    ("members", "contention"),
    [
        pytest.param({}, True, id="both on"),
        pytest.param({"enableProfiling": False}, False, id="off with profiling"),
        pytest.param(
            {"enableProfiling": False, "enableContentionProfiling": True}, True, id="said otherwise"
        ),
    ],
)
def test_contention_profiling_follows_profiling(members, contention):
    assert load(**members).enable_contention_profiling is contention


@pytest.mark.parametrize(
    ("value", "loaded"),
    [
        pytest.param(None, None, id="unset means all nodes"),
        pytest.param(0, 0, id="an explicit zero is adaptive"),
        pytest.param(30, 30, id="a sample"),
        pytest.param(30.0, 30, id="a whole number with a point"),
    ],
)
def test_percentage_of_nodes_to_score(value, loaded):
    got = load(percentageOfNodesToScore=value, profiles=[{"percentageOfNodesToScore": value}])
    assert got.percentage_of_nodes_to_score == loaded
    assert got.profiles[0].percentage_of_nodes_to_score == loaded


def test_default_args_follow_the_users_in_order_of_their_names():
    profile = load(
        profiles=[
            {
                "plugins": {"multiPoint": {"disabled": [{"name": "VolumeBinding"}]}},
                "pluginConfig": [{"name": "NodeAffinity"}, {"name": "Mine"}],
            }
        ]
    ).profiles[0]
    assert [entry.name for entry in profile.plugin_config] == [
        "NodeAffinity",
        "Mine",
        "DefaultPreemption",
        "DynamicResources",
        "InterPodAffinity",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "PodTopologySpread",
    ]


def test_resources_of_extenders_replace_the_ignored_ones_in_all_profiles():
    fit = {"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/old"]}}
    managed = [
        {"name": "example.com/a", "ignoredByScheduler": True},
        {"name": "example.com/b"},
    ]
    got = load(
        profiles=[{"schedulerName": "a", "pluginConfig": [fit]}, {"schedulerName": "b"}],
        extenders=[{"managedResources": managed}],
    )
    for profile in got.profiles:
        assert profile.args("NodeResourcesFit").ignored_resources == ("example.com/a",)


def test_extender():
    got = load(
        extenders=[
            {
                "urlPrefix": "http://localhost",
                "filterVerb": "filter",
                "enableHTTPS": True,
                "tlsConfig": {"caData": "Y2E=", "serverName": "x"},
                "nodeCacheCapable": True,
                "ignorable": True,
            },
            {"httpTimeout": "100ms"},
        ]
    ).extenders
    assert got == (
        config.Extender(
            url_prefix="http://localhost",
            filter_verb="filter",
            enable_https=True,
            tls_config=config.ExtenderTLSConfig(ca_data=b"ca", server_name="x"),
            http_timeout_seconds=5.0,
            node_cache_capable=True,
            ignorable=True,
        ),
        config.Extender(http_timeout_seconds=0.1),
    )


@pytest.mark.parametrize(
    ("document", "problems"),
    [
        pytest.param(
            {"kind": config.KIND},
            ["Object 'apiVersion' is missing in '{\"kind\":\"KubeSchedulerConfiguration\"}'"],
            id="no version",
        ),
        pytest.param({}, ["Object 'Kind' is missing in '{}'"], id="no kind"),
        pytest.param(
            {"apiVersion": "componentconfig/v1alpha1", "kind": config.KIND},
            [
                'no kind "KubeSchedulerConfiguration" is registered for version '
                '"componentconfig/v1alpha1"'
            ],
            id="an old group",
        ),
        pytest.param(
            {"apiVersion": "kubescheduler.config.k8s.io/v1beta3", "kind": config.KIND},
            [
                'no kind "KubeSchedulerConfiguration" is registered for version '
                '"kubescheduler.config.k8s.io/v1beta3"'
            ],
            id="an old version",
        ),
        pytest.param(
            {"apiVersion": config.API_VERSION, "kind": "Policy"},
            ['no kind "Policy" is registered for version "kubescheduler.config.k8s.io/v1"'],
            id="another kind",
        ),
        pytest.param(
            HEADER | {"foo": "bar", "profiles": [{"plugins": {"normalize": {}}}]},
            [
                'strict decoding error: unknown field "foo"',
                'strict decoding error: unknown field "profiles[0].plugins.normalize"',
            ],
            id="unknown fields",
        ),
        pytest.param(
            HEADER | {"baseDir": "/tmp"},
            ['strict decoding error: unknown field "baseDir"'],
            id="where the file is cannot be said in the file",
        ),
        pytest.param(
            HEADER
            | {
                "parallelism": "many",
                "delayCacheUntilActive": 1,
                "clientConnection": {"qps": "5", "burst": 1.5, "kubeconfig": 7},
                "leaderElection": {"leaseDuration": 15, "renewDeadline": "10"},
                "profiles": [{"pluginConfig": {}}],
            },
            [
                'parallelism: Invalid value: "many": must be an integer',
                "delayCacheUntilActive: Invalid value: 1: must be true or false",
                'clientConnection.qps: Invalid value: "5": must be a number',
                "clientConnection.burst: Invalid value: 1.5: must be an integer",
                "clientConnection.kubeconfig: Invalid value: 7: must be a string",
                'leaderElection.leaseDuration: Invalid value: 15: must be a duration such as "15s"',
                'leaderElection.renewDeadline: Invalid value: "10": '
                'time: missing unit in duration "10"',
                "profiles[0].pluginConfig: Invalid value: {}: must be a list",
            ],
            id="values of the wrong type, all of them",
        ),
        pytest.param(
            HEADER | {"parallelism": 2**31, "profiles": [None]},
            [
                "parallelism: Invalid value: 2147483648: must be -2147483648 to 2147483647",
                "profiles[0]: Invalid value: null: must be an object",
            ],
            id="more than 32 bits, and a hole",
        ),
        pytest.param(
            HEADER | {"profiles": {}},
            ["profiles: Invalid value: {}: must be a list"],
            id="an empty object is not an empty list",
        ),
        pytest.param(
            HEADER | {"parallelism": True},
            ["parallelism: Invalid value: true: must be an integer"],
            id="true is not one",
        ),
        pytest.param(
            HEADER | {"extenders": [{"tlsConfig": {"keyData": "s%cret"}}]},
            [
                'extenders[0].tlsConfig.keyData: Invalid value: "...": '
                "illegal base64 data: Only base64 data is allowed"
            ],
            id="a key that is not base64, and not shown",
        ),
        pytest.param(
            ["a"],
            ["couldn't get version/kind; an object is expected, this is a list"],
            id="a list",
        ),
        pytest.param(
            7, ["couldn't get version/kind; an object is expected, this is a single value"], id="7"
        ),
        pytest.param(
            HEADER | {"profiles": {1}},
            ["not a value that JSON knows: set {1}"],
            id="what JSON cannot say",
        ),
    ],
)
def test_documents_that_cannot_be_decoded(document, problems):
    with pytest.raises(ConfigError) as caught:
        config.load(document)
    assert caught.value.problems == problems


@pytest.mark.parametrize("spell", [yaml.safe_dump, json.dumps], ids=["yaml", "json"])
def test_a_file(tmp_path, spell):
    path = tmp_path / "scheduler.yaml"
    path.write_text(spell(HEADER | {"parallelism": 4}))
    for source in (path, str(path)):
        got = config.load(source)
        assert got.parallelism == 4
        assert got.base_dir == tmp_path
    assert config.load(path, base_dir=Path("/plugins")).base_dir == Path("/plugins")


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        pytest.param(
            f"apiVersion: {config.API_VERSION}\nkind: {config.KIND}\nparallelism: 0\n"
            "percentageOfNodesToScore: 101\n",
            [
                "parallelism: Invalid value: 0: should be an integer value greater than zero",
                "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
            ],
            id="every fault names the file",
        ),
        pytest.param(
            f"apiVersion: {config.API_VERSION}\nkind: {config.KIND}\nleaderElection:\n"
            "  leaderElect: true\n  leaderElect: false\n",
            ['strict decoding error: line 5: key "leaderElect" already set in map'],
            id="a key twice",
        ),
        pytest.param("", ["Object 'Kind' is missing in ''"], id="empty"),
        pytest.param(
            "- a\n",
            ["couldn't get version/kind; an object is expected, this is a list"],
            id="a list",
        ),
        pytest.param(
            "[" * 100_000, ["yaml: line 1: is nested more than 100 levels deep"], id="very deep"
        ),
        pytest.param(
            "&a [*a]", ["yaml: line 1: the anchor a contains itself"], id="a list inside itself"
        ),
    ],
)
def test_files_that_do_not_hold(tmp_path, text, problems):
    path = tmp_path / "scheduler.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        config.load(path)
    assert caught.value.problems == [f"{path}: {problem}" for problem in problems]


def test_a_loaded_configuration_stays_as_it_is():
    loaded = load(parallelism=3)
    assert config.load(loaded) is loaded


EVERYTHING = {
    "parallelism": 3,
    "percentageOfNodesToScore": 0,
    "podInitialBackoffSeconds": 2,
    "podMaxBackoffSeconds": 20,
    "delayCacheUntilActive": True,
    "enableProfiling": False,
    "clientConnection": {"kubeconfig": "a", "qps": -1, "burst": 7, "acceptContentTypes": "b"},
    "leaderElection": {"leaderElect": False, "leaseDuration": "1m30s", "resourceName": "mine"},
    "profiles": [
        {
            "schedulerName": "a",
            "percentageOfNodesToScore": 50,
            "plugins": {
                "multiPoint": {
                    "enabled": [{"name": "Mine", "weight": 0}, {"name": "NodePorts"}],
                    "disabled": [{"name": "NodePorts"}],
                },
                "score": {"enabled": [{"name": "Mine", "weight": 9}], "disabled": [{"name": "*"}]},
            },
            "pluginConfig": [
                {"name": "Mine", "args": {"a": {}, "b": [], "c": None, "d": "", "kind": "X"}},
                {"name": "Empty", "args": {}},
                {"name": "Bare"},
                {
                    "name": "NodeAffinity",
                    "args": {
                        "addedAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": []
                            },
                            "preferredDuringSchedulingIgnoredDuringExecution": [],
                        }
                    },
                },
                {"name": "DynamicResources", "args": {"filterTimeout": "0s"}},
            ],
        },
        {"schedulerName": "b"},
    ],
    "extenders": [
        {"urlPrefix": "x", "tlsConfig": {}, "httpTimeout": "1500ms"},
        {"tlsConfig": {"certData": "Y2E="}, "managedResources": [{"name": "example.com/a"}]},
    ],
}


@pytest.mark.parametrize(
    "source", [pytest.param({}, id="defaults"), pytest.param(EVERYTHING, id="everything")]
)
def test_a_printed_configuration_loads_back_to_itself(source):
    loaded = load(**source)
    printed = config.to_dict(loaded)
    assert config.load(printed) == loaded
    assert config.load(json.loads(json.dumps(printed))) == loaded
    assert config.load(yaml.safe_load(yaml.safe_dump(printed))) == loaded


def test_printing():
    printed = config.to_dict(load(leaderElection={"leaseDuration": "90s"}))
    assert list(printed)[:2] == ["apiVersion", "kind"]
    assert printed["leaderElection"]["leaseDuration"] == "1m30s"
    assert "baseDir" not in printed
    assert "percentageOfNodesToScore" not in printed
    assert printed["profiles"][0]["pluginConfig"][0] == {
        "name": "DefaultPreemption",
        "args": {
            "apiVersion": config.API_VERSION,
            "kind": "DefaultPreemptionArgs",
            "minCandidateNodesPercentage": 10,
            "minCandidateNodesAbsolute": 100,
        },
    }


@pytest.mark.parametrize("document", list(golden_configs()))
def test_golden_configurations_load(document):
    loaded = config.load(document)
    assert config.load(config.to_dict(loaded)) == loaded


def plain_data():
    scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    names = st.sampled_from(
        [
            "profiles",
            "plugins",
            "pluginConfig",
            "name",
            "args",
            "enabled",
            "multiPoint",
            "score",
            "schedulerName",
            "kind",
            "extenders",
            "tlsConfig",
            "leaderElection",
            "leaseDuration",
            "parallelism",
            "managedResources",
        ]
    )
    values = scalars | st.sampled_from(["NodeAffinity", "PodTopologySpread", "EBSLimits", "*"])
    return st.recursive(
        values,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    )


@given(members=st.dictionaries(st.sampled_from(list(EVERYTHING)), plain_data()))
def test_whatever_stands_there_it_loads_or_is_refused_in_single_lines(members):
    try:
        loaded, problems = load(**members), []
    except ConfigError as error:
        loaded, problems = None, error.problems
    assert (loaded is None) is bool(problems)
    assert not any("\n" in problem for problem in problems)
    assert loaded is None or config.load(config.to_dict(loaded)) == loaded


@given(content=st.binary() | st.text().map(str.encode))
def test_junk_is_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("junk") / "junk.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError):
        config.load(path)


def test_what_configz_returns_is_a_configuration(tmp_path):
    plain = config.to_dict(config.load(None))
    file = tmp_path / "configz.json"
    file.write_text(json.dumps({"componentconfig": plain}))
    assert config.to_dict(config.load(file)) == config.to_dict(config.load(plain)) == plain
    with pytest.raises(ConfigError, match="'Kind' is missing"):
        config.load({"componentconfig": plain, "other": 1})
