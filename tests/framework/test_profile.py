"""A profile: which plugins, in which order, and what becomes of their answers and their trouble."""

from importlib.metadata import EntryPoint

import pytest
from tests.saying import make

from moorage.api import config
from moorage.errors import ConfigError, PluginFailure
from moorage.framework import events, registry
from moorage.framework.cluster import Cluster
from moorage.framework.effects import BindPod, DeletePod, PodRef
from moorage.framework.events import ClusterEvent
from moorage.framework.post_filter import NoFeasibleNode, PostFiltered
from moorage.framework.profile import Profile
from moorage.framework.registry import Registry
from moorage.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    error,
    pending,
    unresolvable,
    unschedulable,
    wait,
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


def test_plugins_run_in_the_configured_order(bench):
    said = []
    plugins = [make(name, reserve=lambda *_, n=name: said.append(n) or SUCCESS) for name in "CAB"]
    workbench = bench(plugins)
    assert workbench.profile.run_reserve(state_of(workbench), POD, "n1") is SUCCESS
    assert said == ["C", "A", "B"]


def test_a_point_may_have_an_order_of_its_own(bench):
    plugins = [make(name, permit=SUCCESS, reserve=SUCCESS) for name in "AB"]
    workbench = bench(plugins, permit={"enabled": [{"name": "B"}], "disabled": [{"name": "A"}]})
    names = {
        point: [p.name for p in workbench.profile._at[point]] for point in ("reserve", "permit")
    }
    assert names == {"reserve": ["A", "B"], "permit": ["B"]}


def test_profiles_go_by_scheduler_name(bench):
    narrow, wide = make("Narrow", filter=NO), make("Wide", filter=SUCCESS)
    workbench = bench(
        [narrow, wide],
        profiles=[
            {"schedulerName": name, "plugins": {"multiPoint": {"enabled": [{"name": plugin}]}}}
            for name, plugin in (("careful", "Narrow"), ("brave", "Wide"))
        ],
    )
    assert list(workbench.profiles) == ["careful", "brave"]
    assert workbench.ask(make_pod("p", scheduler_name="careful")).fits == []
    assert workbench.ask(make_pod("p", scheduler_name="brave")).fits == ["n1", "n2", "n3"]


def test_arguments_differ_by_profile(bench):
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
        assert workbench.ask(make_pod("p", scheduler_name=node)).fits == [node]


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
def test_trouble_at_start_up_is_one_line(bench, plugin, problem):
    with pytest.raises(ConfigError) as raised:
        bench([plugin])
    assert raised.value.problems == [problem]


def test_two_plugins_of_one_name():
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
    return registry.build_profiles(config.load(settings), plugins, Cluster())


def test_what_is_installed_and_not_named_may_be_broken(monkeypatch):
    installed = [*registry.entry_points(group=registry.GROUP)]
    broken = EntryPoint("Broken", "moorage_unheard:Plugin", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [*installed, broken])
    assert build_with(Registry())
    with pytest.raises(ConfigError, match='plugin "Broken": moorage_unheard:Plugin: No module'):
        build_with(Registry(), "Broken")


def test_hints_are_those_of_plugins_that_can_refuse(bench):
    def hint(pod, old, new):
        return events.Hint.QUEUE

    workbench = bench(
        [
            make("Told", filter=SUCCESS, events_to_register={ClusterEvent.POD_DELETE: hint}),
            make("Untold", permit=SUCCESS),
            make("Scorer", score=1, events_to_register={ClusterEvent.POD_DELETE: hint}),
        ]
    )
    found = workbench.profile.hints.covering(ClusterEvent.POD_DELETE)
    assert [(r.plugin, r.hint) for r in found] == [("Told", hint), ("Untold", events.always)]


# The queue's questions


@pytest.mark.parametrize(
    ("answers", "held"),
    [
        pytest.param([SUCCESS, SUCCESS], None, id="nobody holds it"),
        pytest.param([SUCCESS, NO], NO.by("B"), id="the second holds it"),
        pytest.param([pending("later"), NO], pending("later").by("A"), id="the first of two"),
        pytest.param(
            [PluginFailure("what?"), SUCCESS],
            error('running PreEnqueue plugin "A": what?', "A"),
            id="trouble holds it too",
        ),
        pytest.param(
            [None, SUCCESS],
            error('running PreEnqueue plugin "A": returned None, which is not a Status', "A"),
            id="no answer",
        ),
    ],
)
def test_pre_enqueue(bench, answers, held):
    plugins = [make(name, pre_enqueue=answer) for name, answer in zip("AB", answers, strict=True)]
    assert bench(plugins).profile.run_pre_enqueue(POD) == held


