"""Files, folders and dumps, and the messages about invalid ones."""

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import Simulation
from moorage.api import manifests
from moorage.api.kinds import READ
from moorage.api.manifests.errors import Origin
from moorage.api.manifests.reading import DocumentReader
from moorage.api.pod import Pod
from moorage.errors import ManifestError

NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"


def pod(name="web", **fields):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, **fields}


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Write files and load them; messages name them relative to this folder."""
    monkeypatch.chdir(tmp_path)

    def write_and_load(files, *paths):
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return manifests.load(paths or files)

    return write_and_load


def names(manifest):
    return [f"{obj.kind} {obj.key}" for obj in manifest.objects]


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        pytest.param("a.yaml", NODE, ["Node n1"], id="one YAML document"),
        pytest.param(
            "a.yaml",
            f"# first\n---\n{NODE}---\n---\n{NODE.replace('n1', 'n2')}",
            ["Node n1", "Node n2"],
            id="several, with a gap",
        ),
        pytest.param("a.json", json.dumps(pod()), ["Pod web"], id="one JSON document"),
        pytest.param(
            "a.jsonl",
            f"{json.dumps(pod('a'))}\n{json.dumps(pod('b'))}\n",
            ["Pod a", "Pod b"],
            id="JSON lines",
        ),
        pytest.param(
            "a.json",
            json.dumps(pod("a"), indent=2) + json.dumps(pod("b"), indent=2),
            ["Pod a", "Pod b"],
            id="JSON documents one after the other",
        ),
        pytest.param("a.yaml", json.dumps(pod()), ["Pod web"], id="JSON in a YAML file"),
        pytest.param(
            "a.yaml",
            "{apiVersion: v1, kind: Node, metadata: {name: n1}}",
            ["Node n1"],
            id="YAML that looks like JSON",
        ),
        pytest.param("a.txt", NODE, ["Node n1"], id="any file that is named"),
        pytest.param(
            "a.json",
            json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod("a"), pod("b")]}),
            ["Pod a", "Pod b"],
            id="a list",
        ),
        pytest.param(
            "a.json",
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "PodList",
                    "items": [{"metadata": {"name": "a", "namespace": "x"}}],
                }
            ),
            ["Pod x/a"],
            id="a list that says what its items are",
        ),
        pytest.param(
            "a.yaml",
            "apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: a}\n",
            ["Pod a"],
            id="the same in YAML",
        ),
        pytest.param(
            "a.json", '{"apiVersion": "v1", "kind": "PodList", "items": null}', [], id="no items"
        ),
        pytest.param("a.yaml", "apiVersion: v1\nkind: List\n", [], id="a list without items"),
        pytest.param(
            "a.yaml", b"\xef\xbb\xbf" + NODE.encode(), ["Node n1"], id="a byte order mark"
        ),
    ],
)
def test_load(load, name, content, found):
    assert names(load({name: content})) == found


def test_folders_are_read_in_order_with_all_that_is_below(load):
    files = {
        "m/b.yaml": NODE.replace("n1", "b"),
        "m/a/z.yml": NODE.replace("n1", "a"),
        "m/c.json": json.dumps(pod()),
        "m/notes.md": "# not a manifest",
        "m/empty.yaml": "",
        "m/.git/x.yaml": "][",
    }
    assert names(load(files, "m")) == ["Node a", "Node b", "Pod web"]


@pytest.mark.parametrize(
    "content",
    [pytest.param(NODE, id="YAML"), pytest.param(json.dumps(pod()), id="JSON")],
)
def test_standard_input(monkeypatch, content):
    stdin = SimpleNamespace(buffer=io.BytesIO(content.encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert len(manifests.load(["-"]).objects) == 1


@pytest.mark.parametrize(
    ("stdin", "problem"),
    [
        pytest.param(None, "is closed", id="closed"),
        pytest.param(SimpleNamespace(buffer=io.BytesIO(b"\n")), "holds no objects", id="empty"),
        pytest.param(
            SimpleNamespace(buffer=io.BytesIO(b"replicas: 1")),
            'document 1, kind: is missing; write for example "kind: Pod"',
            id="values of a chart",
        ),
    ],
)
def test_standard_input_without_objects(monkeypatch, stdin, problem):
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(ManifestError, match=rf"^standard input[:,] {problem}$"):
        manifests.load(["-"])


def test_a_file_is_one_that_was_given_however_its_path_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("empty.yaml").touch()
    with pytest.raises(ManifestError, match=r"^empty\.yaml: holds no objects$"):
        manifests.load(["./empty.yaml"])


def test_other_kinds_are_counted(load):
    content = "\n---\n".join(
        [
            NODE,
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}",
            "apiVersion: v1\nkind: ConfigMapList\nitems: [{metadata: {name: b}}]",
            "apiVersion: apps/v1beta9\nkind: Pod\nmetadata: {name: c}",
        ]
    )
    manifest = load({"a.yaml": content})
    assert names(manifest) == ["Node n1"]
    assert manifest.skipped == {"v1 ConfigMap": 2, "apps/v1beta9 Pod": 1}
    listed = {"apiVersion": "v1", "kind": "SecretList", "items": [{}, {}]}
    assert load({"b.json": json.dumps(listed)}).skipped == {"v1 Secret": 2}


def test_yaml_scalars_are_read_as_kubernetes_reads_them(load):
    [node] = load(
        {
            "a.yaml": NODE.replace(
                "{name: n1}",
                "{name: n1, creationTimestamp: 2024-01-01T00:00:00Z, annotations: {t: 1:30}}",
            )
            + "status: {allocatable: {cpu: 0.5, memory: 1e3, pods: 110, x: 1234567890123456789}}"
        }
    ).objects
    assert node.metadata.creation_timestamp == "2024-01-01T00:00:00Z"
    assert node.metadata.annotations == {"t": "1:30"}
    allocatable = {"cpu": 0.5, "memory": 1000.0, "pods": 110, "x": 1234567890123456789}
    assert node.status.allocatable == allocatable


def test_nulls_are_absent(load):
    spec = {
        "nodeName": None,
        "containers": [{"name": "a", "resources": None, "ports": None}],
        "priority": None,
        "tolerations": None,
    }
    [got] = load({"a.json": json.dumps(pod(spec=spec, status=None))}).objects
    assert got.spec.containers[0].name == "a"
    assert got.spec.node_name == ""


def test_a_null_inside_a_map_is_an_empty_value():
    spec = {
        "nodeSelector": {"disk": None},
        "containers": [{"resources": {"requests": {"cpu": None}}}],
    }
    [got] = manifests.from_dicts([pod(spec=spec)])
    assert isinstance(got, Pod)
    assert got.spec.node_selector == {"disk": ""}
    assert got.spec.containers[0].resources.requests == {"cpu": 0}


def test_keys_of_maps_are_text(load):
    [node] = load({"a.yaml": NODE.replace("name: n1", "name: n1, labels: {2: a, true: b}")}).objects
    assert node.labels == {"2": "a", "true": "b"}


@pytest.mark.parametrize(
    "time",
    ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.123456789Z", "2026-01-31T12:00:00+05:30"],
)
def test_times_as_kubernetes_writes_them(load, time):
    document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    document["metadata"]["creationTimestamp"] = time
    [node] = load({"a.json": json.dumps(document)}).objects
    assert node.metadata.creation_timestamp == time


def test_names_are_generated_in_order():
    base = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "web-"}}
    got = manifests.from_dicts([base, base])
    assert [obj.name for obj in got] == ["web-00001", "web-00002"]


def test_structs_pass_through():
    decoded = manifests.from_dicts([pod()])
    assert manifests.from_dicts(decoded)[0] is decoded[0]


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        pytest.param("a.yaml", "", "a.yaml: holds no objects", id="empty file"),
        pytest.param(
            "a.yaml", b"\xffjunk", "a.yaml: is not text; expected YAML or JSON", id="junk"
        ),
        pytest.param(
            "a.yaml", "a\0b", "a.yaml: is a binary file; expected YAML or JSON", id="binary"
        ),
        pytest.param(
            "a.yaml",
            "a: b\nc:\n  d: e\n f: g\n",
            "a.yaml, line 4: is not YAML: did not find expected key",
            id="YAML syntax",
        ),
        pytest.param(
            "a.yaml",
            "kind: Pod\nmetadata: {name: a}\napiVersion: v1\napiVersion: v1\nkind: Pod\n",
            "a.yaml, line 4: is not YAML: apiVersion stands there twice; is a line with --- "
            "missing above it?",
            id="a missing separator",
        ),
        pytest.param(
            "a.yaml",
            'apiVersion: v1\nkind: Node\nmetadata: {name: "\\e[31mred"}\n',
            'a.yaml, document 1, Node, metadata.name: "\\u001b[31mred" holds characters that '
            "cannot be printed",
            id="a name with an escape sequence",
        ),
        pytest.param(
            "a.yaml",
            "a: \x01",
            "a.yaml: is not YAML: control characters are not allowed",
            id="control characters",
        ),
        pytest.param(
            "a.yaml",
            "a: !!bool maybe",
            "a.yaml, line 1: is not YAML: 'maybe' is not of type bool",
            id="bad tag",
        ),
        pytest.param(
            "a.json",
            '{"a": 1,\n"b": }',
            "a.json, line 2: is not JSON: invalid character",
            id="JSON syntax",
        ),
        pytest.param(
            "a.json",
            '{"a": 1,\n"b": [',
            "a.json, line 2: is not JSON: Input data was truncated",
            id="JSON that ends too early",
        ),
        pytest.param("a.json", "[" * 100_000, "a.json: is nested too deeply", id="JSON too deep"),
        pytest.param(
            "a.yaml",
            f"{NODE}---\njust text\n",
            'a.yaml, document 2: must be an object with apiVersion and kind, is "just text"',
            id="not a mapping",
        ),
        pytest.param(
            "a.json",
            f"[{json.dumps(pod())}]",
            "a.json, document 1: is a list; put it under `items:` of a document with `kind: List`",
            id="a bare list",
        ),
        pytest.param(
            "a.yaml",
            "metadata: {name: a}",
            'a.yaml, document 1, kind: is missing; write for example "kind: Pod"',
            id="no kind",
        ),
        pytest.param(
            "a.json",
            '{"metadata": {"name": "a"}}',
            'a.json, document 1, kind: is missing; write for example "kind: Pod"',
            id="no kind in JSON",
        ),
        pytest.param(
            "a.yaml",
            "kind: PriorityClass\nmetadata: {name: a}",
            "a.yaml, document 1, PriorityClass a, apiVersion: is missing; "
            "write scheduling.k8s.io/v1",
            id="no version",
        ),
        pytest.param(
            "a.yaml",
            "apiVersion: 1\nkind: Pod",
            "a.yaml, document 1, apiVersion: must be text, is 1",
            id="a version that is a number",
        ),
        pytest.param(
            "a.yaml",
            "apiVersion: v1\nkind: Pod",
            "a.yaml, document 1, Pod, metadata.name: is missing",
            id="no name",
        ),
        pytest.param(
            "a.yaml",
            f"{NODE}---\n{NODE}",
            "a.yaml, document 2, Node n1: is already defined in a.yaml, document 1",
            id="twice the same",
        ),
        pytest.param(
            "a.json",
            json.dumps(pod())
            + json.dumps(pod() | {"metadata": {"name": "web", "namespace": "default"}}),
            "a.json, document 2, Pod default/web: is already defined in a.json, document 1",
            id="twice the same, once without its namespace",
        ),
        pytest.param(
            "a.yaml",
            "apiVersion: v1\nkind: pod\nmetadata: {name: web}",
            'a.yaml, document 1, pod default/web: no matches for kind "pod" in version "v1"; '
            "write apiVersion: v1, kind: Pod",
            id="a kind in lower case",
        ),
        pytest.param(
            "a.yaml",
            "apiVersion: v1\nkind: Deployment\nmetadata: {name: web}",
            'a.yaml, document 1, Deployment default/web: no matches for kind "Deployment" in '
            'version "v1"; write apiVersion: apps/v1, kind: Deployment',
            id="a kind of another group",
        ),
        pytest.param(
            "a.json",
            "".join(json.dumps(pod(metadata={"name": n, "uid": "u"})) for n in ("one", "two")),
            'a.json, document 2, Pod default/two, metadata.uid: "u" is also the UID of '
            "Pod default/one (a.json, document 1)",
            id="two objects with one UID",
        ),
        pytest.param(
            "a.yaml",
            "apiVersion: v1\nkind: List\nitems: 5",
            "a.yaml, document 1, items: must be a list, is 5",
            id="items that are no list",
        ),
        pytest.param(
            "a.json",
            '{"apiVersion": "v1", "kind": "List", "items": 5}',
            "a.json, document 1, items: must be a list, is 5",
            id="items that are no list, in JSON",
        ),
        pytest.param(
            "a.json",
            '{"apiVersion": "v1", "kind": "List", "items": [5]}',
            "a.json, document 1, items[0]: must be an object with apiVersion and kind, is 5",
            id="an item that is no object",
        ),
    ],
)
def test_errors_in_documents(load, name, content, text):
    with pytest.raises(ManifestError) as caught:
        load({name: content})
    assert str(caught.value) == text


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
LOWER = {"matchExpressions": [{"key": "a", "operator": "in", "values": ["b"]}]}


def requests_of(cpu):
    return {"containers": [{"name": "a", "resources": {"requests": cpu}}]}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        pytest.param(
            {"spec": requests_of({"cpu": "5x"})},
            'spec.containers[0].resources.requests.cpu: "5x" is not a quantity',
            id="a bad quantity",
        ),
        pytest.param(
            {"spec": requests_of({"cpu": -1})},
            (
                'spec.containers[0].resources.requests.cpu: Invalid value: "-1": must be '
                "greater than or equal to 0"
            ),
            id="a negative quantity",
        ),
        pytest.param(
            {"spec": requests_of({"cpu": "99999999999999999"})},
            (
                "spec.containers[0].resources.requests.cpu: Invalid value: "
                '"99999999999999999": must fit into 64 bits'
            ),
            id="a quantity beyond 64 bits",
        ),
        pytest.param(
            {"spec": {"tolerations": [{"operator": "Exists"}, {"key": "a", "operator": "exists"}]}},
            'spec.tolerations[1].operator: Unsupported value: "exists": supported values: "Equal", '
            '"Exists"',
            id="an unknown operator",
        ),
        pytest.param(
            {"spec": {"tolerations": [{"key": "a", "effect": "NoSchedul"}]}},
            'spec.tolerations[0].effect: Unsupported value: "NoSchedul": supported values: '
            '"NoSchedule", "PreferNoSchedule", "NoExecute"',
            id="an unknown effect",
        ),
        pytest.param(
            {"spec": {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotschedule"}]}},
            (
                "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater "
                "than zero"
            ),
            id="a constraint misspelt",
        ),
        pytest.param(
            {"spec": {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [LOWER]}}}}},
            f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0]"
            '.operator: Invalid value: "in": not a valid selector operator',
            id="an operator of a node affinity",
        ),
        pytest.param(
            {"spec": {"affinity": {"podAntiAffinity": {REQUIRED: [{"labelSelector": LOWER}]}}}},
            f"spec.affinity.podAntiAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0]"
            '.operator: Invalid value: "in": not a valid selector operator',
            id="an operator of a pod affinity",
        ),
        pytest.param(
            {"spec": {"topologySpreadConstraints": [{"maxSkew": 1}, {"maxSkew": 0}]}},
            "spec.topologySpreadConstraints[1].maxSkew: Invalid value: 0: must be greater than "
            "zero",
            id="maxSkew 0",
        ),
        pytest.param(
            {"spec": {"topologySpreadConstraints": [{"maxSkew": 1, "minDomains": 0}]}},
            "spec.topologySpreadConstraints[0].minDomains: Invalid value: 0: must be greater than "
            "zero",
            id="no domains",
        ),
        pytest.param(
            {"spec": {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}}},
            f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms: Required value: must have "
            "at least one node selector term",
            id="a node affinity without terms",
        ),
        pytest.param(
            {"spec": {"affinity": {"podAffinity": {PREFERRED: [{"weight": 101}]}}}},
            f"spec.affinity.podAffinity.{PREFERRED}[0].weight: Invalid value: 101: must be in the "
            "range 1-100",
            id="a weight above 100",
        ),
        pytest.param(
            {"spec": {"affinity": {"nodeAffinity": {PREFERRED: [{"preference": {}}]}}}},
            f"spec.affinity.nodeAffinity.{PREFERRED}[0].weight: Invalid value: 0: must be in the "
            "range 1-100",
            id="a preference without a weight",
        ),
        pytest.param(
            {"metadata": {"name": "web", "creationTimestamp": "yesterday"}},
            (
                'metadata.creationTimestamp: Invalid value: "yesterday": must be a time such '
                "as 2026-01-31T12:00:00Z"
            ),
            id="an invalid time",
        ),
        pytest.param(
            {"metadata": {"name": "web", "deletionTimestamp": "2026-02-30T12:00:00Z"}},
            (
                'metadata.deletionTimestamp: Invalid value: "2026-02-30T12:00:00Z": must be a '
                "time such as 2026-01-31T12:00:00Z"
            ),
            id="a day that no February has",
        ),
        pytest.param(
            {"status": {"startTime": "2026-01-31"}},
            (
                'status.startTime: Invalid value: "2026-01-31": must be a time such as '
                "2026-01-31T12:00:00Z"
            ),
            id="a day where a time has to be",
        ),
        pytest.param(
            {"spec": {"preemptionPolicy": "never"}},
            (
                'specpreemptionPolicy: Unsupported value: "never": supported values: '
                '"PreemptLowerPriority", "Never"'
            ),
            id="a policy misspelt",
        ),
        pytest.param(
            {"spec": requests_of({"nvidia.com/gpu": "one"})},
            'spec.containers[0].resources.requests[nvidia.com/gpu]: "one" is not a quantity',
            id="a bad quantity under a name with a slash",
        ),
        pytest.param(
            {"spec": requests_of({"cpu": 1, "memory": True})},
            "spec.containers[0].resources.requests.memory: must be a quantity, is true",
            id="a quantity that is true",
        ),
        pytest.param(
            {"spec": {"initContainers": [{}, {"resources": {"limits": {"cpu": ""}}}]}},
            'spec.initContainers[1].resources.limits.cpu: "" is not a quantity',
            id="an empty limit",
        ),
        pytest.param(
            {"spec": {"overhead": {"cpu": "x"}}},
            'spec.overhead.cpu: "x" is not a quantity',
            id="overhead",
        ),
        pytest.param(
            {"spec": {"resources": {"requests": {"cpu": "x"}}}},
            'spec.resources.requests.cpu: "x" is not a quantity',
            id="pod level",
        ),
        pytest.param(
            {"status": {"containerStatuses": [{"allocatedResources": {"cpu": "x"}}]}},
            'status.containerStatuses[0].allocatedResources.cpu: "x" is not a quantity',
            id="status",
        ),
        pytest.param(
            {"metadata": {"name": "web", "labels": {"a": "b", "tier": 5}}},
            "metadata.labels.tier: must be text, is 5; put it in quotes",
            id="a label that is a number",
        ),
        pytest.param(
            {"metadata": {"name": "web", "annotations": {"x.io/on": True}}},
            "metadata.annotations[x.io/on]: must be text, is true; put it in quotes",
            id="an annotation that is true",
        ),
        pytest.param(
            {"spec": {"priority": "high"}},
            'spec.priority: must be a whole number, is "high"',
            id="a word for a number",
        ),
        pytest.param(
            {"spec": {"priority": 2**31}},
            "spec.priority: must be a whole number <= 2147483647, is 2147483648",
            id="a number that is too large",
        ),
        pytest.param(
            {"spec": {"containers": {"name": "a"}}},
            'spec.containers: must be a list, is {"name": "a"}',
            id="a mapping for a list",
        ),
        pytest.param(
            {"spec": {"containers": [{"ports": [{}, {"hostPort": "http"}]}]}},
            'spec.containers[0].ports[1].hostPort: must be a whole number, is "http"',
            id="deep inside",
        ),
        pytest.param({"spec": "x"}, 'spec: must be a mapping, is "x"', id="a text for a mapping"),
    ],
)
@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_complaints_about_fields(load, fields, text, suffix):
    with pytest.raises(ManifestError) as caught:
        load({f"a.{suffix}": json.dumps(pod() | fields)})
    assert str(caught.value) == f"a.{suffix}, document 1, Pod default/web, {text}"


@pytest.mark.parametrize(
    ("document", "text"),
    [
        pytest.param(
            {"kind": "Deployment", "apiVersion": "extensions/v1beta1"},
            "Deployment default/x, apiVersion: extensions/v1beta1 is not read; write apps/v1",
            id="a version of long ago",
        ),
        pytest.param(
            {"kind": "Pod", "apiVersion": "v2"},
            "Pod default/x, apiVersion: v2 is not read; write v1",
            id="a version that never was",
        ),
        pytest.param(
            {"kind": "Node", "apiVersion": "v1", "spec": {"taints": [{"effect": "noexecute"}]}},
            (
                'Node x, spec.taints[0].effect: Unsupported value: "noexecute": supported '
                'values: "NoSchedule", "PreferNoSchedule", "NoExecute"'
            ),
            id="a taint's effect",
        ),
        pytest.param(
            {
                "kind": "Deployment",
                "apiVersion": "apps/v1",
                "spec": {"template": {"spec": {"tolerations": [{"operator": "exists"}]}}},
            },
            (
                "Deployment default/x, spec.template.spec.tolerations[0].operator: Invalid "
                'value: "exists": operator must be Exists when `key` is empty, which means '
                '"match all values and all keys"'
            ),
            id="a word in a template",
        ),
        pytest.param(
            {
                "kind": "ResourceSlice",
                "apiVersion": "resource.k8s.io/v1",
                "spec": {"devices": [{"name": "a", "capacity": {"memory": {"value": "4x"}}}]},
            },
            'ResourceSlice x, spec.devices[0].capacity.memory: "4x" is not a quantity',
            id="a capacity of a device",
        ),
        pytest.param(
            {
                "kind": "ResourceClaim",
                "apiVersion": "resource.k8s.io/v1",
                "spec": {
                    "devices": {"requests": [{"name": "a", "exactly": {"allocationMode": "all"}}]}
                },
            },
            (
                "ResourceClaim default/x, spec.devices.requests[0].exactly.allocationMode: "
                'Unsupported value: "all": supported values: "ExactCount", "All"'
            ),
            id="an allocation mode",
        ),
        pytest.param(
            {"kind": "StatefulSet", "apiVersion": "apps/v1", "spec": {"replicas": -1}},
            (
                "StatefulSet default/x, spec.replicas: Invalid value: -1: must be greater than "
                "or equal to 0"
            ),
            id="fewer replicas than none",
        ),
        pytest.param(
            {"kind": "Deployment", "apiVersion": "apps/v1", "spec": {"replicas": 2}},
            "Deployment default/x, spec.template: Required value",
            id="nothing to make pods of",
        ),
        pytest.param(
            {"kind": "Job", "apiVersion": "batch/v1", "spec": {"parallelism": -2}},
            (
                "Job default/x, spec.parallelism: Invalid value: -2: must be greater than or "
                "equal to 0"
            ),
            id="fewer at a time than none",
        ),
        pytest.param(
            {
                "kind": "CronJob",
                "apiVersion": "batch/v1",
                "spec": {"jobTemplate": {"spec": {"completions": -3}}},
            },
            (
                "CronJob default/x, spec.jobTemplate.spec.completions: Invalid value: -3: must "
                "be greater than or equal to 0"
            ),
            id="fewer in all than none",
        ),
        pytest.param(
            {
                "kind": "PodDisruptionBudget",
                "apiVersion": "policy/v1",
                "spec": {"maxUnavailable": -1},
            },
            (
                "PodDisruptionBudget default/x, spec.maxUnavailable: Invalid value: -1: must "
                "be greater than or equal to 0"
            ),
            id="fewer unavailable than none",
        ),
        pytest.param(
            {
                "kind": "PodDisruptionBudget",
                "apiVersion": "policy/v1",
                "spec": {"minAvailable": "lots"},
            },
            (
                'PodDisruptionBudget default/x, spec.minAvailable: Invalid value: "lots": a '
                "valid percent string must be a numeric string followed by an ending '%' (e.g. "
                "'1%',  or '93%', regex used for validation is '[0-9]+%')"
            ),
            id="a budget",
        ),
        pytest.param(
            {"kind": "StorageClass", "apiVersion": "storage.k8s.io/v1", "volumeBindingMode": "X"},
            (
                'StorageClass x, volumeBindingMode: Unsupported value: "X": supported values: '
                '"Immediate", "WaitForFirstConsumer"'
            ),
            id="a binding mode",
        ),
        pytest.param(
            {"kind": "Node", "apiVersion": "v1", "status": {"allocatable": {"cpu": "x"}}},
            'Node x, status.allocatable.cpu: "x" is not a quantity',
            id="node",
        ),
        pytest.param(
            {
                "kind": "PersistentVolume",
                "apiVersion": "v1",
                "spec": {"capacity": {"storage": "x"}},
            },
            'PersistentVolume x, spec.capacity.storage: "x" is not a quantity',
            id="volume",
        ),
        pytest.param(
            {
                "kind": "PersistentVolumeClaim",
                "apiVersion": "v1",
                "spec": {"resources": {"requests": {"storage": "x"}}},
            },
            "PersistentVolumeClaim default/x, spec.resources.requests.storage: "
            '"x" is not a quantity',
            id="claim",
        ),
        pytest.param(
            {
                "kind": "CSIStorageCapacity",
                "apiVersion": "storage.k8s.io/v1",
                "capacity": "x",
            },
            'CSIStorageCapacity default/x, capacity: "x" is not a quantity',
            id="storage capacity",
        ),
    ],
)
def test_quantities_of_other_kinds(document, text):
    with pytest.raises(ManifestError) as caught:
        manifests.from_dicts([document | {"metadata": {"name": "x"}}])
    assert str(caught.value) == f"objects[0], {text}"


def test_one_bad_item_in_a_list_is_found(load):
    items = [pod("a"), pod("b", spec={"nodeName": None}), pod("c", spec={"nodeName": 5})]
    with pytest.raises(ManifestError) as caught:
        load({"a.json": json.dumps({"apiVersion": "v1", "kind": "PodList", "items": items})})
    assert str(caught.value) == (
        "a.json, document 1, items[2], Pod default/c, spec.nodeName: "
        "must be text, is 5; put it in quotes"
    )


def test_complaints_about_files(load, tmp_path):
    with pytest.raises(ManifestError, match=r"^gone\.yaml: no such file or folder$"):
        load({}, "gone.yaml")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ManifestError, match=r"^empty: no \.yaml, \.yml, \.json files in this"):
        load({}, "empty")


def test_dump_is_what_was_said_and_no_more():
    document = pod(
        spec={"containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]},
        status={"nominatedNodeName": "n1"},
    )
    [obj] = manifests.from_dicts([document])
    assert manifests.dump(obj) == document
    assert manifests.dump(Pod()) == {}


KEYS = st.sampled_from(
    ("metadata", "name", "labels", "spec", "containers", "resources", "requests", "cpu", "items")
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("1")
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def complaint(read, *args):
    """What is said about the input; nothing if it could be read."""
    try:
        read(*args)
    except ManifestError as error:
        return str(error)
    return ""


@given(st.dictionaries(KEYS, DOCUMENTS, max_size=4), st.sampled_from(["Pod", "Node", "List"]))
def test_whatever_comes_in_gives_objects_or_one_line(document, kind):
    document = {**pod(), **document, "kind": kind}
    assert len(complaint(manifests.from_dicts, [document]).splitlines()) <= 1


@given(st.text())
def test_whatever_a_file_says_gives_objects_or_one_line(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("any") / "a.yaml"
    path.write_text(text, encoding="utf-8", errors="replace")
    assert len(complaint(manifests.load, [path]).splitlines()) <= 1


def test_a_folder_of_kustomize_is_to_be_rendered_first(tmp_path):
    patch = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3}\n"
    (tmp_path / "overlay").mkdir()
    (tmp_path / "overlay" / "patch.yaml").write_text(patch)

    def problems():
        with pytest.raises(ManifestError) as raised:
            manifests.load([tmp_path], "strict")
        return raised.value.problems

    without = problems()
    (tmp_path / "overlay" / "kustomization.yaml").write_text("patches: [{path: patch.yaml}]\n")
    *same, hint = problems()
    assert same == without
    assert hint == (
        f"{tmp_path}/overlay: has a kustomization.yaml, so some files may be patches; render it "
        f"first: kubectl kustomize {tmp_path}/overlay | moorage ... -f -"
    )


def test_a_manifest_is_not_validated_again():
    loaded = manifests.read([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}])
    assert manifests.read(loaded) is loaded


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"kind": "List", "apiVersion": "v1", "items": [%s]}', id="one list"),
        pytest.param(' {"kind": "List", "apiVersion": "v1", "items": [%s]}', id="after a space"),
        pytest.param(
            '{"kind": "List", "apiVersion": "v1", "items": [%s]}\n{"kind": "List", "items": []}',
            id="two lists",
        ),
        pytest.param("%s", id="no list"),
    ],
)
def test_a_file_with_one_list_is_read_like_any_other(load, text):
    """It is read in one pass, which must not show."""
    found = load({"a.json": text % json.dumps(pod("a"))})
    assert [obj.name for obj in found.objects] == ["a"]
    with pytest.raises(ManifestError, match=r"^a\.json, document 1,.* Pod, metadata.name: is miss"):
        load({"a.json": text % json.dumps(pod(""))})
    with pytest.raises(ManifestError, match=r"^a\.json, line 1: is not JSON"):
        load({"a.json": text % json.dumps(pod("a"))[:-1]})


def test_a_list_of_several_kinds():
    """Most items are of the kind before them; each is read as what it states."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    no_kind = {"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "listed"}}]}
    items = [pod("a"), pod("b"), node, pod("c"), no_kind, {**pod("d"), "kind": "Secret"}, pod("e")]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    with pytest.raises(ManifestError, match=r"items\[1\], Pod default/b, spec: must be"):
        read_json(text.replace('"name": "b"}', '"name": "b"}, "spec": 5'))
    found = read_json(text)
    names = [f"{type(obj).__name__} {obj.name}" for obj in found.objects]
    assert names == ["Pod a", "Pod b", "Node n1", "Pod c", "Pod listed", "Pod e"]
    assert found.skipped == {"v1 Secret": 1}
    with pytest.raises(ManifestError, match="apiVersion: v2 is not read"):
        read_json(
            json.dumps({"kind": "List", "items": [pod("a"), {**pod("b"), "apiVersion": "v2"}]})
        )


