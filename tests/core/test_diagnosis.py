"""Who is blamed for a refusal, and how much of it an Event can carry."""

import pytest

from moorage.core import diagnosis
from moorage.core.diagnosis import Diagnosis
from moorage.framework.status import pending, unschedulable


def test_what_post_filter_plugins_add():
    assert diagnosis.with_post_filter("No.", "preemption: no") == "No. preemption: no"
    assert diagnosis.with_post_filter("No.", "") == "No."


def test_who_is_blamed():
    found = Diagnosis("no", {"Narrow"})
    found.blame(unschedulable("Insufficient cpu").by("Fit"))
    found.blame(pending("soon").by("Claims"))
    found.blame(unschedulable("removed"))
    assert found.unschedulable_plugins == {"Narrow", "Fit", "Claims"}
    assert found.pending_plugins == {"Claims"}


@pytest.mark.parametrize(
    ("message", "note"),
    [
        pytest.param("x" * 1024, "x" * 1024, id="60: as long as can be"),
        pytest.param("x" * 1025, "x" * 1020 + " ...", id="60: one byte more"),
        pytest.param("é" * 600, "é" * 510 + " ...", id="bytes count, not characters"),
        pytest.param("x" + "é" * 600, "x" + "é" * 509 + " ...", id="a character is not cut in two"),
    ],
)
def test_60_note(message, note):
    assert diagnosis.note(message) == note
    assert len(note.encode()) <= 1024
