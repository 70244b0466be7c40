"""The report in a real browser: nothing is fetched, no script fails, all is drawn and legible.

Needs Debian's chromium and chromium-driver, which `make browser` installs where it can.
"""

import shutil
from pathlib import Path

import pytest

from moorage import Simulation
from moorage.reporting import page

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")

pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER),
    reason="NOT TESTED: no chromium and chromedriver here; `make browser` installs them",
)

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

# Texts of the picture that one sees which lie upon each other, or stick out of it by more than a
# little, as [picture, text, other].
OVERLAPS = """
const found = [];
for (const svg of document.querySelectorAll("svg.plot")) {
  const outer = svg.getBoundingClientRect();
  if (!outer.width) continue;
  const name = svg.querySelector("desc").textContent.slice(0, 40);
  const texts = [...svg.querySelectorAll("text")]
    .map((text) => [text.textContent, text.getBoundingClientRect()]);
  texts.forEach(([text, a], i) => {
    if (a.left < outer.left - 2 || a.right > outer.right + 2) found.push([name, text, "the edge"]);
    for (const [other, b] of texts.slice(i + 1)) {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 2) found.push([name, text, other]);
    }
  });
}
return found;
"""

DRAWN = """
return [...document.querySelectorAll("svg.plot")].filter((svg) => svg.getBoundingClientRect().width)
  .map((svg) => [
    svg.querySelector("desc").textContent.slice(0, 30),
    [...svg.querySelectorAll("path.line, path.area, rect.bar, image")]
      .filter((shape) => shape.getBBox().width > 0).length,
  ]);
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def show(browser, tmp_path):
    """Show a page at a width; errors of the console are read at the end."""

    def show_page(text, width=1280, *, dark=False):
        path = Path(tmp_path, "report.html")
        path.write_text(text, encoding="utf-8")
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        browser.get(path.as_uri())
        return browser

    return show_page


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 768, 390])
def test_every_plot_is_drawn_and_legible(show, report, width, dark):
    browser = show(report, width, dark=dark)
    assert browser.get_log("browser") == []
    drawn = dict(browser.execute_script(DRAWN))
    assert len(drawn) == 10
    assert all(drawn.values()), drawn
    assert browser.execute_script(OVERLAPS) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_nothing_is_fetched(show, report):
    browser = show(report)
    fetched = "return performance.getEntriesByType('resource').map((entry) => entry.name)"
    assert [name for name in browser.execute_script(fetched) if not name.startswith("data:")] == []
    assert "http" not in report.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")


def test_text_from_manifests_stays_text(show, report):
    browser = show(report)
    title = "a crowded afternoon </script><b>&"
    assert browser.title == title
    assert browser.execute_script("return document.querySelector('h1').textContent") == title


def test_figures_under_the_pointer(show, report):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    browser = show(report)
    chart = browser.find_element(By.CSS_SELECTOR, "figure svg.wide")
    ActionChains(browser).move_to_element(chart).perform()
    tooltip = browser.find_element(By.CSS_SELECTOR, "figure .tooltip")
    assert tooltip.is_displayed()
    assert "cpu" in tooltip.text
    assert browser.get_log("browser") == []


DRAWN_TILES = """
const canvas = document.querySelector(".cluster-map canvas");
const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
let drawn = 0;
for (let i = 3; i < data.length; i += 4) drawn += data[i] > 0;
return drawn;
"""


def test_the_cluster_map_over_time(show, report, crowded):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    browser = show(report)
    assert browser.execute_script(DRAWN_TILES) >= 10 * 42 * 42 * 0.9
    first, jump = browser.find_elements(By.CSS_SELECTOR, ".map-time button")
    text = browser.find_element(By.CSS_SELECTOR, ".map-time output")
    pending = crowded.result.samples[-1].pending
    assert text.text == f"06:00:00 of 06:00:00, {pending} pending"
    assert jump.text == f"Next disruption ({len(crowded.result.disruptions)})"
    jump.click()
    said = browser.find_element(By.CSS_SELECTOR, ".map-text")
    assert said.text.startswith(crowded.result.disruptions[0].pod)
    assert text.text.startswith("02:0")
    browser.find_element(By.CSS_SELECTOR, ".cluster-map canvas").send_keys(Keys.HOME)
    assert said.text.startswith("general-purpose-0: ")
    first.click()
    assert first.text == "Pause"
    first.click()
    assert browser.get_log("browser") == []


def test_on_paper(show, report):
    browser = show(report, 1280, dark=True)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    ground = "return getComputedStyle(document.body).backgroundColor"
    assert browser.execute_script(ground) == "rgb(255, 255, 255)"
    pages = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert len(pages["data"]) > 10_000


def test_a_moment_without_time(show):
    browser = show(page.render(Simulation([]).result, title="empty", seed=0), 390)
    assert browser.get_log("browser") == []
    assert "0" in browser.find_element("css selector", ".tiles").text
