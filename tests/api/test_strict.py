"""Unknown, duplicate and missing fields of files."""

import json

import msgspec
import pytest

from moorage.api import manifests
from moorage.api.kinds import READ
from moorage.api.manifests import strict
from moorage.errors import ManifestError

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: a{meta}}}
spec: {{{spec}, containers: [{{name: c, image: i{container}}}]}}
"""
ANTI = "affinity: {{podAntiAffinity: {{{}}}}}"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def problems(path, text, name="a.yaml", validate="strict"):
    file = path / name
    file.write_text(text)
    with pytest.raises(ManifestError) as caught:
        manifests.load([file], validate)
    return [each.replace(str(file), name) for each in caught.value.problems]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("nodeselector: {a: b}", 'spec.nodeselector: unknown field; did you mean "nodeSelector"?'),
        ("toleration: []", 'spec.toleration: unknown field; did you mean "tolerations"?'),
        ("frobnicate: 1", "spec.frobnicate: unknown field"),
        (
            ANTI.format("requiredDuringScheduling: []"),
            "spec.affinity.podAntiAffinity.requiredDuringScheduling: unknown field; "
            f'did you mean "{REQUIRED}"?',
        ),
    ],
)
def test_of_a_pod(tmp_path, spec, problem):
    text = POD.format(spec=spec, meta="", container="")
    assert problems(tmp_path, text) == [f"a.yaml, document 1, Pod default/a, {problem}"]
    file = tmp_path / "a.yaml"
    warned = manifests.load([file], "warn")
    assert len(warned.objects) == len(warned.warnings) == 1
    assert manifests.load([file], "ignore").warnings == []


@pytest.mark.parametrize("validate", ["strict", "warn"])
def test_rules_are_not_a_matter_of_strictness(tmp_path, validate):
    constraints = "topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1}]"
    text = POD.format(spec=constraints, meta="", container="")
    assert problems(tmp_path, text, validate=validate) == [
        "a.yaml, document 1, Pod default/a, spec.topologySpreadConstraints[0].whenUnsatisfiable: "
        'Unsupported value: "": supported values: "DoNotSchedule", "ScheduleAnyway"'
    ]
    assert len(manifests.load([tmp_path / "a.yaml"], "ignore").objects) == 1


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_equal_specs_are_checked_once_and_metadata_always(tmp_path, suffix):
    spec = {"containers": [{"name": "c", "image": "i"}]}
    metas = [{"name": "a"}, {"name": "b"}, {"name": "C"}, {"name": "d", "lables": {}}]
    pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec} for meta in metas]
    listed = {"apiVersion": "v1", "kind": "List", "items": pods}
    found = problems(tmp_path, json.dumps(listed), f"a.{suffix}")
    assert [each.partition(", ")[2].partition(":")[0] for each in found] == [
        "document 1, items[2], Pod default/C, metadata.name",
        "document 1, items[3], Pod default/d, metadata.lables",
    ]


def test_a_taint_without_effect(tmp_path):
    text = "apiVersion: v1\nkind: Node\nmetadata: {name: one}\nspec: {taints: [{key: a}]}\n"
    [line] = problems(tmp_path, text)
    assert line == "a.yaml, document 1, Node one, metadata.taints[0].effect: Required value"


def test_every_problem_of_every_file(tmp_path):
    first = POD.format(spec="nodeselector: {}", meta="", container=", resource: {}")
    (tmp_path / "a.yaml").write_text(first)
    (tmp_path / "b.yaml").write_text("kind: [")
    (tmp_path / "c.json").write_text(json.dumps({"apiVersion": "v1", "kind": "Pod"}))
    with pytest.raises(ManifestError) as caught:
        manifests.load([tmp_path, tmp_path / "missing.yaml"], "strict")
    names = [each.removeprefix(f"{tmp_path}/").partition(".")[0] for each in caught.value.problems]
    assert names == ["a", "a", "b", "c", "missing"]
    assert str(caught.value).endswith(f"(and {len(names) - 1} more)")


def test_duplicate_keys(tmp_path):
    text = POD.format(spec="nodeName: a, nodeName: b", meta="", container=", name: d")
    lines = problems(tmp_path, text)
    assert sorted(lines) == [
        'a.yaml, line 5: duplicate field "name"',
        'a.yaml, line 5: duplicate field "nodeName"',
    ]


def test_duplicate_keys_of_json(tmp_path):
    text = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "name": "b"}}'
    [line] = problems(tmp_path, text, "a.json")
    assert line == 'a.json, document 1, Node b: duplicate field "name"'


def test_other_spellings_in_json_are_no_duplicates(tmp_path):
    # Escapes and exponents are written in another way when the document is encoded again.
    file = tmp_path / "a.json"
    file.write_text(
        '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a",'
        '\n "labels": {"a": "\\u0062"}}, "status": {"allocatable": {"cpu": 1e0}}}'
    )
    assert manifests.load([file], "strict").objects[0].labels == {"a": "b"}


@pytest.mark.parametrize(
    "containers",
    [
        pytest.param({"name": "c"}, id="an object instead of a list"),
        pytest.param(["c"], id="a list of texts"),
        pytest.param(7, id="a number"),
    ],
)
def test_values_of_wrong_types_have_no_unknown_fields(containers):
    assert list(strict.field_errors("Pod", {"spec": {"containers": containers}})) == []


def test_merge_keys_and_anchors_are_no_duplicates(tmp_path):
    (tmp_path / "a.yaml").write_text(
        """
