"""The plugin contract: definitions that cannot be derived from it are compared with it."""

import re
from pathlib import Path

import pytest

from moorage.api.config import structs
from moorage.framework import points
from moorage.framework.points import METHODS, POINTS

GUIDE = Path(__file__).parents[2] / "docs" / "plugin-guide.md"


def test_the_contract_and_the_configuration_have_the_same_points():
    assert tuple(POINTS) == structs.POINTS


@pytest.mark.parametrize("method", METHODS.values(), ids=lambda method: method.name)
def test_the_plugin_guide_documents_every_method(method):
    rows = [line for line in GUIDE.read_text().splitlines() if line.startswith("| `")]
    assert any(f"`{method.name}({', '.join(method.arguments)})`" in row for row in rows)


def test_the_plugin_guide_documents_no_other_method():
    rows = [line for line in GUIDE.read_text().splitlines() if line.startswith("| `")]
    cells = [row.split("|")[1] for row in rows]
    named = {name for cell in cells for name in re.findall(r"`(\w+)\([a-z_, ]*\)`", cell)}
    assert named <= METHODS.keys()


@pytest.mark.parametrize(
    ("method", "text"),
    [
        ("pre_filter", 'running PreFilter plugin "A": oh'),
        ("filter", 'running "A" filter plugin: oh'),
        ("filter_changes", 'running "A" filter plugin: oh'),
        ("score_all", 'running Score plugins: plugin "A" failed with: oh'),
        ("normalize_score", 'running Normalize on Score plugins: plugin "A" failed with: oh'),
        ("add_pod", 'running AddPod on PreFilter plugin "A": oh'),
        ("pre_bind_next", 'running PreBind plugin "A": oh'),
        ("pre_bind_pre_flight", 'running PreBindPreFlight "A": oh'),
        ("prepare", 'plugin "A": prepare: oh'),
        ("preemption_finished", 'plugin "A": preemption_finished: oh'),
    ],
)
def test_the_wording_of_an_error(method, text):
    assert METHODS[method].error.format(plugin="A", reason="oh") == text


def test_the_points_whose_plugins_can_reject_a_pod():
    rejecting = ("pre_enqueue", "placement_generate", "pre_filter", "filter", "reserve", "permit")
    assert rejecting == points.REJECTING
    assert set(points.REJECTING) < POINTS.keys()


def test_whole_cluster_forms_have_a_twin():
    twins = {method.name: method.twin for method in METHODS.values() if method.twin}
    assert twins == {"filter_all": "filter", "score_all": "score"}


class Scorer:
    def score_all(self, state, pod, table): ...


@pytest.mark.parametrize(
    ("point", "takes_part"), [("score", True), ("filter", False), ("?", False)]
)
def test_one_form_is_enough_to_take_part_in_a_point(point, takes_part):
    assert points.implements(Scorer(), point) is takes_part