def read_json(text):
    reader = DocumentReader()
    reader.read_raw(Origin("list.json"), msgspec.Raw(text.encode()))
    return reader.manifest


def test_objects_with_one_uid():
    problem = (
        r'objects\[1\], Pod default/two, metadata.uid: "u" is .* Pod default/one \(objects\[0\]\)'
    )
    with pytest.raises(ManifestError, match=problem):
        Simulation([pod(metadata={"name": name, "uid": "u"}) for name in ("one", "two")])


@pytest.mark.parametrize(
    ("kind", "spec", "field"),
    [
        pytest.param("apps/v1 Deployment", {"replicas": 10**8}, "replicas", id="deployment"),
        pytest.param("apps/v1 StatefulSet", {"replicas": 10**8}, "replicas", id="stateful set"),
        pytest.param("apps/v1 ReplicaSet", {"replicas": 10**8}, "replicas", id="replica set"),
        pytest.param("v1 ReplicationController", {"replicas": 10**8}, "replicas", id="controller"),
        pytest.param("batch/v1 Job", {"parallelism": 10**8}, "parallelism", id="parallel pods"),
        pytest.param("batch/v1 Job", {"completions": 10**8}, "completions", id="completions"),
        pytest.param("batch/v1 CronJob", {"jobTemplate": {"spec": {"completions": 10**8}}},
                     "jobTemplate.spec.completions", id="job template"),
        pytest.param("moorage.dev/v1 NodePool", {"count": 10**8, "template": {}}, "count",
                     id="node pool"),
    ],
)  # fmt: skip
def test_too_many_pods_or_nodes(kind, spec, field):
    version, _, name = kind.partition(" ")
    document = {"apiVersion": version, "kind": name, "metadata": {"name": "x"}, "spec": spec}
    with pytest.raises(ManifestError) as caught:
        manifests.from_dicts([document])
    where = f"{name} x" if name == "NodePool" else f"{name} default/x"
    problem = "must be a whole number <= 1000000, is 100000000"
    assert str(caught.value) == f"objects[0], {where}, spec.{field}: {problem}"


