"""Snapshots of clusters, and their pages in Chromium."""

import asyncio
import shutil
import threading

import pytest
from aiohttp import web
from tests.ui.builders import HOSTILE, cluster, hostile_cluster, record

from moorage.planning import recording
from moorage.ui import server
from moorage.ui.snapshot import ClusterSnapshot
from moorage.ui.timeline import Timeline

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


class Page:
    """A UI server in a thread."""

    def __init__(self, app):
        self._app = app
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._thread.start()
        assert self._ready.wait(30)

    async def _run(self):
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        runner = web.AppRunner(self._app, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    def close(self):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)


@pytest.fixture(scope="session")
def snapshots():
    """Snapshots by their number of nodes, made once."""
    return {count: ClusterSnapshot(cluster(count), title=HOSTILE) for count in (20, 5000)}


@pytest.fixture(scope="session")
def pages(snapshots, tmp_path_factory):
    """The page of each snapshot, and of a recording."""
    shown = snapshots | {"hostile": ClusterSnapshot(hostile_cluster(), title=HOSTILE)}
    found = {
        name: Page(server.local_app(server.FixedSource(snapshot)))
        for name, snapshot in shown.items()
    }
    path = tmp_path_factory.mktemp("recording") / "run.jsonl"
    record(path)
    timeline = Timeline(recording.read(path), title=HOSTILE)
    found["recording"] = Page(server.local_app(server.RecordedSource(timeline)))
    yield found
    for page in found.values():
        page.close()


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    if not (CHROMIUM and DRIVER):
        pytest.skip("NOT TESTED: no chromium and chromedriver here; `make browser` installs them")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()
