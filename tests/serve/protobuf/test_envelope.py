"""Protobuf bodies as Go clients send them, and objects that cannot be encoded."""

import pytest

from moorage.cluster.status_errors import BadRequestError, UnsupportedMediaTypeError
from moorage.serve.protobuf import encoder, envelope


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    """One encoded field: a number, a string, or a message as a list of fields."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value % 2**64)
    if isinstance(value, list):
        value = b"".join(value)
    elif isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def body(api_version, kind, *fields):
    stated = field(1, [field(1, api_version), field(2, kind)])
    return b"k8s\x00" + stated + field(2, b"".join(fields)) + field(3, "") + field(4, "")


META = field(1, [field(1, "web"), field(2, ""), field(3, "default"), field(8, [])])
EMPTY_TEXT = [field(1, 1), field(2, 0), field(3, "")]  # IntOrString{Type: String}
SERVICE_PORT = field(1, [field(1, ""), field(2, ""), field(3, 80), field(4, EMPTY_TEXT)])


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        pytest.param(
            body("policy/v1", "Eviction", META, field(2, [field(1, 30), field(4, "Orphan")])),
            {"deleteOptions": {"gracePeriodSeconds": 30, "propagationPolicy": "Orphan"}},
            id="an eviction",
        ),
        pytest.param(
            body("v1", "Secret", META, field(2, [field(1, "k"), field(2, b"\x00\xff")])),
            {"data": {"k": "AP8="}},
            id="bytes become base64",
        ),
        pytest.param(
            body(
                "policy/v1",
                "PodDisruptionBudget",
                META,
                field(2, [field(1, [field(1, 1), field(2, 0), field(3, "50%")])]),
            ),
            {"spec": {"minAvailable": "50%"}},
            id="a number or a text",
        ),
        pytest.param(
            body(
                "v1",
                "Pod",
                META,
                field(
                    2,
                    [
                        field(
                            2,
                            [
                                field(1, "app"),
                                field(4, ""),
                                field(8, [field(2, [field(1, "cpu"), field(2, [field(1, "1")])])]),
                            ],
                        ),
                        field(25, -5),
                    ],
                ),
            ),
            {
                "spec": {
                    "containers": [
                        {"name": "app", "args": [""], "resources": {"requests": {"cpu": "1"}}}
                    ],
                    "priority": -5,
                }
            },
            id="lists, maps, quantities and negative numbers",
        ),
        pytest.param(
            body("v1", "Service", META, field(2, [SERVICE_PORT])),
            {"spec": {"ports": [{"port": 80, "targetPort": ""}]}},
            id="an empty text where a number is possible",
        ),
        pytest.param(
            body("apps/v1", "Deployment", META, field(3, [field(99, "x")])),
            {"status": {}},
            id="unknown fields are skipped",
        ),
    ],
)
def test_what_is_read(sent, read):
    found = envelope.decode(sent)
    assert found.pop("metadata") == {"name": "web", "namespace": "default"}
    del found["apiVersion"], found["kind"]
    assert found == read


@pytest.mark.parametrize(
    ("sent", "error", "text"),
    [
        pytest.param(b"{}", BadRequestError, "is not Kubernetes protobuf", id="something else"),
        pytest.param(body("v1", "Pod", META)[:-20], BadRequestError, "not readable", id="cut off"),
        pytest.param(
            body("v1", "Odd", META),
            UnsupportedMediaTypeError,
            "Odd has no protobuf",
            id="a kind",
        ),
        pytest.param(
            body("v1", "Pod", META, field(2, [field(1, [b"\x0a\x05x"])])),
            BadRequestError,
            "not readable",
            id="a text that is cut off",
        ),
        pytest.param(
            body("v1", "Pod", META, field(2, [field(10, b"\xff")])),
            BadRequestError,
            "not readable",
            id="a text that is not UTF-8",
        ),
    ],
)
def test_what_is_refused(sent, error, text):
    with pytest.raises(error, match=text):
        envelope.decode(sent)


def test_field_of_a_wrong_type_is_not_encoded():
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"priority": "high"}}
    with pytest.raises(encoder.UnencodableError, match=r"v1\.Pod has no protobuf"):
        envelope.encode(pod)
