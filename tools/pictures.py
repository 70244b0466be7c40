"""The pictures of the documentation, made from the real program: `make pictures`.

Pictures of a terminal are SVG: the output of a command with its colours, drawn by rich. Pictures of
the report and of the web UI are screenshots of Chromium, as WebP. None may exceed MOST_BYTES.
"""

import base64
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import batch_pictures
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from moorage import Simulation
from moorage.api import manifests

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "pictures"
MOST_BYTES = 150_000
COLUMNS = 100
WIDTH = 1100
QUALITY = 80

PLANNING = "examples/planning"
TERMINAL = {
    "terminal-simulate": "moorage simulate examples/demo",
    "terminal-explain": "moorage explain analytics/quarterly-report-0 -f examples/demo",
    "terminal-capacity": f"moorage simulate capacity -f {PLANNING}/cluster.yaml "
    f"--pod {PLANNING}/worker.yaml --pod {PLANNING}/cache.yaml",
    "terminal-add-nodes": f"moorage simulate add-nodes -f {PLANNING}/cluster.yaml "
    f"-f {PLANNING}/batch.yaml --template {PLANNING}/new-nodes.yaml "
    f"--prices {PLANNING}/prices.yaml",
}
REPORTS = {
    "report-scenario": "moorage simulate scenario examples/scenarios/day.yaml",
    "report-simulate": "moorage simulate examples/demo",
}
UI_IS_READY = "return document.body.dataset.started === 'yes'"
PHONE_WIDTH = 390


def run(command: str, **more: str) -> str:
    """What a command prints."""
    return subprocess.run(
        shlex.split(command),
        cwd=ROOT,
        env=environment(**more),
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def environment(**more: str) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "COLUMNS": str(COLUMNS), **more}


def terminal(command: str) -> str:
    """The output of a command as SVG, without fonts from other servers."""
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere)
        console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
        console.print()
        console.print(Text.from_ansi(run(command, FORCE_COLOR="1", TERM="xterm-256color")))
        svg = console.export_svg(title="moorage", theme=MONOKAI, unique_id="moorage")
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless browser."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    with tempfile.TemporaryDirectory() as folder:
        flags = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
        for flag in (*flags, f"--user-data-dir={folder}"):
            options.add_argument(flag)
        driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
        yield driver
        driver.quit()


def screenshot(
    driver: Any,
    url: str,
    height: int,
    is_ready: str = "return true",
    *,
    width: int = WIDTH,
    scheme: str = "light",
    medium: str = "screen",
) -> bytes:
    """A page as WebP, as soon as a script returns true."""
    from selenium.webdriver.support.wait import WebDriverWait

    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < WIDTH}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    media = {"media": medium, "features": features}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    driver.get("about:blank")
    driver.get(url)
    WebDriverWait(driver, 60).until(lambda page: page.execute_script(is_ready))
    shot = {"format": "webp", "quality": QUALITY}
    return base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", shot)["data"])


def reports(driver: Any) -> Iterator[tuple[str, bytes]]:
    """The reports of simulations."""
    with tempfile.TemporaryDirectory() as folder:
        for name, command in REPORTS.items():
            file = Path(folder, f"{name}.html")
            run(f"{command} --report {file}")
            yield name, screenshot(driver, file.as_uri(), 820)


