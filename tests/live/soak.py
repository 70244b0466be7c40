"""The cost of a scheduler: CPU time per pod, and memory while a cluster changes.

python tests/live/soak.py cost --nodes 1000 --pods 5000
python tests/live/soak.py backlog --nodes 300 --pods 2000
python tests/live/soak.py behind --unschedulable 20000 --pods 1000 --qps 50 --per-second 40
python tests/live/soak.py churn --minutes 30 --per-second 50
"""

import argparse
import itertools
import json
import random
import signal
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from world import World, until


def fill(world, nodes):
    for i in range(nodes):
        labels = {"kubernetes.io/hostname": f"node-{i}", "topology.kubernetes.io/zone": f"z{i % 3}"}
        world.create_node(f"node-{i}", cpu="64", memory="256Gi", pods="250", labels=labels)


def cost(world, nodes, pods, *flags):
    """Milliseconds of CPU per pod, from its first byte to its binding, and pods per second."""
    fill(world, nodes)
    scheduler = world.run(*flags)
    world.create_pod("first", "10m")
    until(lambda: "first" in world.bound(), 60)
    bound_at = watch_bound(world.address)
    before, began = scheduler.cpu_seconds(), time.monotonic()
    halves = [
        threading.Thread(target=create, args=(world, range(half, pods, 2))) for half in (0, 1)
    ]
    for each in halves:
        each.start()
    for each in halves:
        each.join()
    until(lambda: len(bound_at) == pods, 300)
    seconds = time.monotonic() - began
    time.sleep(2)  # Events are still being written; they are a part of the cost.
    return 1000 * (scheduler.cpu_seconds() - before) / pods, pods / seconds


def backlog(world, nodes, pods):
    """The same for pods that exist when the scheduler starts, so that nothing else runs."""
    fill(world, nodes)
    scheduler = world.run("--leader-elect=false")
    world.create_pod("first", "10m")
    until(lambda: "first" in world.bound(), 60)
    scheduler.signal(signal.SIGSTOP)
    create(world, range(pods))
    bound_at = watch_bound(world.address)
    before, began = scheduler.cpu_seconds(), time.monotonic()
    scheduler.signal(signal.SIGCONT)
    until(lambda: len(bound_at) == pods, 300)
    seconds = time.monotonic() - began
    time.sleep(2)  # Events, as above.
    return 1000 * (scheduler.cpu_seconds() - before) / pods, pods / seconds


def behind(world, unschedulable, pods, *, qps=-1.0, per_second=0.0, pause=0.0, seconds=300.0):
    """Seconds from creation to binding of pods created behind others that fit nowhere; CPU time."""
    fill(world, 100)
    scheduler = world.run("--leader-elect=false", f"--kube-api-qps={qps}")
    world.create_pod("first", "10m")
    until(lambda: "first" in world.bound(), 60)
    scheduler.signal(signal.SIGSTOP)  # Else many are patched before the last one is created.
    for i in range(unschedulable):
        world.create_pod(f"large-{i}", "1000")
    created_at, bound_at = {}, watch_bound(world.address)
    scheduler.signal(signal.SIGCONT)
    time.sleep(pause)  # To decide on those that fit nowhere takes a few seconds by itself.
    cpu_seconds, began = scheduler.cpu_seconds(), time.monotonic()
    for i in range(pods):
        if per_second:
            time.sleep(max(began + i / per_second - time.monotonic(), 0))
        created_at[f"pod-{i}"] = time.monotonic()
        world.create_pod(f"pod-{i}", "10m", "10Mi")
    ends_at = time.monotonic() + seconds
    while created_at.keys() - bound_at.keys() and time.monotonic() < ends_at:
        time.sleep(0.1)
    waits = sorted(bound_at[name] - at for name, at in created_at.items() if name in bound_at)
    return waits, scheduler.cpu_seconds() - cpu_seconds


def watch_bound(address):
    """When each pod gets its node from now on, as a dict that grows.

    A list of all pods in every step costs the API server time that it then lacks for bindings:
    72 ms of CPU time for 2,000 pods.
    """
    only_bound = "fieldSelector=spec.nodeName!="
    with urllib.request.urlopen(f"{address}/api/v1/pods?{only_bound}") as listed:
        pods = json.load(listed)
    before = {pod["metadata"]["name"] for pod in pods["items"]}
    version = pods["metadata"]["resourceVersion"]
    path = f"/api/v1/pods?watch=true&timeoutSeconds=3600&resourceVersion={version}&{only_bound}"
    bound_at = {}

    def read():
        with urllib.request.urlopen(address + path, timeout=3600) as lines:
            for line in lines:
                name = json.loads(line)["object"]["metadata"].get("name")  # Bookmarks have none.
                if name is not None and name not in before:
                    bound_at.setdefault(name, time.monotonic())

    threading.Thread(target=read, daemon=True).start()
    return bound_at


