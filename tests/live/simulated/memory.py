"""The collections of a live scheduler, and how large they are.

After many pods came and went, a collection that is still large is a leak, unless it has a limit.
"""

import types
from collections import deque
from enum import Enum

import numpy as np

COLLECTIONS = (dict, list, set, frozenset, tuple, deque)
SKIPPED = (type, types.ModuleType, types.FunctionType, types.MethodType, Enum)


def sizes(root):
    """The sizes of all collections below an object of ours, by their path of attributes."""
    found, seen, stack = {}, set(), [("", root)]
    while stack:
        path, obj = stack.pop()
        if id(obj) in seen or isinstance(obj, SKIPPED):
            continue
        seen.add(id(obj))
        if isinstance(obj, np.ndarray):
            found[path] = max(found.get(path, 0), len(obj) if obj.ndim else 1)
        elif isinstance(obj, COLLECTIONS):
            found[path] = max(found.get(path, 0), len(obj))
            members = [*obj, *obj.values()] if isinstance(obj, dict) else list(obj)
            stack += ((path, member) for member in members)
        elif type(obj).__module__.startswith("moorage."):
            stack += ((f"{path}.{name}", value) for name, value in attributes(obj))
    return found


def attributes(obj):
    yield from getattr(obj, "__dict__", {}).items()
    for cls in type(obj).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if not name.startswith("__") and hasattr(obj, name):
                yield name, getattr(obj, name)