def views(driver: Any) -> Iterator[tuple[str, bytes]]:
    """The web UI: many nodes, a what-if, a pod, also on a phone and on paper, a recording."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "cluster.json").write_text(json.dumps(large_cluster()), encoding="utf-8")
        with served(Path(folder), "cluster.json") as address:
            yield "ui-map", screenshot(driver, address, 620, UI_IS_READY)
        run(f"moorage simulate scenario examples/scenarios/day.yaml --record {folder}/day.jsonl.gz")
        with served(Path(folder), "day.jsonl.gz") as address:
            yield "ui-time", screenshot(driver, f"{address}#at=51000", 520, UI_IS_READY)
    with served(ROOT, "examples/demo") as address:
        pod = f"{address}#pod=analytics/quarterly-report-0"
        yield "ui-pod", screenshot(driver, pod, 760, UI_IS_READY)
        narrow = {"width": PHONE_WIDTH, "scheme": "dark"}
        yield "ui-phone", screenshot(driver, pod, 800, UI_IS_READY, **narrow)
        yield "ui-print", screenshot(driver, pod, 1100, UI_IS_READY, width=800, medium="print")
    with served(ROOT, f"{PLANNING}/cluster.yaml") as address:
        changes = urllib.parse.quote("remove=general-1&add=memory-0:2&pods=shop/debug:40")
        yield "ui-what-if", screenshot(driver, f"{address}#what={changes}", 620, UI_IS_READY)


@contextmanager
def served(folder: Path, path: str) -> Iterator[str]:
    """The address of a web UI."""
    command = ["moorage", "ui", path, "--no-browser", "--validate", "ignore"]
    env = environment(PYTHONUNBUFFERED="1")
    with subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True) as ui:
        assert ui.stdout is not None
        try:
            found = re.search(r"http://\S+", ui.stdout.readline())
            assert found is not None
            yield found[0]
        finally:
            ui.terminate()


def large_cluster() -> dict[str, Any]:
    """A thousand nodes with pods on them, as `kubectl get -o json` would print them."""
    chance = random.Random(1)
    objects: list[dict[str, Any]] = [
        {
            "apiVersion": "moorage.dev/v1",
            "kind": "NodePool",
            "metadata": {"name": name},
            "spec": {
                "count": count,
                "zones": ["eu-1a", "eu-1b", "eu-1c"],
                "template": {"status": {"allocatable": {"cpu": cpu, "memory": memory}}},
            },
        }
        for name, count, cpu, memory in (
            ("general", 700, "16", "64Gi"),
            ("memory", 200, "16", "128Gi"),
            ("large", 100, "64", "256Gi"),
        )
    ]
    objects += [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": f"service-{number}"},
            "spec": {
                "replicas": chance.randint(20, 90),
                "selector": {"matchLabels": {"app": f"service-{number}"}},
                "template": {
                    "metadata": {"labels": {"app": f"service-{number}"}},
                    "spec": {"containers": [container(chance.choice((1, 2, 3, 6, 12)))]},
                },
            },
        }
        for number in range(40)
    ]
    simulation = Simulation(objects, PACKED)
    simulation.run(until=5)
    pending = [{"apiVersion": "v1", "kind": "Pod", **huge(number)} for number in range(3)]
    return {"kind": "List", "apiVersion": "v1", "items": [*dumped(simulation), *pending]}


def huge(number: int) -> dict[str, Any]:
    meta = {"name": f"training-{number}", "namespace": "ml"}
    return {"metadata": meta, "spec": {"containers": [container(96)]}}


def container(cpu: int) -> dict[str, Any]:
    requests = {"cpu": str(cpu), "memory": f"{3 * cpu}Gi"}
    return {"name": "c", "image": "registry.example.com/c:1", "resources": {"requests": requests}}


# Full nodes beside empty ones show more colours than nodes that are all equally full.
PACKED = str(ROOT / PLANNING / "packed.yaml")


def dumped(simulation: Simulation) -> list[dict[str, Any]]:
    return [
        manifests.dump(obj)
        for obj in manifests.read(simulation.objects).everything
        if type(obj).__name__ in ("Node", "Pod")
    ]


def write(name: str, content: bytes) -> None:
    if len(content) > MOST_BYTES:
        sys.exit(f"{name}: has {len(content):,} bytes, more than {MOST_BYTES:,}")
    (FOLDER / name).write_bytes(content)
    print(f"{len(content):>8,}  docs/pictures/{name}")


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, command in TERMINAL.items():
        write(f"{name}.svg", terminal(command).encode())
    write("batch-shares.svg", batch_pictures.svg(batch_pictures.runs()).encode())
    with chromium() as driver:
        for name, image in (*reports(driver), *views(driver)):
            write(f"{name}.webp", image)


if __name__ == "__main__":
    main()
