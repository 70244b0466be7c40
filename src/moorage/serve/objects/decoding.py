"""Request bodies: JSON or YAML bytes to values, with a limit on nesting."""

from typing import Any

import msgspec
import yaml

from moorage.serve.status_errors import BadRequestError

MAX_DEPTH = 100
"""The limit of nesting, far above any real object: it protects recursive functions."""


def decode_json(body: bytes) -> Any:
    """The value of a JSON text."""
    try:
        value = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise BadRequestError(f"the body of the request is not JSON: {error}") from None
    except RecursionError:
        raise _too_deep() from None
    # Counting brackets is fast; only a body with many of them is walked.
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise _too_deep()
    return value


def decode_yaml(body: bytes) -> Any:
    """The value of a YAML document; aliases are rejected because they can expand without limit."""
    try:
        text = body.decode()
        depth = 0
        for event in yaml.parse(text, yaml.CSafeLoader):
            if isinstance(event, yaml.AliasEvent):
                raise BadRequestError("the body of the request has YAML aliases; write them out")
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise _too_deep()
        value = yaml.load(text, yaml.CSafeLoader)
        # Through JSON, which rejects or converts dates, sets and keys that are not strings.
        return msgspec.json.decode(msgspec.json.encode(value))
    except (yaml.YAMLError, UnicodeDecodeError, msgspec.MsgspecError, TypeError, ValueError) as e:
        line = " ".join(str(e).split())
        raise BadRequestError(f"the body of the request is not YAML: {line[:200]}") from None


def without_nulls(value: Any) -> Any:
    """The value without null fields: an API server treats null as absent."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [without_nulls(each) for each in value]
    return value


def _depth(value: Any) -> int:
    deepest, layer = 0, [value]
    while layer:
        deepest += 1
        if deepest > MAX_DEPTH:
            break
        layer = [
            inner
            for each in layer
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
    return deepest


def _too_deep() -> BadRequestError:
    return BadRequestError(f"the body of the request is nested more than {MAX_DEPTH} levels deep")
