"""A test that hangs fails in time, and its processes end: see conftest.py and pyproject.toml."""

import contextlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import psutil
import pytest

HERE = Path(__file__).parent

HANGS = """
import asyncio, subprocess, time
from pathlib import Path

import pytest


@pytest.fixture
def child(request):
    with subprocess.Popen(["sleep", "300"], stdout=subprocess.PIPE) as process:
        Path(f"{request.node.name}.pid").write_text(str(process.pid))
        yield process


def test_a_process(child):
    child.stdout.read()


def test_an_event_loop_that_catches_the_first_exception():
    async def busy():
        while True:
            time.sleep(0.05)
            await asyncio.sleep(0)

    async def main():
        task = asyncio.create_task(busy())
        await asyncio.sleep(300)

    asyncio.run(main())


def test_a_fixture_after_a_failure(child):
    assert False


def test_it_goes_on():
    pass
"""


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_test_that_hangs_fails(tmp_path, workers):
    (tmp_path / "test_hangs.py").write_text(HANGS)
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-c", HERE.parent / "pyproject.toml"),
            *("-p", "conftest", "-p", "no:cacheprovider", "--timeout", "1", *workers, tmp_path),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(HERE)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "3 failed, 1 passed, 1 error" in ran.stdout
    assert ran.stdout.count("E       Failed: Timeout (>1.0s)") == 3
    pids = [int(file.read_text()) for file in tmp_path.glob("*.pid")]
    assert len(pids) == 2
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(pid).wait(30)


def test_every_test_has_a_limit():
    options = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["tool"]["pytest"]
    limits = options["ini_options"]
    assert 0 < limits["timeout"] < limits["faulthandler_timeout"]
    assert limits["faulthandler_exit_on_timeout"]
