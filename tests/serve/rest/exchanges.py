"""Recorded exchanges: requests, and the part of each response that an API server has to give.

The files in `exchanges/` were checked against kube-apiserver v1.36.4 with this same code. A case is
a list of steps:

    - GET: /api/v1/...        the method and the path; `$name` is a saved value
      send: {...}             the body
      media: strategic        its format: json, merge, strategic, apply, json-patch
      accept: ...             the Accept header
      code: 200
      body: {...}             what the response contains, fields may be missing here
      lacks: [a.b]            paths that the response does not have
      save: {name: a.b}       values of the response for later steps
      retry: 404              a code that an API server gives until it has caught up

In `body`, a text that begins with `~` is a regular expression, and a list has to have the same
length.
"""

import json
import re
import time
from pathlib import Path

import yaml

MEDIA = {
    "json": "application/json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json-patch": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
RETRIES = 50
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
FOLDER = Path(__file__).parent / "exchanges"


def cases():
    """All cases: file, name and steps."""
    for path in sorted(FOLDER.glob("*.yaml")):
        for name, steps in yaml.safe_load(path.read_text()).items():
            yield path.stem, name, steps


def run(steps, send):
    """Perform the steps; `send(method, path, body, media, accept)` returns code and body.

    Returns the differences of the first step that has any.
    """
    saved = {}
    for number, step in enumerate(steps, 1):
        method = next(each for each in METHODS if each in step)
        body = None
        if "send" in step:
            body = json.dumps(_filled(step["send"], saved)).encode()
        path, media = _filled(step[method], saved), MEDIA[step.get("media", "json")]
        accept = step.get("accept", "application/json")
        code, answer = send(method, path, body, media, accept)
        for _ in range(RETRIES if code == step.get("retry") else 0):
            time.sleep(0.1)
            code, answer = send(method, path, body, media, accept)
        found = []
        if code != step.get("code", 200):
            found.append(f"code {code}, expected {step.get('code', 200)}: {answer}")
        else:
            found += differences(_filled(step.get("body", {}), saved), answer)
            found += [f"{each} is there" for each in step.get("lacks", ()) if _has(answer, each)]
        if found:
            return [f"step {number} {method} {path}: {each}" for each in found]
        saved |= {name: _at(answer, where) for name, where in step.get("save", {}).items()}
    return []


def differences(expected, found, path=""):
    """How `found` differs from what is expected."""
    if isinstance(expected, dict):
        if not isinstance(found, dict):
            return [f"{path}: {found!r} is no object"]
        return [
            each
            for key, value in expected.items()
            for each in differences(value, found.get(key), f"{path}.{key}")
        ]
    if isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            return [f"{path}: {found!r}, expected {expected!r}"]
        pairs = enumerate(zip(expected, found, strict=True))
        return [each for i, (a, b) in pairs for each in differences(a, b, f"{path}[{i}]")]
    if isinstance(expected, str) and expected.startswith("~"):
        matches = isinstance(found, str) and re.search(expected[1:], found)
        return [] if matches else [f"{path}: {found!r} does not match {expected[1:]!r}"]
    return [] if expected == found else [f"{path}: {found!r}, expected {expected!r}"]


def _filled(value, saved):
    if isinstance(value, dict):
        return {key: _filled(each, saved) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, saved) for each in value]
    if isinstance(value, str):
        for name, each in saved.items():
            value = each if value == f"${name}" else value.replace(f"${name}", str(each))
            if not isinstance(value, str):
                break
    return value


def _at(value, path):
    for step in path.split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def _has(value, path):
    try:
        _at(value, path)
    except (KeyError, IndexError, TypeError):
        return False
    return True
