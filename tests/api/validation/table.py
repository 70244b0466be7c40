"""The table of objects and the answers of kube-apiserver v1.36 to them.

`cases/*.yaml` has the objects, as changes of the valid ones in `bases.yaml`. The files
`*answers.json` have the answers, recorded with `python -m tests.api.validation.record`.
"""

import copy
import functools
import json
from pathlib import Path

import yaml

CASES = Path(__file__).parent / "cases"
ANSWERS = Path(__file__).parent / "answers.json"
UPDATE_ANSWERS = Path(__file__).parent / "update_answers.json"
ADMISSION_ANSWERS = Path(__file__).parent / "admission_answers.json"
FAMILIES = ("pods", "resources", "placement", "volumes", "workloads", "policies")


@functools.cache
def _read(name):
    return yaml.load((CASES / f"{name}.yaml").read_text(), yaml.CSafeLoader)


def base(kind):
    return copy.deepcopy(_read("bases")[kind])


def changed(obj, changes):
    """A copy of an object with other values at some paths."""
    obj = copy.deepcopy(obj)
    for path, value in changes.items():
        *steps, last = (step.replace("~1", "/") for step in path.split("/"))
        holder = obj
        for step in steps:
            if isinstance(holder, list):
                holder = holder[int(step)]
            else:
                holder = holder.setdefault(step, [] if last == "-" and step == steps[-1] else {})
        if last == "-":
            holder.append(value)
        elif isinstance(holder, list):
            holder[int(last)] = value
        elif value is None:
            holder.pop(last, None)
        else:
            holder[last] = copy.deepcopy(value)
    return obj


def created():
    """Every object to create, by its name in the table."""
    return {
        f"{kind}: {name}": changed(base(kind), changes)
        for family in FAMILIES
        for kind, cases in _read(family).items()
        for name, changes in cases.items()
    }


def updated():
    """Every update: the object to create, and the changes of what was stored."""
    return {
        f"{kind}: {name}": (changed(base(kind), case.get("from", {})), case["to"])
        for kind, cases in _read("updates").items()
        for name, case in cases.items()
    }


def admitted():
    """Every admission: the objects that exist, the object to create, and the paths to show."""
    return {
        f"{kind}: {name}": (
            [changed(base(other), changes) for other, changes in case["given"].items()],
            changed(base(kind), case["object"]),
            case.get("show", []),
        )
        for kind, cases in _read("admission").items()
        for name, case in cases.items()
    }


def shown(obj, paths):
    """The values at some paths of an object."""
    found = {}
    for path in paths:
        value = obj
        for step in path.split("/"):
            value = value[int(step)] if isinstance(value, list) else (value or {}).get(step)
        found[path] = value
    return found


def answers(file):
    """The recorded answers by name: code, message and causes."""
    return json.loads(file.read_text())