# Reserve and permit


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        pytest.param(NO, NO.by("B"), id="a refusal"),
        pytest.param(pending("soon"), pending("soon").by("B"), id="pending is a refusal"),
        pytest.param(
            PluginFailure("disk"),
            error('running Reserve plugin "B": disk', "B"),
            id="failure",
        ),
        pytest.param(
            SystemExit(3),
            error('running Reserve plugin "B": called sys.exit(3) (saying.py:9)', "B"),
            id="a way out is trouble",
        ),
        pytest.param(
            SKIP,
            error('running Reserve plugin "B": returned Skip', "B"),
            id="a code that means nothing here",
        ),
        pytest.param(
            error("disk"), error('running Reserve plugin "B": disk', "B"), id="trouble returned"
        ),
        pytest.param(
            True,
            error('running Reserve plugin "B": returned True, which is not a Status', "B"),
            id="not a status",
        ),
    ],
)
def test_reserve_stops_at_the_first_that_does_not_succeed(bench, answer, status):
    later = []
    plugins = [
        make("A", reserve=SUCCESS),
        make("B", reserve=answer),
        make("C", reserve=lambda *_: later.append("C") or SUCCESS),
    ]
    workbench = bench(plugins)
    assert workbench.profile.run_reserve(state_of(workbench), POD, "n1") == status
    assert later == []


def test_unreserve_runs_for_all_in_reverse_whatever_happens(bench):
    undone = []
    plugins = [
        make("A", reserve=SUCCESS, unreserve=lambda *_: undone.append("A")),
        make("B", reserve=SUCCESS, unreserve=SystemExit("stuck")),
        make("C", reserve=SUCCESS),  # has nothing to undo
        make("D", reserve=SUCCESS, unreserve=lambda *_: undone.append("D")),
    ]
    workbench = bench(plugins)
    trouble = workbench.profile.run_unreserve(state_of(workbench), POD, "n1")
    assert undone == ["D", "A"]
    assert trouble == ["""running Unreserve plugin "B": called sys.exit('stuck') (saying.py:9)"""]


@pytest.mark.parametrize(
    ("answers", "status", "waits"),
    [
        pytest.param([SUCCESS, SUCCESS], SUCCESS, {}, id="all agree"),
        pytest.param([wait(3), wait(7)], SUCCESS, {"A": 3, "B": 7}, id="both wait"),
        pytest.param([wait(3), SUCCESS], SUCCESS, {"A": 3}, id="one waits"),
        pytest.param([wait(3), NO], NO.by("B"), {}, id="a refusal ends all waiting"),
        pytest.param([wait(9999), SUCCESS], SUCCESS, {"A": 900}, id="15 minutes at most"),
        pytest.param([wait(0), SUCCESS], SUCCESS, {"A": 0}, id="not at all"),
        pytest.param(
            [PluginFailure("disk"), wait(1)],
            error('running Permit plugin "A": disk', "A"),
            {},
            id="raised",
        ),
        pytest.param(
            [SKIP, wait(1)], error('running Permit plugin "A": returned Skip', "A"), {}, id="skip"
        ),
    ],
)
def test_permit(bench, answers, status, waits):
    plugins = [make(name, permit=answer) for name, answer in zip("AB", answers, strict=True)]
    workbench = bench(plugins)
    assert workbench.profile.run_permit(state_of(workbench), POD, "n1") == (status, waits)


# Bind


@pytest.mark.parametrize(
    ("answers", "code", "busy"),
    [
        pytest.param({}, Code.SKIP, [], id="nobody there"),
        pytest.param({"A": SKIP, "B": SKIP}, Code.SKIP, [], id="53: all skip"),
        pytest.param({"A": SKIP, "B": SUCCESS}, Code.SUCCESS, ["B"], id="53: one is busy"),
        pytest.param({"A": NO, "B": SUCCESS}, Code.ERROR, [], id="53: a refusal is an error"),
        pytest.param({"A": PluginFailure("x"), "B": SUCCESS}, Code.ERROR, [], id="trouble"),
        pytest.param({"A": None}, Code.ERROR, [], id="no answer"),
    ],
)
def test_53_pre_flight(bench, answers, code, busy):
    plugins = [
        make(name, pre_bind=SUCCESS, pre_bind_pre_flight=said) for name, said in answers.items()
    ]
    workbench = bench(plugins)
    status, found = workbench.profile.run_pre_flight(state_of(workbench), POD, "n1")
    assert (status.code, [plugin.name for plugin in found]) == (code, busy)


