"""Objects are accepted or refused as kube-apiserver does it, field by field."""

import re
from random import Random

import pytest
from tests.api.validation import table

from moorage.api import validation
from moorage.cluster.api_server import ApiServer
from moorage.cluster.resources import BUILT_IN
from moorage.cluster.status_errors import StatusError
from moorage.cluster.store import Store

CREATED, UPDATED = table.created(), table.updated()
ADMITTED, ADMISSION_ANSWERS = table.admitted(), table.answers(table.ADMISSION_ANSWERS)
ANSWERS, UPDATE_ANSWERS = table.answers(table.ANSWERS), table.answers(table.UPDATE_ANSWERS)
SERVED = {each.kind for each in BUILT_IN}
# The feature gate TaintTolerationComparisonOperators is off in the server that answered.
DIFFERENT = {"Pod: toleration Gt"}
# Values of these fields are shown as Kubernetes' internal types, or were generated.
OTHER_VALUE = {
    "Pod: generateName in upper case",
    "PersistentVolume: capacity of cpu",
    "Job: selector without manual",
}


def served(names):
    return [name for name in names if name.partition(":")[0] in SERVED and name not in DIFFERENT]


def new_api():
    store = Store(clock=lambda: "2026-01-01T00:00:00Z", uid=lambda: "uid")
    return ApiServer(store, now=lambda: 0.0, random=Random(0))


@pytest.fixture(scope="module")
def api():
    return new_api()


def answer(request, accepted):
    try:
        request()
    except StatusError as error:
        status = error.to_status()
        return {**status, "causes": status.get("details", {}).get("causes", [])}
    return {"code": accepted}


def fields(found):
    causes = found.get("causes", ())
    return [found["code"], *((each.get("field", ""), each["reason"]) for each in causes)]


@pytest.mark.parametrize("name", served(CREATED))
def test_create(api, name):
    obj, expected = CREATED[name], ANSWERS[name]
    got = answer(lambda: api.create(api.resource_of(obj), obj, dry_run=True), 201)
    assert fields(got) == fields(expected)
    if name not in OTHER_VALUE:
        assert got.get("message") == expected.get("message")


@pytest.mark.parametrize("name", [name for name in served(CREATED) if ANSWERS[name]["code"] != 403])
def test_of_files(name):
    """Without defaults and admission, the same objects are refused."""
    obj = CREATED[name]
    if "generateName" in obj["metadata"]:
        obj = table.changed(obj, {"metadata/name": obj["metadata"]["generateName"] + "x"})
    errors = [*validation.validate(obj["kind"], obj)]
    for path, amounts in validation.quantities(obj["kind"], obj):
        errors += validation.readable(amounts, path)
    expected = ANSWERS[name]
    if name not in ("Job: name too long",):  # By a label that is generated from it.
        assert bool(errors) == (expected["code"] != 201)
    if expected["code"] == 422:
        known = {(each["field"], each["reason"]) for each in expected["causes"]}
        assert {(each.field, each.reason) for each in errors} <= known


@pytest.mark.parametrize("name", served(UPDATED))
def test_update(api, name):
    (obj, changes), expected = UPDATED[name], UPDATE_ANSWERS[name]
    resource = api.resource_of(obj)
    stored = api.create(resource, obj)
    changed = table.changed(stored, changes)
    got = answer(lambda: api.update(resource, changed, dry_run=True), 200)
    api.store.delete(resource, stored["metadata"].get("namespace", ""), stored["metadata"]["name"])
    # An API server validates some kinds twice, and repeats the causes.
    assert set(fields(got)) == set(fields(expected))
    if '{"' not in expected.get("message", ""):  # Objects are shown as internal types.
        first = expected.get("message", "").partition("\n")[0]
        assert got.get("message", "").partition("\n")[0] == first


@pytest.mark.parametrize("name", ADMITTED)
def test_admission(name):
    (given, obj, paths), expected = ADMITTED[name], ADMISSION_ANSWERS[name]
    api = new_api()
    for each in given:
        api.create(api.resource_of(each), each)
    created = {}

    def create():
        created.update(api.create(api.resource_of(obj), obj, dry_run=True))

    got = answer(create, 201)
    assert (got["code"], got.get("message")) == (expected["code"], expected.get("message"))
    if expected["code"] == 201:
        assert without_empty(table.shown(created, paths)) == without_empty(expected["shown"])


def without_empty(values):
    return {path: {} if value is None else value for path, value in values.items()}


def test_a_rule_that_is_repeated_is_stated_once(api):
    obj = CREATED["Job: name too long"]
    got = answer(lambda: api.create(api.resource_of(obj), obj, dry_run=True), 201)
    assert len(re.findall("must be no more than 63 bytes", got["message"])) == 1
    assert len(got["causes"]) == 2
