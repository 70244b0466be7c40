"""The built site in Chromium: no page has an error, a broken picture, or a request to elsewhere.

`make docs` runs this. It needs mkdocs-material (`pip install '.[docs]'`) and Debian's chromium and
chromium-driver.
"""

import functools
import http.server
import importlib.util
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("material") is None,
        reason="NOT TESTED: mkdocs-material is not installed; `make docs` installs it",
    ),
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER),
        reason="NOT TESTED: no chromium and chromedriver here; `make browser` installs them",
    ),
]

BROKEN = """
return [...document.images].filter(image => !(image.complete && image.naturalWidth))
    .map(image => image.src)"""
FETCHED = "return performance.getEntriesByType('resource').map(entry => entry.name)"
OVERFLOW = """
return [...document.querySelectorAll('article img')]
    .filter(image => image.getBoundingClientRect().right > innerWidth).map(image => image.src)"""


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files without a log."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
    # Not --quiet: warnings that are not logged do not count as errors.
    subprocess.run(command, cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="module")
def address(site):
    handler = functools.partial(Handler, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    profile = tmp_path_factory.mktemp("chromium")
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync")
    for flag in (*flags, "--disable-background-networking", f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def test_every_page(site, address, browser):
    pages = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    assert len(pages) >= len(list((ROOT / "docs").glob("*.md")))
    found = {}
    for page in pages:
        browser.get(f"{address}/{page}")
        problems = [entry["message"] for entry in browser.get_log("browser")]
        problems += [f"broken picture {source}" for source in browser.execute_script(BROKEN)]
        problems += [f"picture too wide {source}" for source in browser.execute_script(OVERFLOW)]
        problems += [
            f"fetched from elsewhere {url}"
            for url in browser.execute_script(FETCHED)
            if not url.startswith((address, "data:", "blob:"))
        ]
        if problems or not browser.title:
            found[page] = problems
    assert found == {}


def test_the_search_finds_a_page(address, browser):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.wait import WebDriverWait

    browser.get(f"{address}/?q=cheapest")
    WebDriverWait(browser, 60).until(
        lambda page: "cheapest" in page.find_element(By.CSS_SELECTOR, ".md-search").text.lower()
    )
