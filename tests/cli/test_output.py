"""What commands print with."""

import io
import sys

import pytest

from moorage.cli import output, progress
from moorage.cli.progress import ProgressBar


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
    ("stream", "delay_seconds", "appears"),
    [
        pytest.param(Terminal, 0, True, id="a terminal"),
        pytest.param(Terminal, 60, False, id="work that is done in a moment"),
        pytest.param(io.StringIO, 0, False, id="a file"),
    ],
)
def test_progress(monkeypatch, stream, delay_seconds, appears):
    written = stream()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setattr(progress, "DELAY_SECONDS", delay_seconds)
    monkeypatch.setenv("TERM", "xterm")
    with ProgressBar("scheduling") as bar:
        bar.update(1, 3)
        bar.update(3, 3)
    assert ("3/3" in written.getvalue()) is appears