CLAIMS = {"template": {"spec": {}}, "volumeClaimTemplates": [{"metadata": {"name": "data"}}]}


@pytest.mark.parametrize(
    ("kind", "fields", "text"),
    [
        pytest.param("LimitRange", {"spec": {"limits": 5}}, "spec.limits: must be a list, is 5",
                     id="limits that are no list"),
        pytest.param("LimitRange", {"spec": {"limits": [5]}},
                     "spec.limits[0]: must be a mapping, is 5", id="a limit that is none"),
        pytest.param("LimitRange", {"spec": {"limits": [{"max": {"cpu": "x"}}]}},
                     'spec.limits[0].max.cpu: "x" is not a quantity', id="a bound"),
        pytest.param("ResourceQuota", {"spec": {"hard": [{}]}},
                     "spec.hard: must be a mapping, is [{}]", id="a list as quota"),
        pytest.param("ResourceQuota", {"spec": {"hard": {"pods": []}}},
                     "spec.hard.pods: must be a quantity, is []", id="a quota that is no quantity"),
        pytest.param("ResourceQuota", {"spec": {"hard": {"pods": "x"}}},
                     'spec.hard.pods: "x" is not a quantity', id="a quota that does not parse"),
        pytest.param("RuntimeClass", {"overhead": {"podFixed": {"cpu": "x"}}},
                     'overhead.podFixed.cpu: "x" is not a quantity', id="overhead"),
        pytest.param("PodDisruptionBudget", {"spec": {"minAvailable": 2**40}},
                     "spec.minAvailable: must be", id="a budget beyond 32 bits"),
        pytest.param("StatefulSet", {"spec": CLAIMS | {"volumeClaimTemplates": [{}]}},
                     "spec.volumeClaimTemplates[0].metadata.name: Required value",
                     id="a claim template without a name"),
        pytest.param(
            "StatefulSet",
            {"spec": CLAIMS | {"volumeClaimTemplates": [
                {"metadata": {"name": "d"}, "spec": {"resources": {"requests": {"storage": ""}}}}
            ]}},
            'spec.volumeClaimTemplates[0].spec.resources.requests.storage: "" is not a quantity',
            id="a claim template without a size",
        ),
    ],
)  # fmt: skip
def test_objects_from_code_of_other_kinds(kind, fields, text):
    """They are not checked as files are; a wrong type would end a simulation in a traceback."""
    document = {"apiVersion": READ[kind].api_version, "kind": kind, "metadata": {"name": "x"}}
    with pytest.raises(ManifestError) as caught:
        manifests.from_dicts([document | fields])
    assert f" x, {text}" in str(caught.value).replace("default/x", "x")


def test_a_quota_without_a_spec_limits_nothing():
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "x"}}
    Simulation([quota, pod()]).run()
