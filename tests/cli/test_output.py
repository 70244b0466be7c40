"""What commands print with."""

import io
import sys

import pytest

from moorage.cli import output, progress
from moorage.cli.progress import ProgressBar, StatusLine


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        pytest.param("NodePorts", ["NodePorts"], id="short enough"),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            ["NodeResources", "Balanced", "Allocation"],
            id="by whole words",
        ),
        pytest.param("averylongnameinlowercase", ["averylongnameinlowercase"], id="no words"),
        pytest.param("CSILimits", ["CSILimits"], id="an acronym is no row of words"),
    ],
)
def test_stacked(name, lines):
    assert output.stacked(name).split("\n") == lines


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "term", "delay_seconds", "appears"),
    [
        pytest.param(Terminal, "xterm", 0, True, id="a terminal"),
        pytest.param(Terminal, "dumb", 0, False, id="a terminal that cannot draw"),
        pytest.param(Terminal, "xterm", 60, False, id="work that is done in a moment"),
        pytest.param(io.StringIO, "xterm", 0, False, id="a file"),
    ],
)
@pytest.mark.parametrize("kind", [ProgressBar, StatusLine])
def test_progress(monkeypatch, stream, term, delay_seconds, appears, kind):
    written = stream()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setattr(progress, "DELAY_SECONDS", delay_seconds)
    monkeypatch.setenv("TERM", term)
    with kind("scheduling") as display:
        for number in (1, 3):
            if kind is ProgressBar:
                display.update(number, 3)
            else:
                display.say(f"{number}/3")
    assert ("3/3" in written.getvalue()) is appears
    assert bool(written.getvalue()) is appears