def create(world, numbers):
    for i in numbers:
        world.create_pod(f"pod-{i}", "10m", "10Mi")


class Churn:
    """A cluster in which something changes all the time."""

    def __init__(self, world, nodes=50, pods=400, seed=0):
        self.world = world
        self.nodes = nodes
        self.most = pods
        self.names = itertools.count()
        self.pods = []
        self.cordoned = set()
        self.random = random.Random(seed)
        fill(world, nodes)

    def change(self):
        what = self.random.choice(("create", "create", "delete", "delete", "relabel", "cordon"))
        if what == "create" or (what == "delete" and len(self.pods) < self.most // 2):
            name = f"pod-{next(self.names)}"
            self.world.create_pod(name, "100m", "50Mi")
            self.pods.append(name)
        elif what == "delete" or len(self.pods) > self.most:
            gone = self.pods.pop(self.random.randrange(len(self.pods)))
            self.world.delete_pod(gone)
        else:
            self.patch(f"node-{self.random.randrange(self.nodes)}", what)

    def patch(self, node, what):
        path = f"/api/v1/nodes/{node}"
        if what == "relabel":
            change = {"metadata": {"labels": {"tier": str(self.random.randrange(100))}}}
        else:
            self.cordoned ^= {node}
            change = {"spec": {"unschedulable": node in self.cordoned or None}}
        self.world.call("PATCH", path, change)

    def go_on(self, seconds, per_second):
        began = time.monotonic()
        for i in itertools.count(1):
            self.change()
            ahead = began + i / per_second - time.monotonic()
            if ahead > 0:
                time.sleep(ahead)
            if time.monotonic() - began >= seconds:
                return i


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("cost", "backlog"):
        costs = commands.add_parser(name)
        costs.add_argument("--nodes", type=int, default=1000)
        costs.add_argument("--pods", type=int, default=5000)
    behinds = commands.add_parser("behind")
    behinds.add_argument("--unschedulable", type=int, default=20_000)
    behinds.add_argument("--pods", type=int, default=1000)
    behinds.add_argument("--qps", type=float, default=-1.0)
    behinds.add_argument("--per-second", type=float, default=0.0)
    behinds.add_argument("--pause", type=float, default=0.0)
    churns = commands.add_parser("churn")
    churns.add_argument("--minutes", type=float, default=30)
    churns.add_argument("--per-second", type=float, default=50)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        try:
            if arguments.command == "behind":
                report_behind(world, arguments)
            elif arguments.command != "churn":
                measure = cost if arguments.command == "cost" else backlog
                ms, rate = measure(world, arguments.nodes, arguments.pods)
                say(f"{ms:.3f} ms of CPU per pod, {rate:.0f} pods/s")
            else:
                report_churn(world, arguments.minutes, arguments.per_second)
        finally:
            world.close()


def report_behind(world, arguments):
    pace = {name: getattr(arguments, name) for name in ("qps", "per_second", "pause")}
    waits, cpu_seconds = behind(world, arguments.unschedulable, arguments.pods, **pace)
    say(f"{len(waits)} of {arguments.pods} bound, {cpu_seconds:.1f} s CPU until then")
    if waits:
        median, p99 = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
        say(f"median {median:.2f} s, p99 {p99:.2f} s, longest {waits[-1]:.2f} s")


def report_churn(world, minutes, per_second):
    churn = Churn(world)
    scheduler = world.run()
    until(lambda: scheduler.said("scheduling"), 60)
    changes = 0
    for minute in range(1, round(minutes) + 1):
        changes += churn.go_on(60, per_second)
        mib = scheduler.resident_bytes() / 2**20
        say(
            f"{minute:3} min: {changes} changes, {mib:.1f} MiB, {scheduler.cpu_seconds():.1f} s CPU"
        )
    until(lambda: len(world.bound()) == len(churn.pods), 60)
    world.check_room()


def say(text):
    print(text, flush=True)  # noqa: T201  # the result


if __name__ == "__main__":
    main()
