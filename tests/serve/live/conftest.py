"""`moorage serve` as a separate process, and kubectl."""

import contextlib
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

MOORAGE = Path(sys.executable).parent / "moorage"
TIMEOUT_SECONDS = 120.0


class Served:
    """A running server."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        arguments = ["serve", "--port", "0", "--kubeconfig-out", str(self.kubeconfig), *options]
        with (folder / "stderr.txt").open("ab") as stderr:
            self.process = subprocess.Popen(
                [MOORAGE, *arguments],
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        self.greeting = ""
        for line in self.process.stdout:
            self.greeting += line
            if line.startswith("Ctrl-C"):
                break
        if "Ctrl-C" not in self.greeting:
            self.stop()
        assert "Ctrl-C" in self.greeting, self.stderr()
        self.url = re.search(r"https?://\S+", self.greeting)[0]

    def stderr(self) -> str:
        return (self.folder / "stderr.txt").read_text()

    def stop(self, number: int = signal.SIGINT) -> int:
        """Stop it by a signal; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(timeout=TIMEOUT_SECONDS)
        self.process.stdout.close()
        return code

    def kill(self) -> None:
        """Kill it without a clean shutdown."""
        self.process.kill()
        self.process.wait(timeout=TIMEOUT_SECONDS)
        self.process.stdout.close()

    # kubectl

    def start_kubectl(self, *arguments: str, **options) -> subprocess.Popen:
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig), "HOME": str(self.folder)}
        return subprocess.Popen(
            [shutil.which("kubectl"), *arguments],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **options,
        )

    def kubectl(self, *arguments: str, code: int | None = 0, manifest=None) -> str:
        """Run a command; objects go to its standard input as one list."""
        process = self.start_kubectl(*arguments, stdin=subprocess.PIPE)
        text = None
        if manifest is not None:
            items = manifest if isinstance(manifest, list) else [manifest]
            text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        printed, _ = process.communicate(text, timeout=TIMEOUT_SECONDS)
        assert code is None or process.returncode == code, f"kubectl {arguments}: {printed}"
        return printed

    def json(self, *arguments: str):
        return json.loads(self.kubectl(*arguments, "-o", "json"))


@contextlib.contextmanager
def running(folder: Path, *options: str):
    server = Served(folder, *options)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()
    assert server.stderr() == ""


def until(what, seconds: float = TIMEOUT_SECONDS):
    """Call `what` until its result is true; returns the result."""
    end = time.monotonic() + seconds
    while not (result := what()):
        assert time.monotonic() < end, "timed out"
        time.sleep(0.1)
    return result


@pytest.fixture(name="until", scope="session")
def until_fixture():
    return until


@pytest.fixture
def serving(tmp_path):
    """Starts servers on a temporary folder; they are stopped or killed at the end."""
    return functools.partial(running, tmp_path)


@pytest.fixture(scope="session")
def kubectl_is_there():
    """Skip without kubectl; `make test` installs it where it can."""
    if shutil.which("kubectl") is None:
        reason = (
            "NO KUBECTL: the tests with the real kubectl DID NOT RUN. Install it, on Debian with "
            "`apt-get install kubernetes-client`; `make test` does so as root."
        )
        pytest.skip(reason)


@pytest.fixture(scope="module")
def server(tmp_path_factory, kubectl_is_there):
    with running(tmp_path_factory.mktemp("served"), "--nodes", "4") as started:
        yield started
