"""What an open page of the web UI costs `moorage serve`: CPU time per pod with and without it.

    .venv/bin/python tools/ui_cost.py [PAIRS]

Each run creates a Deployment, waits until its pods are ready, and deletes it. The runs alternate
(without, with, with, without, ...), so that a busy machine affects both alike. Counted is the CPU
time of the process that schedules; snapshots are made in another one.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from pictures import UI_IS_READY, chromium, environment
from selenium.webdriver.support.wait import WebDriverWait

NODES = 1_000
PODS = 1_000
PAIRS = 12
DEADLINE_SECONDS = 300.0
PAUSE_SECONDS = 0.25
# The page is open so long before pods are created, and the server idle.
SETTLE_SECONDS = 4.0
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


class Server:
    """A `moorage serve` in a process."""

    def __init__(self, process: subprocess.Popen[bytes], url: str) -> None:
        self.url = url
        self._process = process
        self._runs = 0

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def cpu_per_pod(self) -> float:
        """Milliseconds of CPU time for a pod that is created, bound and started."""
        self._runs += 1
        name = f"load-{self._runs}"
        before = self.cpu_seconds()
        self.call("POST", DEPLOYMENTS, deployment(name))
        path = f"{DEPLOYMENTS}/{name}"
        wait(lambda: self.call("GET", path).get("status", {}).get("readyReplicas", 0) == PODS)
        spent = self.cpu_seconds() - before
        self.call("DELETE", path)
        wait(lambda: not self.call("GET", "/api/v1/namespaces/default/pods?limit=1")["items"])
        return 1_000 * spent / PODS

    def call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request) as response:
            return json.load(response)


def wait(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_done():
        if time.monotonic() > deadline:
            sys.exit(f"not done after {DEADLINE_SECONDS:.0f} seconds")
        time.sleep(PAUSE_SECONDS)


def deployment(name: str) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "10m"}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    selector = {"matchLabels": {"app": name}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": PODS, "selector": selector, "template": template},
    }


@contextmanager
def serving() -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kubeconfig")
        options = ["--nodes", str(NODES), "--port", "0", "--kubeconfig-out", str(file)]
        command = ["moorage", "serve", *options]
        with subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL) as process:
            try:
                wait(lambda: file.exists() and "http://" in file.read_text())
                url = re.search(r"http://[\d.:]+", file.read_text())
                assert url is not None
                yield Server(process, url[0])
            finally:
                process.terminate()


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS
    with serving() as server, chromium() as driver:

        def run(*, is_open: bool) -> float:
            driver.get(f"{server.url}/ui" if is_open else "about:blank")
            if is_open:
                WebDriverWait(driver, 60).until(lambda page: page.execute_script(UI_IS_READY))
            time.sleep(SETTLE_SECONDS)
            return server.cpu_per_pod()

        for is_open in (False, True):  # The first runs are slower.
            run(is_open=is_open)
        ratios = []
        for pair in range(pairs):
            order = (False, True) if pair % 2 == 0 else (True, False)
            found = {is_open: run(is_open=is_open) for is_open in order}
            ratios.append(found[False] / found[True])
            print(f"{found[False]:.2f} ms without, {found[True]:.2f} ms with: {ratios[-1]:.3f}")
    print(f"median of {pairs} pairs: {median(ratios):.3f} ({min(ratios):.3f}-{max(ratios):.3f})")


if __name__ == "__main__":
    main()
