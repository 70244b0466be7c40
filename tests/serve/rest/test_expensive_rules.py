"""Rules in CEL that take long: other clients are answered meanwhile, and the answer is the same."""

import threading
import time

import pytest

NUMBERS = {"type": "array", "maxItems": 300, "items": {"type": "integer"}}
# Each rule costs a little less than an API server allows, and finds a wrong pair at the end only.
RULES = [
    {"rule": f"self.all(x, self.all(y, x + y + {number} > -600))", "message": f"rule {number}"}
    for number in range(5)
]
PATH = "/apis/example.com/v1/namespaces/default/tables"


@pytest.fixture
def server(serve):
    server = serve()
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"numbers": NUMBERS | {"x-kubernetes-validations": RULES}},
            }
        },
    }
    names = {"plural": "tables", "singular": "table", "kind": "Table", "listKind": "TableList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "tables.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    answer = server.post(path, definition)
    assert answer.status == 201, answer.body
    return server


def table(*, count=300, last=1, **meta):
    numbers = [*range(count - 1), last]
    given = {"apiVersion": "example.com/v1", "kind": "Table", "metadata": meta}
    return {**given, "spec": {"numbers": numbers}}


def test_other_requests_are_answered_meanwhile(server):
    answers, waits = [], []
    writing = threading.Thread(target=lambda: answers.append(server.post(PATH, table(name="big"))))
    began = time.perf_counter()
    writing.start()
    while writing.is_alive():
        asked = time.perf_counter()
        assert server.get("/api/v1/namespaces/default").status == 200
        waits.append(time.perf_counter() - asked)
    writing.join()
    took = time.perf_counter() - began
    assert answers[0].status == 201
    # On a slow machine fewer are answered, but none waits until the rules have been evaluated.
    assert len(waits) > 2
    assert max(waits) < took / 2


def test_the_answer_is_that_of_cheap_rules(server):
    refused = server.post(PATH, table(name="big", last=-400))
    cheap = server.post(PATH, table(name="big", count=2, last=-400))
    assert refused.status == cheap.status == 422
    causes = [each["message"] for each in refused.json["details"]["causes"]]
    assert causes == [each["message"] for each in cheap.json["details"]["causes"]]
    assert causes == [f"Invalid value: rule {number}" for number in range(5)]


def test_a_generated_name_is_kept(server):
    made = server.post(PATH, table(generateName="big-"))
    assert made.status == 201
    assert made.json["metadata"]["name"].startswith("big-")


def test_updates_and_patches(server):
    server.post(PATH, table(name="a", count=2))
    assert server.put(f"{PATH}/a", _current(server) | {"spec": table()["spec"]}).status == 200
    change = {"spec": table(last=-400)["spec"], "unknown": 1}
    patched = server.patch(f"{PATH}/a", change, "application/merge-patch+json")
    assert patched.status == 422
    assert "rule 4" in patched.json["message"]
    fine = {"spec": table(last=2)["spec"], "unknown": 1}
    patched = server.patch(f"{PATH}/a", fine, "application/merge-patch+json")
    assert patched.status == 200
    assert len(patched.headers.get_all("Warning")) == 1


def _current(server):
    return server.get(f"{PATH}/a").json
