"""What the start from a dump costs: CPU time and memory of `moorage simulate DUMP.json`.

    .venv/bin/python tools/start_cost.py --nodes 5000 --pods 150000
    .venv/bin/python tools/start_cost.py --like snapshot --compare COMMIT

All pods run on nodes, so nothing is scheduled. The dump has every field that kube-apiserver shows,
indented as `kubectl get nodes,pods -A -o json` prints it, or on one line (compact), or it has the
fields that `moorage snapshot` writes. CPU time is user and system time of the whole process, from
the start of Python to its exit.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from compare_commits import RUN, in_turn
from served_documents import node_document, running_document

from moorage.api import manifests
from moorage.errors import InputError

Document = dict[str, Any]


def as_kubectl(document: Document) -> bytes:
    return json.dumps(document, indent=4).replace("\n", "\n        ").encode()


def as_compact(document: Document) -> bytes:
    return msgspec.json.encode(document)


def as_snapshot(document: Document) -> bytes:
    [obj] = manifests.from_dicts([document])
    return msgspec.json.format(msgspec.json.encode(manifests.dump(obj)), indent=1)


FORMS: dict[str, Callable[[Document], bytes]] = {
    "kubectl": as_kubectl,
    "compact": as_compact,
    "snapshot": as_snapshot,
}


def documents(nodes: int, pods: int) -> Iterator[Document]:
    for i in range(nodes):
        document = node_document(i)
        del document["metadata"]["managedFields"]
        yield document
    for i in range(pods):
        yield running_document(i, f"node-{i % nodes}")


def write(file: Path, like: str, nodes: int, pods: int) -> None:
    form = FORMS[like]
    with file.open("wb") as dump:
        dump.write(b'{"apiVersion": "v1", "kind": "List", "items": [')
        for i, document in enumerate(documents(nodes, pods)):
            dump.write((b",\n" if i else b"\n") + form(document))
        dump.write(b"]}\n")


def measure(source: Path, dump: Path) -> tuple[float, float, float]:
    """Seconds of CPU time, seconds of wall-clock time and MB of `moorage simulate`."""
    # Bytecode beside the dump: without any, each run would compile its sources.
    bytecode = str(dump.parent / "bytecode")
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-c", RUN, "simulate", str(dump)],
        env=environment,
        stdout=subprocess.DEVNULL,
    ) as run:
        _, status, usage = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
    if run.returncode:
        raise InputError(f"moorage simulate {dump} ended with exit code {run.returncode}")
    lasted = time.monotonic() - began
    return usage.ru_utime + usage.ru_stime, lasted, usage.ru_maxrss / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--like", choices=sorted(FORMS), default="kubectl")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--compare", metavar="COMMIT")
    arguments = parser.parse_args()
    for name in ("nodes", "pods", "repeat"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name} is {getattr(arguments, name)}; it has to be 1 or more")
    with tempfile.TemporaryDirectory() as work:
        small, dump = Path(work, "small.json"), Path(work, "dump.json")
        write(small, arguments.like, 1, 1)
        write(dump, arguments.like, arguments.nodes, arguments.pods)
        print(f"{dump.stat().st_size / 1e6:.0f} MB, as of {arguments.like}", flush=True)

        def measured(name: str, source: Path) -> float:
            measure(source, small)  # Compiles the sources.
            cpu, lasted, memory = measure(source, dump)
            print(f"{name}: {cpu:.2f} s of CPU time, {lasted:.2f} s, {memory:.0f} MB", flush=True)
            return cpu

        in_turn(arguments.compare, arguments.repeat, measured)


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        print(f"start_cost.py: {error}", file=sys.stderr)
        sys.exit(2)
