"""Scenario files: valid content, and errors that name the field."""

import copy
import json
import math

import pytest

from moorage.errors import InputError
from moorage.scenarios import reading

TEMPLATE = {
    "spec": {"containers": [{"name": "c", "image": "c", "resources": {"requests": {"cpu": "1"}}}]}
}
GOOD = {
    "apiVersion": "moorage.dev/v1",
    "kind": "Scenario",
    "metadata": {"name": "day"},
    "spec": {
        "duration": "24h",
        "arrivals": [
            {"name": "a", "rate": {"perHour": 6}, "lifetime": {"fixed": "1h"}, "template": TEMPLATE}
        ],
        "events": [{"at": "1h30m", "drain": {"nodes": ["n"]}}],
    },
}


def scenario(path, value):
    """The good scenario with one thing changed; None takes it away."""
    changed = copy.deepcopy(GOOD)
    *steps, last = path
    inner = changed
    for step in steps:
        inner = inner[step]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return changed


ARRIVAL = ("spec", "arrivals", 0)
EVENT = ("spec", "events", 0)


def test_a_good_one():
    plan = reading.plan(GOOD)
    assert (plan.duration, plan.seed, plan.interval) == (86400, 0, 300)
    assert plan.events[0].at == 5400


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        pytest.param(("spec", "duration"), None, "spec.duration: is missing", id="no duration"),
        pytest.param(
            ("spec", "duration"),
            "a day",
            'spec.duration: must be a duration such as 90s, 30m or 24h, is "a day"',
            id="not a duration",
        ),
        pytest.param(
            ("spec", "duration"), 0, "spec.duration: must be longer than nothing", id="no time"
        ),
        pytest.param(("spec", "seed"), "x", 'spec.seed: must be a whole number, is "x"', id="seed"),
        pytest.param(
            ("spec", "arivals"), [], "spec.arivals: is not a known field", id="a misspelt field"
        ),
        pytest.param(
            ("apiVersion",), "v1", 'apiVersion: must be moorage.dev/v1, is "v1"', id="version"
        ),
        pytest.param(
            (*ARRIVAL, "rate"),
            {"perHour": 0},
            "spec.arrivals[0].rate.perHour: must be a number > 0.0, is 0",
            id="a rate of nothing",
        ),
        pytest.param(
            (*ARRIVAL, "rate"),
            {"perHour": 1, "distribution": "normal"},
            'spec.arrivals[0].rate.distribution: must be poisson or constant, is "normal"',
            id="an unknown distribution",
        ),
        pytest.param(
            (*ARRIVAL, "at"),
            ["1h"],
            "spec.arrivals[0]: needs either a rate or times (`at`)",
            id="a rate and times",
        ),
        pytest.param(
            (*ARRIVAL, "rate"), None, "spec.arrivals[0]: needs either a rate", id="neither"
        ),
        pytest.param(
            (*ARRIVAL, "template"), None, "spec.arrivals[0].template: is missing", id="no template"
        ),
        pytest.param(
            (*ARRIVAL, "lifetime"),
            {"fixed": "1h", "exponential": "1h"},
            "spec.arrivals[0].lifetime: needs one of fixed, exponential and uniform",
            id="two lifetimes",
        ),
        pytest.param(
            (*ARRIVAL, "lifetime"),
            {"uniform": ["2h", "1h"]},
            "spec.arrivals[0].lifetime.uniform: the second bound lies below the first",
            id="bounds the wrong way round",
        ),
        pytest.param(
            (*ARRIVAL, "lifetime"),
            {"fixed": "-1h"},
            "spec.arrivals[0].lifetime.fixed: must be a duration",
            id="a negative lifetime",
        ),
        pytest.param(
            (*ARRIVAL, "template", "spec", "containers", 0, "resources", "requests", "cpu"),
            "lots",
            "spec.arrivals[0].template.spec.containers[0].resources.requests.cpu: "
            '"lots" is not a quantity',
            id="a quantity in a template",
        ),
        pytest.param(
            ("spec", "duration"),
            1e12,
            "spec.duration: must be at most 876000h, which are 100 years, is 1000000000000.0",
            id="a duration beyond the calendar",
        ),
        pytest.param(
            ("spec", "sample"),
            1e-6,
            "spec.sample: spec.duration must have at most 1,000,000 samples, is 1e-06",
            id="too many samples",
        ),
        pytest.param(
            (*ARRIVAL, "rate"),
            {"perHour": 1e18},
            "spec.arrivals[0]: at most 10,000,000 pods may arrive, these would be 2.4e+19",
            id="too many arrivals",
        ),
        pytest.param(
            (*ARRIVAL, "rate"),
            {"perHour": math.inf},
            "spec.arrivals[0]: at most 10,000,000 pods may arrive, these would be inf",
            id="arrivals without end",
        ),
        pytest.param(
            (*ARRIVAL, "start"),
            "48h",
            "spec.arrivals[0].start: lies after spec.duration",
            id="a start after the end",
        ),
        pytest.param((*EVENT, "at"), None, "spec.events[0].at: is missing", id="when"),
        pytest.param(
            (*EVENT, "scale"),
            {"name": "web", "replicas": 1},
            "spec.events[0]: needs one of scale, drain, fail",
            id="two actions",
        ),
        pytest.param(
            (*EVENT, "drain"),
            {},
            "spec.events[0].drain: needs nodes, a selector or a count",
            id="a drain of nothing",
        ),
        pytest.param(
            (*EVENT, "drain"),
            {"selector": "a in"},
            "spec.events[0].drain.selector:",
            id="a bad selector",
        ),
    ],
)
def test_errors_name_the_field(path, value, message):
    with pytest.raises(InputError) as raised:
        reading.plan(scenario(path, value), where="day.yaml, document 1")
    assert str(raised.value).startswith("day.yaml, document 1, Scenario day, ")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("kind: Pod\napiVersion: v1", "there is none", id="no scenario"),
        pytest.param("kind: Scenario\n---\nkind: Scenario", "there is 2 of them", id="two"),
        pytest.param("spec: [", "line 2: is not YAML", id="not YAML"),
        pytest.param("", "there is none", id="empty"),
    ],
)
def test_a_file_that_is_none(tmp_path, text, message):
    path = tmp_path / "s.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        reading.load(path)
    assert message in str(raised.value)


