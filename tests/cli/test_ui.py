"""`moorage ui`: what it says when it cannot begin, and that it ends at SIGINT."""

import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "examples/demo"
MOORAGE = [sys.executable, "-c", "from moorage.cli.main import main; main()"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param([], "Name the input: PATH or, for a live cluster", id="no input"),
        pytest.param(["nowhere.yaml"], "nowhere.yaml: no such file or folder", id="no such file"),
        pytest.param([str(DEMO / "30-shop.yaml")], "the cluster is empty", id="no node"),
    ],
)
def test_bad_input(run, monkeypatch, arguments, text):
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", "nowhere")
    got = run("ui", "--no-browser", *arguments)
    assert got.exit_code == 2
    assert text in got.stderr
    assert "Traceback" not in got.stderr


def test_a_recording_has_its_configuration(run, tmp_path):
    file = tmp_path / "run.jsonl"
    file.write_text('{"recording":1,"config":{}}')
    got = run("ui", "--no-browser", str(file), "--config", "x.yaml")
    assert got.exit_code == 2
    assert "a recording has its own configuration" in got.stderr
    got = run("ui", "--no-browser", str(file))
    assert got.exit_code == 2
    assert "Traceback" not in got.stderr
    got = run("ui", "--no-browser", str(DEMO), str(file))
    assert got.exit_code == 2
    assert (
        got.stderr == f"moorage: {file}: is a recording, and is shown alone; name no other PATH\n"
    )


def test_it_serves_until_interrupted():
    command = [*MOORAGE, "ui", str(DEMO), "--no-browser"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        url = re.search(r"http://\S+", process.stdout.readline())[0]
        with urllib.request.urlopen(url) as page:
            assert "<title>Moorage</title>" in page.read().decode()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in errors
