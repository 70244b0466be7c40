"""Write the table of Kubernetes' field names that manifests are validated against.

    python tools/field_table.py FOLDER > src/moorage/api/manifests/kubernetes_fields.txt

FOLDER is `api/openapi-spec/v3` of a checkout of kubernetes/kubernetes. The table has the kinds that
Moorage reads and the types below them, one per line.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from moorage.api.kinds import READ

# Kinds that are not read yet, or by plugins only.
MORE = (
    "resource.v1.DeviceClass",
    "resource.v1.ResourceClaim",
    "resource.v1.ResourceClaimTemplate",
    "resource.v1.ResourceSlice",
    "core.v1.LimitRange",
    "core.v1.ResourceQuota",
    "node.v1.RuntimeClass",
    "autoscaling.v2.HorizontalPodAutoscaler",
)
HEAD = """\
# Kubernetes' types and their fields, written by tools/field_table.py. `!`: required; `[T]`: a list
# of T; `{T}`: a map to T. A field without a type holds a plain value, or anything.
"""


def schemas(folder: Path) -> dict[str, dict[str, Any]]:
    """All schemas by full name."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(folder.glob("*_openapi.json")):
        found |= json.loads(file.read_text()).get("components", {}).get("schemas", {})
    return found


def short(name: str) -> str:
    return name.rpartition(".")[2]


def reference(schema: dict[str, Any]) -> str:
    """The full name of the type that a schema refers to; empty for plain values."""
    for each in (schema, *schema.get("allOf", ())):
        if "$ref" in each:
            return str(each["$ref"]).rpartition("/")[2]
    return ""


def typed(schema: dict[str, Any]) -> tuple[str, str]:
    """The form of a field's type, with {} for its name, and the full name."""
    if schema.get("type") == "array":
        return "[{}]", reference(schema["items"])
    if schema.get("type") == "object" and "additionalProperties" in schema:
        return "{{{}}}", reference(schema["additionalProperties"])
    return "{}", reference(schema)


def lines(every: dict[str, dict[str, Any]]) -> Iterator[str]:
    read = (
        f"{kind.group.removesuffix('.k8s.io') or 'core'}.{kind.version}.{kind.name}"
        for kind in READ.values()
    )
    names = dict.fromkeys(f"io.k8s.api.{name}" for name in (*read, *MORE))
    kinds = {short(name): name for name in names}

    def label(name: str) -> str:
        """The name in the table; a kind has its own, `ResourceClaim` of core is another type."""
        same = kinds.get(short(name), name) == name
        return short(name) if same else name.split(".")[-3].title() + short(name)

    todo = [name for name in names if name in every]
    seen: dict[str, str] = {}
    while todo:
        name = todo.pop(0)
        if label(name) in seen:
            assert seen[label(name)] == name, f"two types are called {label(name)}"
            continue
        seen[label(name)] = name
        required, fields = every[name].get("required", ()), []
        for field, schema in every[name]["properties"].items():
            form, below = typed(schema)
            if not every.get(below, {}).get("properties"):
                below = ""  # Quantity, Time, IntOrString and the like.
            todo += [below] if below else []
            mark = "!" if field in required else ""
            fields.append(f"{field}{mark}" + (f" {form.format(label(below))}" if below else ""))
        yield f"{label(name)}: {', '.join(fields)}"


if __name__ == "__main__":
    print(HEAD + "\n".join(sorted(lines(schemas(Path(sys.argv[1]))))))
