"""Write the table of Kubernetes' messages: the fields of every kind, their numbers and types.

    python tools/message_table.py FOLDER > src/moorage/api/schema/messages.txt

FOLDER is `staging/src/k8s.io` of a checkout of kubernetes/kubernetes. Numbers and types come from
the `generated.proto` files; the struct tags of the `types*.go` files next to them say which fields
are pointers, which are left out of JSON when they are empty, and how patches merge lists.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HEAD = """\
# The fields of Kubernetes' messages, written by tools/message_table.py. `@` begins a group version.
# A field is NUMBER NAME TYPE. `!` after a name: required; `=`: optional, but in JSON also if it is
# zero. `*T`: a pointer, so zero differs from absent; `[T]`: a list; `{T}`: a map with string keys;
# `.T`: its fields are those of the message around it. `list=`: the rule of the list for server-side
# apply, a set or the keys of a map; `patch=`: the strategy of strategic merge, and its key.
"""
FOLDERS = {
    "apimachinery/pkg/apis/meta/v1": "meta.k8s.io/v1",
    "api/core/v1": "v1",
    "api/admissionregistration/v1": "",
    "api/apidiscovery/v2": "",
    "apiextensions-apiserver/pkg/apis/apiextensions/v1": "apiextensions.k8s.io/v1",
    "kube-aggregator/pkg/apis/apiregistration/v1": "apiregistration.k8s.io/v1",
    "api/apps/v1": "",
    "api/authentication/v1": "",
    "api/authorization/v1": "",
    "api/autoscaling/v1": "",
    "api/autoscaling/v2": "",
    "api/batch/v1": "",
    "api/certificates/v1": "",
    "api/coordination/v1": "",
    "api/discovery/v1": "",
    "api/events/v1": "",
    "api/flowcontrol/v1": "",
    "api/networking/v1": "",
    "api/node/v1": "",
    "api/policy/v1": "",
    "api/rbac/v1": "",
    "api/resource/v1": "",
    "api/scheduling/v1": "",
    "api/scheduling/v1alpha2": "",
    "api/storage/v1": "",
}
# Messages with a form of their own in JSON: the codec knows their fields.
SPECIAL = {
    "k8s.io.apimachinery.pkg.api.resource.Quantity": "Quantity",
    "k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1": "Raw",
    "k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime": "MicroTime",
    "k8s.io.apimachinery.pkg.apis.meta.v1.Time": "Time",
    "k8s.io.apimachinery.pkg.runtime.RawExtension": "Raw",
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": "IntOrString",
    "k8s.io.apimachinery.pkg.apis.meta.v1.Verbs": "Strings",
    "k8s.io.api.authentication.v1.ExtraValue": "Strings",
    "k8s.io.api.authorization.v1.ExtraValue": "Strings",
    "k8s.io.api.certificates.v1.ExtraValue": "Strings",
    "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSON": "Raw",
    "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray": "OrArray",
    "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool": "OrBool",
    "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray": (
        "OrStringArray"
    ),
}
SCALARS = ("string", "int32", "int64", "bool", "bytes", "double")
TAG = re.compile(
    r"(?P<pointer>\*?)[\w.\[\]*]+\s+`json:\"(?P<json>[^\"]*)\".*?protobuf:\"\w+,(?P<number>\d+)"
)


class GoField(NamedTuple):
    """What a struct tag says about a field."""

    name: str
    pointer: bool
    inline: bool
    kept: bool
    patch: str


def go_fields(folder: Path) -> dict[tuple[str, int], GoField]:
    """The tagged fields of all structs, by message and number."""
    found, struct = {}, ""
    for line in (line for file in sorted(folder.glob("*.go")) for line in file.open()):
        if opened := re.match(r"type (\w+) struct", line):
            struct = opened[1]
        tagged = TAG.search(line)
        if not tagged or line.lstrip().startswith("//"):
            continue
        name, *options = tagged["json"].split(",")
        strategy = re.search(r'patchStrategy:"([^"]*)"', line)
        key = re.search(r'patchMergeKey:"([^"]*)"', line)
        patch = (strategy[1].replace(",", "+") if strategy else "") + (f":{key[1]}" if key else "")
        kept = not {"omitempty", "omitzero"} & set(options)
        found[struct, int(tagged["number"])] = GoField(
            name, bool(tagged["pointer"]), "inline" in options, kept, patch
        )
    return found


def group_version(folder: Path, name: str) -> str:
    if stated := FOLDERS[name]:
        return stated
    group = re.search(r'GroupName\s*=\s*"([^"]*)"', (folder / "register.go").read_text())
    assert group is not None
    return f"{group[1]}/{folder.name}"


def messages(source: Path) -> Iterator[str]:
    """The lines of the table."""
    packages = {
        "k8s.io." + name.replace("/", ".").replace("-", "_"): group_version(source / name, name)
        for name in FOLDERS
    }
    for package, version in packages.items():
        folder = source / package.removeprefix("k8s.io.").replace("_", "-").replace(".", "/")
        yield f"@{version}"
        tags = go_fields(folder)
        text = (folder / "generated.proto").read_text()
        atomic = re.findall(r"\+structType=atomic\n(?://.*\n)*message (\w+)", text)
        for name, body in re.findall(r"(?ms)^message (\w+) \{$(.*?)^\}$", text):
            if f"{package}.{name}" not in SPECIAL:
                fields = list(_fields(package, packages, name, body, tags))
                rule = " map=atomic" if name in atomic else ""
                yield f"{name}{rule}: {', '.join(fields)}".rstrip()


def _fields(
    package: str,
    packages: dict[str, str],
    message: str,
    body: str,
    tags: dict[tuple[str, int], GoField],
) -> Iterator[str]:
    markers: dict[str, list[str]] = {}
    for line in map(str.strip, body.splitlines()):
        if marker := re.match(r"// \+(\w+)(?:=(\S+))?$", line):
            markers.setdefault(marker[1], []).append(marker[2] or "")
        field = re.match(r"(optional|repeated|map<string, (\S+)>) ?(\S*) (\w+) = (\d+);", line)
        if field is None:
            continue
        label, in_map, type_, name, number = field.groups()
        if label.startswith("map"):
            type_ = in_map
        tag = tags.get((message, int(number)))
        tag = tag or GoField(name, pointer=False, inline=False, kept=False, patch="")
        optional = "optional" in markers or not (tag.kept or "required" in markers)
        mark = "!" if not optional else "=" if tag.kept else ""
        reference = _reference(type_, package, packages)
        form = "[{}]" if label == "repeated" else "{{{}}}" if in_map else "{}"
        form = "." + form if tag.inline else "*" + form if tag.pointer else form
        rules = ""
        if "map" in markers.get("listType", ()):
            rules += " list=" + "+".join(markers["listMapKey"])
        elif "set" in markers.get("listType", ()):
            rules += " list=set"
        if "atomic" in markers.get("mapType", ()) or "atomic" in markers.get("structType", ()):
            rules += " map=atomic"
        if tag.patch:
            rules += f" patch={tag.patch}"
        if not tag.inline:
            name = tag.name or name
        if tag.name != "-":
            yield f"{number} {name}{'' if tag.inline else mark} {form.format(reference)}{rules}"
        markers = {}


def _reference(type_: str, package: str, packages: dict[str, str]) -> str:
    """A type as the table names it: `Pod` in its own group version, else `v1.Pod`."""
    if type_ in SCALARS:
        return type_
    full = type_.removeprefix(".") if "." in type_ else f"{package}.{type_}"
    if full in SPECIAL:
        return SPECIAL[full]
    owner, _, name = full.rpartition(".")
    return name if owner == package else f"{packages[owner]}.{name}"


if __name__ == "__main__":
    print(HEAD + "\n".join(messages(Path(sys.argv[1]))))
