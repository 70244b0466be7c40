"""The fields of every kind of Kubernetes, read from `messages.txt`.

A message is the type of an object or of a part of it. The table is the only place that lists
fields: protobuf, the OpenAPI documents and the validation of unknown fields read it.
"""

import re
from functools import cache
from importlib import resources
from typing import NamedTuple

SCALARS = ("string", "int32", "int64", "bool", "bytes", "double")
# Types with a form of their own in JSON; `Or...` are those of JSON schemas.
SPECIAL = (
    *("Quantity", "Time", "MicroTime", "IntOrString", "Raw", "Strings"),
    *("OrArray", "OrBool", "OrStringArray"),
)
META = "meta.k8s.io/v1"


class Field(NamedTuple):
    """A field of a message."""

    number: int
    name: str
    # A scalar, a special type, or the full name of a message.
    type: str
    is_list: bool = False
    is_map: bool = False
    # Whether zero differs from absent.
    is_pointer: bool = False
    # Whether its fields are those of the message around it.
    is_inline: bool = False
    is_required: bool = False
    # Whether JSON has the field also if it is zero.
    is_kept: bool = False
    # `set`, or the keys of the items of a list.
    list_keys: tuple[str, ...] = ()
    is_atomic: bool = False
    patch_strategy: tuple[str, ...] = ()
    patch_key: str = ""


class Message(NamedTuple):
    """A type with fields; the full name is `apps/v1.Deployment`."""

    name: str
    fields: tuple[Field, ...]
    is_atomic: bool = False

    @property
    def api_version(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def kind(self) -> str:
        return self.name.rpartition(".")[2]


@cache
def table() -> dict[str, Message]:
    """All messages by full name."""
    found: dict[str, Message] = {}
    api_version = ""
    text = resources.files(__package__).joinpath("messages.txt").read_text("utf-8")
    for line in text.splitlines():
        if line.startswith("@"):
            api_version = line[1:]
        elif not line.startswith("#"):
            head, _, fields = line.partition(":")
            name, _, rule = head.partition(" ")
            full = f"{api_version}.{name}"
            listed = (_field(each, api_version) for each in fields.strip().split(", ") if each)
            found[full] = Message(full, tuple(listed), is_atomic=bool(rule))
    return found


def message(name: str) -> Message:
    """The message of a full name; raises KeyError."""
    return table()[name]


def message_of(api_version: str, kind: str) -> Message | None:
    """The message of a kind. Kinds such as Status and DeleteOptions have any version."""
    found = table()
    return found.get(f"{api_version}.{kind}") or found.get(f"{META}.{kind}")


_FORM = re.compile(r"([.*]?)([\[{]?)([^\]}]+)")


def _field(text: str, api_version: str) -> Field:
    number, name, form, *rules = text.split(" ")
    parsed = _FORM.match(form)
    assert parsed is not None, text
    prefix, bracket, type_ = parsed.groups()
    if type_ not in SCALARS and type_ not in SPECIAL and "." not in type_:
        type_ = f"{api_version}.{type_}"
    given = dict(rule.split("=") for rule in rules)
    strategy, _, key = given.get("patch", "").partition(":")
    return Field(
        int(number),
        name.rstrip("!="),
        type_,
        is_list=bracket == "[",
        is_map=bracket == "{",
        is_pointer=prefix == "*",
        is_inline=prefix == ".",
        is_required=name.endswith("!"),
        is_kept=name.endswith(("!", "=")),
        list_keys=tuple(given["list"].split("+")) if "list" in given else (),
        is_atomic="map" in given,
        patch_strategy=tuple(strategy.split("+")) if strategy else (),
        patch_key=key,
    )
