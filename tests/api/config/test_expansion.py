import pytest

from moorage.api import config
from moorage.api.config import structs
from moorage.errors import ConfigError

# Which default plugin takes part where (kube-scheduler v1.36), in the order of the default list.
PRE_FILTER = [
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "NodeDeclaredFeatures",
]
DEFAULTS = {
    "pre_enqueue": ["SchedulingGates", "DynamicResources", "DefaultPreemption"],
    "queue_sort": ["PrioritySort"],
    "pre_filter": PRE_FILTER,
    "filter": ["NodeUnschedulable", "NodeName", "TaintToleration", *PRE_FILTER],
    "post_filter": ["DynamicResources", "DefaultPreemption"],
    "pre_score": [
        "TaintToleration",
        "NodeAffinity",
        "NodeResourcesFit",
        "VolumeBinding",
        "PodTopologySpread",
        "InterPodAffinity",
        "NodeResourcesBalancedAllocation",
    ],
    "score": [
        "TaintToleration",
        "NodeAffinity",
        "NodeResourcesFit",
        "VolumeBinding",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeResourcesBalancedAllocation",
        "ImageLocality",
    ],
    "reserve": ["VolumeBinding", "DynamicResources"],
    "permit": [],
    "pre_bind": ["VolumeBinding", "DynamicResources"],
    "bind": ["DefaultBinder"],
    "post_bind": [],
    "placement_generate": [],
    "placement_score": ["NodeResourcesFit"],
}
# Plugins of nobody in particular: N, T and S have a say in all points that choose a node.
OWN = {point: ["N", "T", "S", "X"] for point in ("pre_filter", "filter", "pre_score", "score")}
OWN |= {"queue_sort": ["Sort"], "bind": ["Bind"], "placement_generate": ["G1", "G2"]}
KNOWN = {name for table in (DEFAULTS, OWN) for names in table.values() for name in names}


def implements(name, point):
    return name in DEFAULTS[point] or name in OWN.get(point, ())


def listed(*entries):
    """Entries of an enabled or disabled list, from names or (name, weight)."""
    pairs = [entry if isinstance(entry, tuple) else (entry, None) for entry in entries]
    return [{"name": name} | ({"weight": weight} if weight else {}) for name, weight in pairs]


def effective(plugins, known=KNOWN):
    document = {
        "apiVersion": config.API_VERSION,
        "kind": config.KIND,
        "profiles": [{"plugins": plugins}],
    }
    return config.effective_plugins(config.load(document).profiles[0], implements, known)


def only(*names, **points):
    """Plugin sets with nothing but these in multiPoint, and what it takes to sort and to bind."""
    enabled = listed("PrioritySort", "DefaultBinder", *names)
    return {"multiPoint": {"enabled": enabled, "disabled": listed("*")}, **points}


def test_defaults():
    got = effective({})
    assert {point: [name for name, _ in plugins] for point, plugins in got.items()} == DEFAULTS
    assert dict(got["score"]) == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "VolumeBinding": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }
    assert got["placement_score"] == [("NodeResourcesFit", 1)]
    assert got["filter"][0] == ("NodeUnschedulable", 0)


def test_some_defaults_in_another_order():
    got = effective(
        {
            "multiPoint": {
                "disabled": listed("*"),
                "enabled": listed(
                    *[
                        "SchedulingGates",
                        "DefaultBinder",
                        "PrioritySort",
                        "DefaultPreemption",
                        "VolumeBinding",
                        "NodeResourcesFit",
                        "NodePorts",
                        "InterPodAffinity",
                        "TaintToleration",
                        "DynamicResources",
                    ]
                ),
            },
            "preFilter": {"disabled": listed("VolumeBinding", "InterPodAffinity")},
            "filter": {"disabled": listed("VolumeBinding", "InterPodAffinity", "TaintToleration")},
            "score": {"disabled": listed("VolumeBinding", "NodeResourcesFit")},
        }
    )
    names = {point: [name for name, _ in plugins] for point, plugins in got.items()}
    assert names["filter"] == ["NodeResourcesFit", "NodePorts", "DynamicResources"]
    assert names["post_filter"] == ["DefaultPreemption", "DynamicResources"]
    assert got["score"] == [
        ("InterPodAffinity", 1),
        ("TaintToleration", 1),
        ("DynamicResources", 1),
    ]


