"""Fields of templates that are not read: which changes of them count."""

import json

import pytest

from moorage.api import manifests
from moorage.api.manifests import unread_fields

CONTAINER = {"name": "c", "image": "app:1"}


def template(container=None, **spec):
    containers = [CONTAINER | (container or {})]
    return {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": containers, **spec}}


def env(value):
    return {"env": [{"name": "A", "value": value}]}


@pytest.mark.parametrize(
    ("before", "after", "differ"),
    [
        pytest.param(template(env("1")), template(env("2")), True, id="environment"),
        pytest.param(template(env("1")), template(), True, id="environment removed"),
        pytest.param(template({"args": ["-v"]}), template({"args": ["-q"]}), True, id="arguments"),
        pytest.param(
            template(volumes=[{"name": "v", "configMap": {"name": "a"}}]),
            template(volumes=[{"name": "v", "configMap": {"name": "b"}}]),
            True,
            id="volume",
        ),
        pytest.param(template(), template(serviceAccountName="robot"), True, id="service account"),
        pytest.param(
            template(env("1")),
            template(
                env("1") | {"imagePullPolicy": "IfNotPresent", "terminationMessagePolicy": "File"},
                dnsPolicy="ClusterFirst",
                restartPolicy="Always",
            ),
            False,
            id="defaults",
        ),
        pytest.param(template(), template({"image": "app:2"}), False, id="a field that is read"),
        pytest.param(template(env("1")), template(env("1") | {"args": []}), False, id="empty"),
    ],
)
def test_digest(before, after, differ):
    digests = [unread_fields.digest_of(each) for each in (before, after)]
    assert (digests[0] != digests[1]) is differ


def test_a_template_without_such_fields_has_no_digest():
    assert unread_fields.digest_of(template()) == ""


@pytest.mark.parametrize("form", ["data", "json", "list"])
def test_workloads_have_the_digest_however_they_are_read(tmp_path, form):
    fields = {"selector": {"matchLabels": {"app": "a"}}, "template": template(env("1"))}
    document = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}}
    document["spec"] = fields
    if form == "data":
        [found] = manifests.read([document]).everything
    else:
        if form == "list":
            document = {"apiVersion": "apps/v1", "kind": "DeploymentList", "items": [document]}
        file = tmp_path / "a.json"
        file.write_text(json.dumps(document))
        [found] = manifests.load([file]).everything
    assert found.spec.template.unread_digest == unread_fields.digest_of(fields["template"])
