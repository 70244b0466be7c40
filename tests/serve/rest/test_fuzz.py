"""Every request gets a success or a Status of 4xx: never 5xx, never a closed connection."""

import json
from urllib.parse import quote, urlencode

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moorage.cluster.resources import BUILT_IN

PATCHES = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
]
MEDIA = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "text/plain",
    "",
    *PATCHES,
]
ACCEPT = [
    "",
    "application/json",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf",
    "*/*",
    ";;=,",
]

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(
        ["", "web", "default", "1", "500m", "1e999", "-5Gi", "Always", "a/b", "é\u0000"]
    )
    | st.text(max_size=8)
)
FIELDS = [
    "metadata",
    "name",
    "namespace",
    "labels",
    "annotations",
    "uid",
    "resourceVersion",
    "generateName",
    "finalizers",
    "ownerReferences",
    "managedFields",
    "spec",
    "status",
    "containers",
    "initContainers",
    "resources",
    "requests",
    "limits",
    "cpu",
    "memory",
    "replicas",
    "selector",
    "matchLabels",
    "matchExpressions",
    "template",
    "ports",
    "conditions",
    "type",
    "key",
    "values",
    "operator",
    "tolerations",
    "affinity",
    "nodeSelector",
    "volumes",
    "target",
    "deleteOptions",
    "gracePeriodSeconds",
    "preconditions",
    "propagationPolicy",
    "kind",
    "apiVersion",
    "data",
    "stringData",
    "value",
    "priorityClassName",
    "schedulingGates",
    "versions",
    "names",
    "group",
    "scope",
    "op",
    "path",
    "from",
    "$patch",
    "$retainKeys",
    "$setElementOrder/containers",
    "$deleteFromPrimitiveList/finalizers",
    "minAvailable",
    "topologySpreadConstraints",
    "strategy",
    "rollingUpdate",
    "involvedObject",
    "series",
    "capacity",
    "allocatable",
    "addresses",
    "image",
    "items",
]
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5)
    ),
    max_leaves=25,
)


@st.composite
def objects(draw):
    """An object of a kind with unexpected values in some fields."""
    resource = draw(st.sampled_from(BUILT_IN))
    meta = {"name": draw(st.sampled_from(["web", "x", "A b", ""]))}
    if draw(st.booleans()):
        meta |= draw(st.dictionaries(st.sampled_from(FIELDS[2:11]), values, max_size=3))
    container = {"name": "app", "image": "nginx"}
    if draw(st.booleans()):
        container |= draw(st.dictionaries(st.sampled_from(FIELDS), values, max_size=2))
    pod = {"containers": [container]}
    if draw(st.booleans()):
        pod |= draw(st.dictionaries(st.sampled_from(FIELDS), values, max_size=2))
    spec = draw(
        st.just(pod)
        | values
        | st.fixed_dictionaries(
            {
                "replicas": scalars,
                "selector": st.just({"matchLabels": {"a": "b"}}) | values,
                "template": st.just({"metadata": {"labels": {"a": "b"}}, "spec": pod}),
            }
        )
    )
    obj = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": meta,
        "spec": spec,
    }
    if draw(st.booleans()):
        obj["status"] = draw(values)
    return resource, obj


json_patches = st.lists(
    st.fixed_dictionaries(
        {
            "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "odd"]),
            "path": st.sampled_from(
                [
                    "",
                    "/",
                    "/spec",
                    "/metadata/labels/a",
                    "/spec/containers/0",
                    "/spec/containers/-",
                    "/metadata/name",
                    "/metadata",
                    "/status/conditions/9",
                    "/spec/replicas",
                    "x",
                ]
            ),
            "from": st.sampled_from(["/spec", "/metadata", "/spec/containers/0", ""]),
            "value": values,
        }
    ),
    max_size=4,
)
queries = st.dictionaries(
    st.sampled_from(
        [
            "labelSelector",
            "fieldSelector",
            "limit",
            "continue",
            "resourceVersion",
            "dryRun",
            "resourceVersionMatch",
            "sendInitialEvents",
            "allowWatchBookmarks",
            "fieldManager",
            "force",
            "gracePeriodSeconds",
            "propagationPolicy",
            "includeObject",
            "pretty",
        ]
    ),
    st.sampled_from(
        [
            "",
            "0",
            "1",
            "2",
            "-1",
            "x",
            "true",
            "All",
            "Exact",
            "NotOlderThan",
            "a=b",
            "a in (b,c)",
            "!a",
            "a in (",
            "metadata.name=web",
            "spec.nodeName!=x",
            "status.phase=Running",
            "===",
            "99999999999999999999",
            "Orphan",
            "Object",
            "eyJ2IjoxfQ",
            "WzEsIiIsIngiXQ",
        ]
    )
    | st.text(max_size=6),
    max_size=4,
)


@st.composite
def places(draw):
    """A path: of a collection, an object, a subresource, or an unknown one."""
    resource = draw(st.sampled_from(BUILT_IN))
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else "/api/v1"
    if draw(st.booleans()):
        root += f"/namespaces/{draw(st.sampled_from(['default', 'x', 'kube-system']))}"
    path = f"{root}/{resource.plural}"
    if draw(st.booleans()):
        path += f"/{draw(st.sampled_from(['web', 'x', '%00', '..', 'A b']))}"
        if draw(st.booleans()):
            path += "/" + draw(
                st.sampled_from(["status", "scale", "binding", "eviction", "finalize", "log", ""])
            )
    nonsense = st.text(max_size=12).map(lambda text: "/" + text)
    return quote(draw(st.just(path) | st.just(path) | st.just(path) | nonsense), safe="/%")


def check(answer):
    assert answer.status < 500, answer.body
    if answer.status >= 400:
        told = answer.json
        assert (told["kind"], told["code"]) == ("Status", answer.status)
        assert told["message"]
        assert told["reason"]


QUIET = settings(
    max_examples=settings.default.max_examples * 2,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@QUIET
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"]),
    place=places(),
    query=queries,
    body=st.none() | st.binary(max_size=40) | values.map(lambda v: json.dumps(v).encode()),
    media=st.sampled_from(MEDIA),
    accept=st.sampled_from(ACCEPT),
)
def test_any_request(server, method, place, query, body, media, accept):
    path = f"{place}?{urlencode(query)}" if query else place
    answer = server.request(method, path, body, media=media, Accept=accept)
    if method != "HEAD":
        check(answer)


@settings(QUIET, max_examples=settings.default.max_examples)
@given(made=objects(), patch=json_patches | values, media=st.sampled_from(PATCHES), query=queries)
def test_objects_and_patches(server, made, patch, media, query):
    resource, obj = made
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else "/api/v1"
    if resource.namespaced:
        root += "/namespaces/default"
    many = f"{root}/{resource.plural}"
    answer = server.post(many, obj)
    check(answer)
    # If it is there, it can be shown, changed and deleted without trouble, too.
    check(server.get(f"{many}?{urlencode(query)}"))
    check(server.get(many, Accept=ACCEPT[2]))
    check(server.put(f"{many}/web", obj))
    for part in ("", "/status", "/scale"):
        check(server.patch(f"{many}/web{part}?fieldManager=me&force=true", patch, media))
    check(server.get(many, Accept=ACCEPT[2]))
    check(server.delete(f"{many}/web?gracePeriodSeconds=0"))
