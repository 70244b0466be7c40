"""The page of `serve` follows the cluster."""

import json
import urllib.request

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait
from tests.ui.builders import HOSTILE, make_node, make_pod
from tests.ui.conftest import Page

from moorage.serve.rest.app import make_app
from moorage.serve.server import open_api
from moorage.ui import server


@pytest.fixture
def page(monkeypatch):
    for name in ("AGE_PER_BUILD_SECOND", "MIN_AGE_SECONDS"):
        monkeypatch.setattr(server, name, 0.0)
    monkeypatch.setattr(server, "EVENT_SECONDS", 0.05)
    found = Page(make_app(open_api(None)))
    yield found
    found.close()


def post(page, path, obj):
    request = urllib.request.Request(
        f"{page.url}/api/v1/{path}", json.dumps(obj).encode(), {"Content-Type": "application/json"}
    )
    urllib.request.urlopen(request).close()


def test_new_objects_appear(chromium, page):
    def wait_for(element, text):
        shown = chromium.find_element(By.ID, element)
        WebDriverWait(chromium, 60, 0.05).until(lambda _: text in shown.text)

    post(page, "nodes", make_node("node-1"))
    chromium.get(f"{page.url}/ui")
    wait_for("totals", "1 nodes · 0 pods on nodes · 0 pending")
    wait_for("panel", "No pod is pending")
    pod = make_pod("web", nodeSelector={"disk": "nvme"}, schedulingGates=[{"name": "a/b"}])
    pod["metadata"]["annotations"] = {"text": HOSTILE}
    post(page, "namespaces/default/pods", pod)
    wait_for("totals", "1 pending")
    wait_for("panel", "waiting for scheduling gates")
    chromium.get("about:blank")
    assert chromium.get_log("browser") == []
