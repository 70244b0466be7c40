"""A profile: which plugins run, in which order, and how their results and errors are handled."""

from importlib.metadata import EntryPoint

import pytest
from tests.saying import make

from moorage.api import config
from moorage.api.server_requests import BindPod, DeletePod, PodRef
from moorage.core import post_filters, profiles
from moorage.errors import ConfigError, PluginFailure
from moorage.framework import events, registry
from moorage.framework.cluster import Cluster
from moorage.framework.events import ClusterEvent
from moorage.framework.post_filter import NoFeasibleNode, PostFiltered
from moorage.framework.profile import Profile
from moorage.framework.registry import Registry
from moorage.framework.status import (
    SUCCESS,
    error,
    pending,
    unresolvable,
    unschedulable,
)
from moorage.framework.views.pre_filters import PreFiltered
from moorage.testing import make_pod, make_state

POD = make_pod("p")
REF = PodRef.of(POD)
BIND = BindPod(REF, "n1")
DELETE = DeletePod(REF)
NO = unschedulable("no")


def state_of(workbench):
    return make_state(POD, workbench.cluster)


# Building


def test_an_extension_point_may_have_its_own_plugin_order(bench):
    plugins = [make(name, permit=SUCCESS, reserve=SUCCESS) for name in "AB"]
    workbench = bench(plugins, permit={"enabled": [{"name": "B"}], "disabled": [{"name": "A"}]})
    names = {
        point: [p.name for p in workbench.profile._at[point]] for point in ("reserve", "permit")
    }
    assert names == {"reserve": ["A", "B"], "permit": ["B"]}


def test_profiles_are_found_by_scheduler_name(bench):
    narrow, wide = make("Narrow", filter=NO), make("Wide", filter=SUCCESS)
    workbench = bench(
        [narrow, wide],
        profiles=[
            {"schedulerName": name, "plugins": {"multiPoint": {"enabled": [{"name": plugin}]}}}
            for name, plugin in (("careful", "Narrow"), ("brave", "Wide"))
        ],
    )
    assert list(workbench.profiles) == ["careful", "brave"]
    assert workbench.run(make_pod("p", scheduler_name="careful")).fits == []
    assert workbench.run(make_pod("p", scheduler_name="brave")).fits == ["n1", "n2", "n3"]


def test_each_profile_passes_its_own_plugin_arguments(bench):
    class Limited:
        name = "Limited"

        def __init__(self, *, nodes=()):
            self.nodes = nodes

        def filter(self, state, pod, node):
            return SUCCESS if node.name in self.nodes else NO

    workbench = bench(
        [Limited],
        profiles=[
            {
                "schedulerName": node,
                "plugins": {"multiPoint": {"enabled": [{"name": "Limited"}]}},
                "pluginConfig": [{"name": "Limited", "args": {"nodes": [node]}}],
            }
            for node in ("n1", "n2")
        ],
    )
    for node in ("n1", "n2"):
        assert workbench.run(make_pod("p", scheduler_name=node)).fits == [node]


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        pytest.param(
            make("A", filter=SUCCESS, events_to_register=PluginFailure("no such kind")),
            'initializing plugin "A": events_to_register: no such kind',
            id="registration raises",
        ),
        pytest.param(
            make("A", filter=SUCCESS, events_to_register=[ClusterEvent.NODE_ADD]),
            'initializing plugin "A": events_to_register: has to return a mapping of '
            "ClusterEvents to hint functions",
            id="registration returns a list",
        ),
    ],
)
def test_an_error_at_startup_is_one_line(bench, plugin, problem):
    with pytest.raises(ConfigError) as raised:
        bench([plugin])
    assert raised.value.problems == [problem]


def test_two_plugins_with_the_same_name_are_an_error():
    plugins = Registry({name: make("A", filter=SUCCESS) for name in ("A", "B")})
    with pytest.raises(ConfigError, match="two plugins call themselves A"):
        build_with(plugins, "A", "B")


