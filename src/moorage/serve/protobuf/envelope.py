"""The envelope of an object in protobuf: four bytes, its kind, and its message; watch frames."""

from typing import Any

from moorage.api.schema import messages
from moorage.api.schema.messages import Message
from moorage.cluster.status_errors import BadRequestError, UnsupportedMediaTypeError
from moorage.serve.protobuf import decoder, encoder, wire
from moorage.serve.protobuf.encoder import UnencodableError
from moorage.serve.protobuf.wire import WireError

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
WATCH_MEDIA_TYPE = f"{MEDIA_TYPE};stream=watch"
_MAGIC = b"k8s\x00"


def decode(body: bytes) -> dict[str, Any]:
    """The object in a body; raises BadRequestError or UnsupportedMediaTypeError."""
    if not body.startswith(_MAGIC):
        raise BadRequestError("the body of the request is not Kubernetes protobuf")
    try:
        envelope = wire.texts(body[len(_MAGIC) :])
        stated = {number: text.decode() for number, text in wire.texts(envelope[1]).items()}
        api_version, kind = stated.get(1, ""), stated.get(2, "")
        message = messages.message_of(api_version, kind)
        if message is None:
            raise UnsupportedMediaTypeError(f"{kind or 'this kind'} has no protobuf; send JSON")
        found = decoder.read(envelope.get(2, b""), message.name)
    except (WireError, LookupError, UnicodeDecodeError):
        raise BadRequestError("the body of the request is not readable as protobuf") from None
    return {"apiVersion": api_version, "kind": kind, **found}


def has_message(value: Any) -> bool:
    """Whether a value is an object of a kind that has protobuf."""
    return isinstance(value, dict) and _message_of(value) is not None


def encode(obj: dict[str, Any]) -> bytes:
    """A body with an object; raises UnencodableError."""
    return wrap(obj["apiVersion"], obj["kind"], encode_message(obj))


def encode_message(obj: dict[str, Any]) -> bytes:
    """The message of an object, without the envelope; raises UnencodableError."""
    message = _message_of(obj)
    if message is None:
        raise UnencodableError(f"{obj['kind']} of {obj['apiVersion']} has no protobuf")
    return encoder.write(obj, message.name)


def wrap(api_version: str, kind: str, message: bytes) -> bytes:
    """A body with an encoded message."""
    stated = wire.field(1, api_version.encode()) + wire.field(2, kind.encode())
    return _MAGIC + wire.field(1, stated) + wire.field(2, message) + b"\x1a\x00\x22\x00"


def wrap_list(api_version: str, kind: str, meta: dict[str, Any], items: list[bytes]) -> bytes:
    """A body with a list of encoded messages."""
    head = wire.field(1, encoder.write(meta, f"{messages.META}.ListMeta"))
    parts = [head, *(b"\x12" + wire.size(len(each)) + each for each in items)]
    return wrap(api_version, kind, b"".join(parts))


def watch_frame(type_: str, body: bytes) -> bytes:
    """An event of a watch with an encoded object: its length in four bytes, and its message."""
    event = wire.field(1, type_.encode()) + wire.field(2, wire.field(1, body))
    return len(event).to_bytes(4, "big") + event


def _message_of(obj: dict[str, Any]) -> Message | None:
    return messages.message_of(obj.get("apiVersion", ""), obj.get("kind", ""))
