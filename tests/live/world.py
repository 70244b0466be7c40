"""A cluster for tests: `moorage serve` in a process of its own, and a scheduler in another.

Everything that a test asks of the server goes through the Kubernetes API, so another server can
be put in this one's place: set MOORAGE_TEST_SERVER to a command that prints its address.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

from moorage.api import quantity

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent


class Process:
    """A process whose first line of output has its address in it."""

    def __init__(self, *command):
        self.popen = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self.popen.stdout.readline()
        address = re.search(r"https?://[^\s/]+", line)
        assert address, f"{command} did not start: {line}"
        self.address = address[0]

    def close(self):
        self.popen.kill()
        self.popen.wait()
        self.popen.stdout.close()


class Scheduler:
    """`moorage run` in a process of its own."""

    def __init__(self, name, kubeconfig, log, *flags):
        self.name = name
        self.log = log
        self._file = log.open("w")
        command = [BIN / "moorage", "run", "--kubeconfig", kubeconfig, "-v", "2"]
        self.popen = subprocess.Popen(
            [*command, "--kube-api-qps=-1", "--secure-port=0", *flags],
            stderr=self._file,
            stdin=subprocess.DEVNULL,
        )

    @property
    def pid(self):
        return self.popen.pid

    def said(self, text):
        """Whether it has logged this."""
        return text in self.log.read_text()

    def signal(self, number):
        self.popen.send_signal(number)

    def wait(self, seconds=60):
        """Its exit code."""
        return self.popen.wait(seconds)

    def stop(self):
        """Ask it to end; its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self):
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def close(self):
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()
        self._file.close()


class World:
    """A server, a proxy that can inject faults, and schedulers behind it."""

    def __init__(self, folder):
        self.folder = folder
        command = shlex.split(os.environ.get("MOORAGE_TEST_SERVER", "")) or [
            *(BIN / "moorage", "serve", "--nodes=0", "--port=0", "--no-scheduler"),
            *("--kubeconfig-out", folder / "served.kubeconfig"),
        ]
        self._processes = [Process(*command)]
        self.address = self._processes[0].address
        self.proxies = {}
        self.schedulers = []

    def close(self):
        for process in [*self.schedulers, *reversed(self._processes)]:
            process.close()

    # The server

    def call(self, method, path, body=None, base=None):
        merges = method == "PATCH"
        content_type = "application/merge-patch+json" if merges else "application/json"
        request = urllib.request.Request(
            (base or self.address) + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": content_type},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def create_node(self, name, cpu="4", memory="8Gi", pods="110", **meta):
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}, **meta},
            "spec": {},
            "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": pods}},
        }
        return self.call("POST", "/api/v1/nodes", node)

    def create_pod(self, name, cpu="500m", memory="100Mi", **spec):
        requests = {"cpu": cpu, "memory": memory}
        container = {"name": "main", "image": "nginx", "resources": {"requests": requests}}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"containers": [container], **spec},
        }
        return self.call("POST", "/api/v1/namespaces/default/pods", pod)

    def delete_pod(self, name):
        at_once = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
        self.call("DELETE", f"/api/v1/namespaces/default/pods/{name}", at_once)

    def pods(self):
        listed = self.call("GET", "/api/v1/pods")["items"]
        return {pod["metadata"]["name"]: pod for pod in listed}

    def nodes(self):
        return {n["metadata"]["name"]: n for n in self.call("GET", "/api/v1/nodes")["items"]}

    def lease(self, name="kube-scheduler"):
        path = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{name}"
        try:
            return self.call("GET", path)["spec"]
        except urllib.error.HTTPError:
            return {}

    def events(self):
        return self.call("GET", "/apis/events.k8s.io/v1/events")["items"]

    def bound(self):
        """Pods with their nodes."""
        return {
            name: pod["spec"]["nodeName"]
            for name, pod in self.pods().items()
            if pod["spec"].get("nodeName")
        }

    def reasons(self):
        """Pods without a node, and the message of their condition."""
        found = {}
        for name, pod in self.pods().items():
            if not pod["spec"].get("nodeName"):
                conditions = {c["type"]: c for c in pod["status"].get("conditions", ())}
                found[name] = conditions.get("PodScheduled", {}).get("message", "")
        return found

    # Trouble

    def inject_faults(self, name="", **faults):
        """Put a proxy before the server, or tell the one of that name that is there."""
        if name not in self.proxies:
            process = Process(sys.executable, str(HERE / "faulty_proxy.py"), self.address)
            self._processes.append(process)
            self.proxies[name] = process.address
        return self.call("PUT", "/faults", faults, base=self.proxies[name])

    def fault_counts(self, name=""):
        """How often each fault was injected, and the number of binding requests."""
        return self.call("GET", "/faults", base=self.proxies[name])

    # Schedulers

    def kubeconfig(self, name=""):
        """A way to the server, through the proxy of that name if there is one."""
        server = self.proxies.get(name, self.address)
        path = self.folder / f"kubeconfig{name}"
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "test",
                    "clusters": [{"name": "test", "cluster": {"server": server}}],
                    "users": [{"name": "test", "user": {}}],
                    "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
                }
            )
        )
        return path

    def configuration(self, **settings):
        """A configuration file in which failed pods are soon tried again."""
        path = self.folder / "configuration.json"
        header = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
        }
        path.write_text(json.dumps({**header, "podMaxBackoffSeconds": 1, **settings}))
        return path

    def run(self, *flags, name=""):
        """Start a scheduler, behind the proxy of that name if there is one."""
        log = self.folder / f"scheduler-{len(self.schedulers)}.log"
        flags = ("--config", self.configuration(), *flags)
        scheduler = Scheduler(name, self.kubeconfig(name), log, *flags)
        self.schedulers.append(scheduler)
        return scheduler

    # What must hold

    def check_room(self):
        """No node holds more than it can."""
        used = {}
        for pod in self.pods().values():
            if pod["spec"].get("nodeName"):
                requests = pod["spec"]["containers"][0]["resources"]["requests"]
                mine = used.setdefault(pod["spec"]["nodeName"], Counter())
                mine["cpu"] += quantity.milli(requests["cpu"])
                mine["memory"] += quantity.milli(requests["memory"])
                mine["pods"] += 1000
        for name, node in self.nodes().items():
            for resource, amount in node["status"]["allocatable"].items():
                assert used.get(name, {}).get(resource, 0) <= quantity.milli(amount), (
                    f"{name} holds too much {resource}: {used[name]}"
                )


def until(condition, seconds=60.0, step=0.05, shown=lambda: ""):
    """Wait until something holds; what it returned then. In vain, it says what is `shown`."""
    ends_at = time.monotonic() + seconds
    while True:
        if found := condition():
            return found
        assert time.monotonic() < ends_at, f"still not so after {seconds} s {shown()}"
        time.sleep(step)
