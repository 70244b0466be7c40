"""Bodies that kube-apiserver v1.36 sent for the same objects in JSON and in protobuf."""

import base64
import json
from pathlib import Path

import pytest

from moorage.serve.protobuf import envelope, wire

RECORDED = [
    json.loads(line) for line in Path(__file__).with_name("recorded.jsonl").read_text().splitlines()
]
BODIES = [pytest.param(each, id=each["name"]) for each in RECORDED if each["name"] != "watch"]


@pytest.mark.parametrize("recorded", BODIES)
def test_body_is_read_as_its_json(recorded):
    assert envelope.decode(base64.b64decode(recorded["protobuf"])) == recorded["json"]


@pytest.mark.parametrize("recorded", BODIES)
def test_json_is_written_without_loss(recorded):
    assert envelope.decode(envelope.encode(recorded["json"])) == recorded["json"]


def test_list_is_joined_from_its_items():
    (recorded,) = (each["json"] for each in RECORDED if each["name"] == "list")
    items = [{**each, "apiVersion": recorded["apiVersion"]} for each in recorded["items"]]
    encoded = [envelope.encode_message({**each, "kind": "Lease"}) for each in items]
    body = envelope.wrap_list(
        recorded["apiVersion"], recorded["kind"], recorded["metadata"], encoded
    )
    assert envelope.decode(body) == recorded


def test_watch_frame():
    (recorded,) = (each for each in RECORDED if each["name"] == "watch")
    sent, event = base64.b64decode(recorded["protobuf"]), recorded["json"]
    ours = envelope.watch_frame(event["type"], envelope.encode(event["object"]))
    assert _frames(ours)[0] == _frames(sent)[0] == (event["type"], event["object"])


def _frames(stream):
    found = []
    while stream:
        length = int.from_bytes(stream[:4], "big")
        parts = wire.texts(stream[4 : 4 + length])
        obj = envelope.decode(wire.texts(parts[2])[1])
        found.append((parts[1].decode(), obj))
        stream = stream[4 + length :]
    return found