def build_with(plugins, *names):
    enabled = [{"name": name} for name in names]
    settings = {
        "apiVersion": config.API_VERSION,
        "kind": config.KIND,
        "profiles": [{"plugins": {"multiPoint": {"enabled": enabled}}}],
    }
    return profiles.build(config.load(settings), plugins, Cluster())


def test_a_broken_plugin_that_no_profile_enables_is_ignored(monkeypatch):
    installed = [*registry.entry_points(group=registry.GROUP)]
    broken = EntryPoint("Broken", "moorage_unheard:Plugin", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [*installed, broken])
    assert build_with(Registry())
    with pytest.raises(ConfigError, match='plugin "Broken": moorage_unheard:Plugin: No module'):
        build_with(Registry(), "Broken")


def test_only_plugins_that_can_reject_register_hints(bench):
    def hint(pod, old, new):
        return events.Hint.QUEUE

    workbench = bench(
        [
            make("Registered", filter=SUCCESS, events_to_register={ClusterEvent.POD_DELETE: hint}),
            make("Unregistered", permit=SUCCESS),
            make("Scorer", score=1, events_to_register={ClusterEvent.POD_DELETE: hint}),
        ]
    )
    assert workbench.profile.events == {
        "Registered": {ClusterEvent.POD_DELETE: hint},
        "Unregistered": events.EVERYTHING,
    }


# Pre-enqueue


@pytest.mark.parametrize(
    ("results", "rejected"),
    [
        pytest.param([SUCCESS, SUCCESS], None, id="no plugin rejects the pod"),
        pytest.param([SUCCESS, NO], NO.by("B"), id="the second plugin rejects the pod"),
        pytest.param(
            [pending("later"), NO],
            pending("later").by("A"),
            id="the first of two rejections counts",
        ),
        pytest.param(
            [PluginFailure("what?"), SUCCESS],
            error('running PreEnqueue plugin "A": what?', "A"),
            id="an error rejects the pod",
        ),
        pytest.param(
            [None, SUCCESS],
            error(
                'running PreEnqueue plugin "A": pre_enqueue returned None, which is not a Status '
                "(saying.py:7)",
                "A",
            ),
            id="None is returned",
        ),
    ],
)
def test_pre_enqueue(bench, results, rejected):
    plugins = [make(name, pre_enqueue=result) for name, result in zip("AB", results, strict=True)]
    assert bench(plugins).profile.run_pre_enqueue(POD) == rejected


# Post filter


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        pytest.param(NO, PostFiltered(NO.by("A")), id="a status"),
        pytest.param(
            PostFiltered(SUCCESS, "n1"),
            PostFiltered(SUCCESS.by("A"), "n1"),
            id="a status and a nominated node",
        ),
        pytest.param(
            PluginFailure("x"),
            PostFiltered(error('running PostFilter plugin "A": x', "A")),
            id="an exception",
        ),
        pytest.param(
            None,
            PostFiltered(
                error(
                    'running PostFilter plugin "A": post_filter returned None, which is not a '
                    "Status or a PostFiltered (saying.py:7)",
                    "A",
                )
            ),
            id="None is returned",
        ),
    ],
)
def test_post_filter(bench, result, expected):
    workbench = bench([make("A", post_filter=result)])
    assert workbench.profile.has_post_filters
    failure = NoFeasibleNode(PreFiltered(), None, unresolvable("no"), what_if=None)
    found = post_filters.run(workbench.profile, state_of(workbench), POD, failure)
    assert found == expected


def test_a_pod_is_sorted_last_if_queue_sort_raises():
    class Choosy:
        name = "Choosy"

        def queue_sort(self, pod, queued_at):
            if pod.name == "odd":
                raise PluginFailure("cannot sort this")
            return queued_at

    sorting = Profile("p", {"queue_sort": [(Choosy(), 0)]}, Cluster())
    keys = [sorting.queue_key(make_pod(name), at) for name, at in [("odd", 1.0), ("fine", 2.0)]]
    assert sorted(keys) == [keys[1], keys[0]]