def test_53_the_words_of_a_pre_flight_that_refuses(bench):
    workbench = bench([make("A", pre_bind=SUCCESS, pre_bind_pre_flight=NO)])
    status, _ = workbench.profile.run_pre_flight(state_of(workbench), POD, "n1")
    assert status.message == (
        'PreBindPreFlight A returned "Unschedulable", which is unsupported. It is supposed to '
        "return Success, Skip, or Error status"
    )
    workbench = bench([make("A", pre_bind=SUCCESS, pre_bind_pre_flight=PluginFailure("disk"))])
    status, _ = workbench.profile.run_pre_flight(state_of(workbench), POD, "n1")
    assert status.message == 'running PreBindPreFlight "A": disk'


def test_who_does_not_say_beforehand_is_busy(bench):
    workbench = bench([make("A", pre_bind=SUCCESS)])
    status, busy = workbench.profile.run_pre_flight(state_of(workbench), POD, "n1")
    assert (status, [plugin.name for plugin in busy]) == (SUCCESS, ["A"])


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(SUCCESS, SUCCESS.by("A"), id="done"),
        pytest.param(NO, NO.by("A"), id="refused"),
        pytest.param((DELETE,), (DELETE,), id="requests"),
        pytest.param((), (), id="no requests"),
        pytest.param(DELETE, (DELETE,), id="a single request"),
        pytest.param(PluginFailure("x"), error('running PreBind plugin "A": x', "A"), id="trouble"),
        pytest.param(
            SKIP, error('running PreBind plugin "A": returned Skip', "A"), id="skip means nothing"
        ),
        pytest.param(
            "no",
            error("running PreBind plugin \"A\": returned 'no', which is not a Status", "A"),
            id="not a status",
        ),
    ],
)
def test_pre_bind(bench, answer, expected):
    workbench = bench([make("A", pre_bind=answer)])
    (plugin,) = workbench.profile._at["pre_bind"]
    found = workbench.profile.run_pre_bind(plugin, state_of(workbench), POD, "n1")
    assert found == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(BIND, BIND, id="a request"),
        pytest.param(SUCCESS, SUCCESS.by("A"), id="done"),
        pytest.param(SKIP, SKIP.by("A"), id="not mine"),
        pytest.param(NO, NO.by("A"), id="refused"),
        pytest.param(PluginFailure("x"), error('running Bind plugin "A": x', "A"), id="trouble"),
        pytest.param(
            wait(1), error('running Bind plugin "A": returned Wait', "A"), id="wait means nothing"
        ),
        pytest.param(
            (BIND,),
            error(f'running Bind plugin "A": returned {(BIND,)!r}, which is not a Status', "A"),
            id="several requests",
        ),
    ],
)
def test_bind(bench, answer, expected):
    workbench = bench([make("A", bind=answer)])
    plugin = workbench.profile.binds[-1]
    assert workbench.profile.run_bind(plugin, state_of(workbench), POD, "n1") == expected


def test_post_bind_tells_everybody(bench):
    told = []
    plugins = [
        make("A", post_bind=PluginFailure("oh")),
        make("B", post_bind=lambda *args: told.append(args[-1])),
    ]
    workbench = bench(plugins)
    trouble = workbench.profile.run_post_bind(state_of(workbench), POD, "n1")
    assert (told, trouble) == (["n1"], ['running PostBind plugin "A": oh'])


# Post filter


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(NO, PostFiltered(NO.by("A")), id="a status"),
        pytest.param(PostFiltered(SUCCESS, "n1"), PostFiltered(SUCCESS.by("A"), "n1"), id="more"),
        pytest.param(
            PluginFailure("x"),
            PostFiltered(error('running PostFilter plugin "A": x', "A")),
            id="trouble",
        ),
        pytest.param(
            None,
            PostFiltered(
                error(
                    'running PostFilter plugin "A": returned None, which is neither a Status nor '
                    "a PostFiltered",
                    "A",
                )
            ),
            id="no answer",
        ),
    ],
)
def test_post_filter(bench, answer, expected):
    workbench = bench([make("A", post_filter=answer)])
    assert workbench.profile.has_post_filters
    failure = NoFeasibleNode(PreFiltered(), None, unresolvable("no"), what_if=None)
    found = workbench.profile.run_post_filters(state_of(workbench), POD, failure)
    assert found == expected


def test_a_queue_sort_that_raises_puts_its_pod_last():
    class Choosy:
        name = "Choosy"

        def queue_sort(self, pod, queued_at):
            if pod.name == "odd":
                raise PluginFailure("cannot sort this")
            return queued_at

    sorting = Profile("p", {"queue_sort": [(Choosy(), 0)]}, Cluster())
    keys = [sorting.queue_key(make_pod(name), at) for name, at in [("odd", 1.0), ("fine", 2.0)]]
    assert sorted(keys) == [keys[1], keys[0]]
