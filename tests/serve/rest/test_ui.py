"""The web UI of `serve`: snapshots follow the store; a token protects all but the page."""

import http.client

from moorage.core.journal import Bound, Decided
from moorage.core.scheduler import Scheduler
from moorage.serve.rest.app import AppSettings
from moorage.ui import server as ui_server
from moorage.ui.documents import GONE

NODE = {
    "metadata": {"name": "node-1"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
}


def test_snapshots_follow_the_store(server, make_pod, monkeypatch):
    monkeypatch.setattr(ui_server, "MIN_AGE_SECONDS", 0.0)
    monkeypatch.setattr(ui_server, "AGE_PER_BUILD_SECOND", 0.0)
    assert "<title>Moorage</title>" in server.get("/ui").body.decode()
    assert server.get("/ui/api/cluster").json["nodes"] == 0
    server.post("/api/v1/nodes", NODE)
    server.post("/api/v1/namespaces/default/pods", make_pod("big", priority=None))
    found = server.get("/ui/api/cluster").json
    assert (found["nodes"], found["pending"]) == (1, 1)
    pod = server.get("/ui/api/pods/default/big").json
    assert pod["picked"] == "node-1"
    server.delete("/api/v1/namespaces/default/pods/big?gracePeriodSeconds=0")
    assert server.get("/ui/api/cluster").json["pending"] == 0
    gone = server.get("/ui/api/pods/default/big")
    assert (gone.status, gone.json["gone"], gone.json["headline"]) == (200, True, GONE)


def test_activity_and_history_of_the_scheduler(serve, make_pod):
    scheduler = Scheduler()
    scheduler.journal.add(Bound(at=1.0, pod="default/other", uid="other", node="node-1"))
    server = serve(settings=AppSettings(scheduler=scheduler))
    assert sum(server.get("/ui/api/activity").json["bound"]) == 1
    made = server.post("/api/v1/namespaces/default/pods", make_pod("web", priority=None)).json
    uid = made["metadata"]["uid"]
    scheduler.journal.add(Bound(at=2.0, pod="default/web", uid=uid, node="node-1"))
    server.get("/ui/api/cluster")
    lines = server.get("/ui/api/history?pod=default/web").json["lines"]
    assert lines == [{"at": 2.0, "what": "bound", "text": "node-1"}]
    assert server.get("/ui/api/history?pod=default/x").json == {"lines": []}
    scheduler.journal.add(Decided(at=3.0, pod="a/b", uid="b", node="node-1", nodes=2, feasible=1))
    (line,) = server.get("/ui/api/history?node=node-1").json["lines"]
    assert (line["pod"], line["what"]) == ("a/b", "node selected")


def test_events_have_the_version_of_the_next_answer(server):
    version = server.get("/ui/api/cluster").json["version"]
    stream = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    stream.request("GET", "/ui/api/events")
    response = stream.getresponse()
    assert response.headers["Content-Type"] == "text/event-stream"
    assert response.readline() == b'data: {"version": %d}\n' % version
    response.close()
    stream.close()


def test_a_token_protects_the_data(serve):
    server = serve(settings=AppSettings(token="a secret of mine"))
    assert server.get("/ui").status == 200
    assert server.get("/ui/static/main.js").status == 200
    assert server.get("/ui/api/cluster").status == 401
    allowed = server.get("/ui/api/cluster", Authorization="Bearer a secret of mine")
    assert allowed.status == 200
