"""`moorage` itself: what it loads, its errors, and its exit codes."""

import gc
import os
import resource
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from moorage.cli import main
from moorage.version import __version__

MOORAGE = [sys.executable, "-c", "from moorage.cli.main import main; main()"]

LOADED = """
import sys
from moorage.cli.main import moorage
try:
    moorage(["--help"], standalone_mode=False)
finally:
    heavy = {"numpy", "rich", "yaml", "msgspec", "asyncio"}
    print("loaded:", *sorted(heavy & set(sys.modules)))
"""


def test_help_lists_the_commands(run):
    got = run("--help")
    assert got.exit_code == 0
    for command in ("explain", "simulate", "bench", "config"):
        assert f"\n  {command} " in got.stdout


@pytest.mark.parametrize("command", ["explain", "simulate", "bench", "config"])
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_of_a_command(run, command, option):
    got = run(command, option)
    assert got.exit_code == 0
    assert got.stdout.startswith(f"Usage: moorage {command} ")
    # No sentence is cut off.
    assert "..." not in got.stdout.partition("Options:")[0].replace("]...", "")


def test_help_loads_nothing_heavy():
    ran = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "loaded:"


LEAVING = """
import sys

class Leaving:
    name = "Leaving"

    def filter(self, state, pod, node):
        sys.exit(pod.name == "fits")
"""


def test_a_plugin_that_calls_sys_exit_costs_its_own_pod_only(run, cluster, write, configure):
    write("leaving.py", LEAVING)
    got = run("simulate", "-f", cluster, "--config", configure("leaving.py:Leaving"))
    assert got.exit_code == 0
    assert 'running "Leaving" filter plugin: called sys.exit(True)' in got.stdout


def test_the_location_of_sys_exit_is_named(run, monkeypatch):
    command = click.Command("explain", callback=sys.exit)
    monkeypatch.setattr(main.Commands, "get_command", lambda *_: command)
    got = run("explain")
    assert got.exit_code == 2
    assert got.stderr.startswith("moorage: ")
    assert got.stderr.endswith(
        ": sys.exit was called; a plugin has to raise an exception instead\n"
    )


def test_help_is_quick():
    before = children_cpu_seconds()
    subprocess.run([*MOORAGE, "--help"], check=True, capture_output=True)
    # It takes a tenth of a second of CPU; what a busy machine adds to that is not ours.
    assert children_cpu_seconds() - before < 1


def children_cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_version(run):
    assert run("--version").stdout == f"moorage {__version__}\n"


def test_it_is_a_module_to_run_too():
    command = [sys.executable, "-m", "moorage", "--version"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout == f"moorage {__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["nonsense"], id="unknown command"),
        pytest.param(["explain", "p"], id="missing option"),
        pytest.param(["simulate", "-f", "x", "--seed", "many"], id="not a number"),
        pytest.param(["simulate", "-f", "x", "--until", "-1"], id="out of range"),
        pytest.param(["simulate", "-f", "x", "-o", "xml"], id="unknown format"),
        pytest.param(["bench", "--nodes", "0"], id="no nodes"),
    ],
)
def test_wrong_usage(run, arguments):
    got = run(*arguments)
    assert got.exit_code == 2
    assert got.stdout == ""
    assert "Error: " in got.stderr


def test_bad_input_has_no_traceback():
    ran = subprocess.run(
        [*MOORAGE, "simulate", "-f", "nowhere.yaml"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    assert ran.stderr == "moorage: nowhere.yaml: no such file or folder\n"
    assert ran.stdout == ""


@pytest.mark.parametrize("colour", [{}, {"FORCE_COLOR": "1"}], ids=["plain", "colour"])
@pytest.mark.parametrize("arguments", [["config", "default"], ["simulate", "-f", "cluster.yaml"]])
def test_a_closed_pipe(cluster, arguments, colour):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing) as output:
        ran = subprocess.run(
            [*MOORAGE, *arguments],
            stdout=output,
            stderr=subprocess.PIPE,
            check=False,
            cwd=cluster.parent,
            env={**os.environ, **colour},
        )
    assert ran.returncode == main.BROKEN_PIPE
    assert ran.stderr == b""


@pytest.mark.parametrize(
    "arguments", ["config default", "--help", "simulate -f cluster.yaml", "explain fits -f ."]
)
def test_closed_standard_output(cluster, arguments):
    command = f"{shlex.join(MOORAGE)} {arguments} >&-"
    ran = subprocess.run(
        command, shell=True, stderr=subprocess.PIPE, text=True, check=False, cwd=cluster.parent
    )
    assert ran.returncode == 2
    assert ran.stderr == "moorage: standard output: Bad file descriptor\n"


def test_closed_standard_error(cluster):
    command = f"{shlex.join(MOORAGE)} simulate -f cluster.yaml"
    whole, without = (
        subprocess.run(
            command + more, shell=True, capture_output=True, check=False, cwd=cluster.parent
        )
        for more in ("", " 2>&-")
    )
    assert without.stdout == whole.stdout
    assert without.returncode == whole.returncode == 0


FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.is_char_device(), reason="there is no device always full")


@needs_full
@pytest.mark.parametrize("arguments", [["config", "default"], ["--version"]])
def test_a_full_disk(arguments):
    with FULL.open("wb") as output:
        ran = subprocess.run(
            [*MOORAGE, *arguments], stdout=output, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ran.returncode == 2
    assert ran.stderr == "moorage: standard output: No space left on device\n"


@needs_full
def test_a_full_disk_under_a_report(run, cluster):
    got = run("simulate", "-f", cluster, "--report", "/dev/full")
    assert got.exit_code == 2
    assert got.stderr == "moorage: /dev/full: No space left on device\n"


def test_interrupted(monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["moorage", "explain", "p", "-f", "-"])
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=SimpleNamespace(read=interrupt)))
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == main.INTERRUPTED
    assert "Traceback" not in capsys.readouterr().err


def test_objects_are_not_collected_at_exit(monkeypatch):
    """Python's last collection would take a second after a large simulation."""
    frozen = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    monkeypatch.setattr(sys, "argv", ["moorage", "--version"])
    with pytest.raises(SystemExit):
        main.main()
    assert frozen == [True]