@pytest.mark.parametrize(
    ("multi_point", "score", "ordered"),
    [
        pytest.param(["N", "T", "S"], {}, "N T S", id="multiPoint alone, in its order"),
        pytest.param(
            ["N", "T", "S"], {"enabled": ["S", "T"]}, "S T N", id="overridden ones come first"
        ),
        pytest.param(
            ["T", "S"],
            {"enabled": ["X", "S", "T"]},
            "S T X",
            id="a plugin of this point comes last",
        ),
        pytest.param(
            ["T", "S"],
            {"enabled": [("S", 5), ("X", 5), ("T", 3)]},
            "S=5 T=3 X=5",
            id="weights are kept",
        ),
        pytest.param([("N", 5)], {}, "N=5", id="a weight in multiPoint counts at score"),
        pytest.param([("N", 5)], {"enabled": ["N"]}, "N", id="without a weight it is 1"),
        pytest.param([("N", 5)], {"enabled": [("N", 2)]}, "N=2", id="the point's weight wins"),
        pytest.param([("N", -4)], {}, "N=-4", id="negative weights are not refused"),
        pytest.param(["N", "T"], {"disabled": ["N"]}, "T", id="switched off at this point"),
        pytest.param(["N", "T"], {"disabled": ["*"]}, "", id="everything off at this point"),
        pytest.param(
            ["N", "T"],
            {"disabled": ["*"], "enabled": ["X"]},
            "X",
            id="all off but the explicit one",
        ),
        pytest.param(
            ["N", "T"], {"disabled": ["N"], "enabled": ["X", "N"]}, "T X N", id="off and on is last"
        ),
    ],
)
def test_order_and_weights(multi_point, score, ordered):
    score = {key: listed(*entries) for key, entries in score.items()}
    got = effective(only(*multi_point, score=score))
    want = [entry.partition("=") for entry in ordered.split()]
    assert got["score"] == [(name, int(weight or 1)) for name, _, weight in want]
    pre_score = [entry[0] if isinstance(entry, tuple) else entry for entry in multi_point]
    assert [name for name, _ in got["pre_score"]] == pre_score  # other points are not touched


def test_a_point_without_any_plugin():
    got = effective(only("N", "T", preScore={"disabled": listed("*")}))
    assert got["pre_score"] == []
    assert got["score"] == [("N", 1), ("T", 1)]


def test_on_and_off_in_multi_point_is_on():
    multi_point = {"enabled": listed("N"), "disabled": listed("N")}
    assert effective({"multiPoint": multi_point})["filter"][-1] == ("N", 0)


def test_explicit_plugins_go_to_the_end_of_their_points():
    got = effective({"preFilter": {"enabled": listed("X")}, "filter": {"enabled": listed("X")}})
    assert [name for name, _ in got["pre_filter"]] == [*PRE_FILTER, "X"]
    assert [name for name, _ in got["filter"]] == [*DEFAULTS["filter"], "X"]