def test_errors_of_objects_name_their_document(tmp_path):
    event = {"at": "1h", "create": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 1}}]}
    path = tmp_path / "s.yaml"
    path.write_text(json.dumps(scenario(("spec", "events"), [event])))
    with pytest.raises(
        InputError, match=r"Scenario day, spec\.events\[0\]\.create\[0\], Pod, meta"
    ):
        reading.load(path)
    path.write_text("kind: Pod\napiVersion: v1\nmetadata: {name: 1}\n---\n" + json.dumps(GOOD))
    with pytest.raises(InputError, match=r"s\.yaml, document 1, Pod, metadata\.name"):
        reading.load(path)


def test_what_comes_after_the_end_is_a_warning():
    late = [{"at": "25h", "drain": {"count": 1}}]
    where = "day.yaml, document 1"
    found = reading.plan(scenario(("spec", "events"), late), where=where)
    problem = "spec.events[0].at: lies after spec.duration, so it does not happen"
    assert found.warnings == (f"{where}, Scenario day, {problem}",)


def test_a_rate_of_almost_nothing():
    found = reading.plan(scenario((*ARRIVAL, "rate"), {"perHour": 1e-320}))
    assert list(found.arrivals(0)) == []


def test_an_unknown_pool():
    event = {"at": "1h", "addNodes": {"pool": "x", "count": 1}}
    with pytest.raises(InputError, match=r"events\[0\]\.addNodes\.template: is missing"):
        reading.plan(scenario(("spec", "events"), [event]))