apiVersion: v1
kind: Pod
metadata: {name: a, labels: &all {app: a, tier: web}}
spec:
  nodeSelector: {<<: *all, tier: db}
  containers: [{name: c, image: i}]
"""
    )
    found = manifests.load([tmp_path], "strict")
    assert found.objects[0].spec.node_selector == {"app": "a", "tier": "db"}


@pytest.mark.parametrize("name", ["a.yaml", "a.json", "list.json"])
def test_objects_of_an_api_server_are_not_checked(tmp_path, name):
    # It may be newer than the table, and has validated the object.
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "uid": "1"},
        "spec": {"containers": [{"name": "c"}], "fieldOfTheFuture": 1},
    }
    given = {"apiVersion": "v1", "kind": "PodList", "items": [pod]} if "list" in name else pod
    (tmp_path / name).write_text(json.dumps(given))
    assert len(manifests.load([tmp_path / name], "strict").objects) == 1
    del pod["metadata"]["uid"]
    (tmp_path / name).write_text(json.dumps(given))
    with pytest.raises(ManifestError, match=r"spec\.fieldOfTheFuture: unknown field"):
        manifests.load([tmp_path / name], "strict")


def test_a_field_that_no_scheduler_reads_is_known(tmp_path):
    (tmp_path / "a.yaml").write_text(
        POD.format(
            spec="serviceAccountName: a, securityContext: {seccompProfile: {type: RuntimeDefault}}",
            meta=", managedFields: [], selfLink: x",
            container=", livenessProbe: {httpGet: {path: /, port: 80}}, tty: true",
        )
    )
    assert manifests.load([tmp_path], "strict").warnings == []


def struct_fields(struct, seen):
    """Every struct below a struct, with the names of its fields in JSON."""
    if struct in seen:
        return
    seen.add(struct)
    info = msgspec.inspect.type_info(struct)
    yield struct.__name__, {each.encode_name for each in info.fields}
    for each in info.fields:
        for below in structs_in(each.type):
            yield from struct_fields(below, seen)


def structs_in(kind):
    if isinstance(kind, msgspec.inspect.StructType):
        yield kind.cls
    for name in ("item_type", "value_type", "types", "item_types"):
        inner = getattr(kind, name, ())
        for each in inner if isinstance(inner, tuple) else (inner,):
            yield from structs_in(each)


@pytest.mark.parametrize("kind", READ)
def test_the_table_has_every_field_that_is_read(kind):
    for name, fields in struct_fields(READ[kind].struct, set()):
        # `Condition` stands for the conditions of all kinds.
        if name in strict._types() and name != "Condition":
            # The digest is computed when a template is read, and no field of documents.
            assert fields - {"unreadDigest"} <= strict._types()[name].keys(), name


def test_files_that_are_no_manifests_are_skipped_in_folders(tmp_path):
    (tmp_path / "values.yaml").write_text("replicas: 3\n")
    (tmp_path / "kustomization.yaml").write_text("resources: [pod.yaml]\n")
    (tmp_path / "dashboard.json").write_text('{"panels": []}')
    (tmp_path / "pod.yaml").write_text(POD.format(spec="nodeName: one", meta="", container=""))
    found = manifests.load([tmp_path], "strict")
    assert len(found.objects) == 1
    assert [note.removeprefix(f"{tmp_path}/").split(":")[0] for note in found.notes] == [
        "dashboard.json",
        "kustomization.yaml",
        "values.yaml",
    ]
    with pytest.raises(ManifestError, match="kind: is missing"):
        manifests.load([tmp_path / "values.yaml"], "strict")


def test_templates_are_named_as_such(tmp_path):
    text = "apiVersion: v1\nkind: Pod\nmetadata:\n  {{- include labels . }}\n"
    [line] = problems(tmp_path, text)
    assert "looks like a template" in line
    assert "helm template" in line


def test_a_helm_chart_is_one_line(tmp_path):
    chart = tmp_path / "apps" / "web"
    (chart / "templates").mkdir(parents=True)
    (chart / "charts" / "db").mkdir(parents=True)
    for name in ("Chart.yaml", "charts/db/Chart.yaml"):
        (chart / name).write_text("apiVersion: v2\nname: web\n")
    for name in "abc":
        (chart / "templates" / f"{name}.yaml").write_text("name: {{ .Release.Name }}\n")
    (tmp_path / "pod.yaml").write_text("apiVersion: v1\nkind: Pod\n")
    line = f"{chart}: is a Helm chart; render it first: helm template {chart} | moorage ... -f -"
    for folder in (chart, chart / "templates", chart / "charts" / "db"):
        with pytest.raises(ManifestError) as caught:
            manifests.load([folder], "strict")
        assert caught.value.problems == [line]
    with pytest.raises(ManifestError) as caught:
        manifests.load([tmp_path], "strict")
    assert len(caught.value.problems) == 2, "other files are read, too"
    assert line in caught.value.problems


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
def test_encodings(tmp_path, encoding):
    file = tmp_path / "a.yaml"
    mark = b"\xff\xfe" if encoding == "utf-16-le" else b""
    file.write_bytes(
        mark + POD.format(spec="nodeName: one", meta="", container="").encode(encoding)
    )
    assert manifests.load([file], "strict").objects[0].name == "a"