@pytest.mark.parametrize(
    ("plugins", "problems"),
    [
        pytest.param(
            {"filter": {"enabled": listed("Foo")}},
            ['FilterPlugin "Foo" does not exist'],
            id="unknown at a point",
        ),
        pytest.param(
            {"multiPoint": {"enabled": listed("Foo")}},
            ['PreFilterPlugin "Foo" does not exist'],
            id="unknown in multiPoint",
        ),
        pytest.param(
            {"bind": {"enabled": listed("N")}},
            ['plugin "N" does not extend BindPlugin plugin'],
            id="not that kind of plugin",
        ),
        pytest.param(
            {"preScore": {"enabled": listed("N", "N")}},
            ['plugin "N" already registered as "PreScorePlugin"'],
            id="twice at a point",
        ),
        pytest.param(
            {"multiPoint": {"enabled": listed("N", "N")}},
            ['plugin "N" already registered as "PreFilterPlugin"'],
            id="twice in multiPoint",
        ),
        pytest.param(
            {"multiPoint": {"enabled": listed(("TaintToleration", 2), ("TaintToleration", 4))}},
            ['plugin "TaintToleration" already registered as "FilterPlugin"'],
            id="a default twice in multiPoint",
        ),
        pytest.param(
            {"multiPoint": {"enabled": listed("Sort")}},
            [
                "only one queue sort plugin required for profile with scheduler name "
                '"default-scheduler", but got 2'
            ],
            id="two queue sort plugins",
        ),
        pytest.param(
            {"multiPoint": {"disabled": listed("*")}},
            [
                "only one queue sort plugin required for profile with scheduler name "
                '"default-scheduler", but got 0',
                "at least one bind plugin is needed for profile with scheduler name "
                '"default-scheduler"',
            ],
            id="nothing sorts and nothing binds",
        ),
        pytest.param(
            {"placementGenerate": {"enabled": listed("G1", "G2")}},
            [
                "at most one placement generate plugin is allowed for profile with scheduler name "
                '"default-scheduler"'
            ],
            id="two placement generators",
        ),
        pytest.param(
            {"filter": {"enabled": listed("Foo", "G1")}, "multiPoint": {"enabled": listed("Bar")}},
            [
                'FilterPlugin "Foo" does not exist',
                'plugin "G1" does not extend FilterPlugin plugin',
                'PreFilterPlugin "Bar" does not exist',
            ],
            id="all problems at once",
        ),
    ],
)
def test_problems(plugins, problems):
    with pytest.raises(ConfigError) as caught:
        effective(plugins)
    prefix = "initializing profiles: creating profile for scheduler name default-scheduler: "
    assert caught.value.problems == [prefix + problem for problem in problems]


def test_weights_that_could_overflow():
    plugins = structs.Plugins(
        score=structs.PluginSet(enabled=(structs.PluginEntry(name="N", weight=2**62),))
    )
    with pytest.raises(ConfigError, match="total score of Score plugins could overflow"):
        config.effective_plugins(config.KubeSchedulerProfile(plugins=plugins), implements, KNOWN)


def test_defaults_that_do_not_exist_are_omitted():
    got = effective({}, known={"NodePorts"})
    assert got["filter"] == [("NodePorts", 0)]
    assert got["queue_sort"] == got["bind"] == []


def test_a_default_that_does_not_exist_is_an_error_at_a_point():
    with pytest.raises(ConfigError, match='FilterPlugin "NodeName" does not exist'):
        effective({"filter": {"enabled": listed("NodeName")}}, known={"NodePorts"})


@pytest.mark.parametrize("name", ["carbon.aware:CarbonAware", "plugins/carbon.py:CarbonAware"])
def test_plugins_may_be_named_by_path(name):
    def also_implements(plugin, point):
        return point in ("filter", "score") if plugin == name else implements(plugin, point)

    document = {
        "apiVersion": config.API_VERSION,
        "kind": config.KIND,
        "profiles": [
            {
                "plugins": {"multiPoint": {"enabled": [{"name": name, "weight": 4}]}},
                "pluginConfig": [{"name": name, "args": {"grams": 200}}],
            }
        ],
    }
    profile = config.load(document).profiles[0]
    got = config.effective_plugins(profile, also_implements, {*KNOWN, name})
    assert got["score"][-1] == (name, 4)
    assert profile.args(name) == {"grams": 200}


def profiles(second):
    names = [
        {"schedulerName": "a"},
        {"schedulerName": "b", "plugins": {"multiPoint": second}},
    ]
    header = {"apiVersion": config.API_VERSION, "kind": config.KIND}
    return config.load(header | {"profiles": names})


def test_profiles_by_scheduler_name():
    got = config.effective_profiles(profiles({"disabled": listed("NodeName")}), implements, KNOWN)
    assert len(got["a"]["filter"]) == len(got["b"]["filter"]) + 1


def test_profiles_that_sort_the_queue_differently():
    other = profiles({"enabled": listed("Sort"), "disabled": listed("PrioritySort")})
    with pytest.raises(ConfigError) as caught:
        config.effective_profiles(other, implements, KNOWN)
    assert caught.value.problems == [
        'initializing profiles: different queue sort plugins for profile "b": "Sort", '
        'first: "PrioritySort"'
    ]
