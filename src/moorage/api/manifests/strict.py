"""Unknown fields of objects in files.

A misspelt field is not an error for a decoder: `nodeselector:` selects nothing, and the pod is
placed anywhere. An API server refuses it (`kubectl apply --validate=strict`), and so do the
commands that read files. The names come from Kubernetes' OpenAPI documents
(`kubernetes_fields.txt`), so that a field that no scheduler reads is known as well.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from moorage.api import kinds, validation
from moorage.api.manifests.errors import Problem
from moorage.api.validation.field_errors import join_path

# `scheduling.k8s.io/v1alpha2` of 1.36; the table has types of a later version.
POD_GROUPS = """
PodGroup: apiVersion, kind, metadata ObjectMeta, spec! PodGroupSpec, status
PodGroupSpec: podGroupTemplateRef PodGroupTemplateReference, schedulingPolicy! PodGroupPolicy, \
schedulingConstraints PodGroupConstraints, resourceClaims [PodGroupResourceClaim], \
disruptionMode, priorityClassName, priority
PodGroupTemplateReference: workload WorkloadReference
WorkloadReference: workloadName!, podGroupTemplateName!
PodGroupPolicy: basic PodGroupBasicPolicy, gang PodGroupGangPolicy
PodGroupBasicPolicy:
PodGroupGangPolicy: minCount!
PodGroupConstraints: topology [TopologyConstraint]
PodGroupResourceClaim: name!, resourceClaimName, resourceClaimTemplateName
Workload: apiVersion, kind, metadata ObjectMeta, spec! PodGroupWorkloadSpec
PodGroupWorkloadSpec: controllerRef WorkloadController, podGroupTemplates! [PodGroupTemplate]
WorkloadController: apiGroup, kind!, name!
PodGroupTemplate: name!, schedulingPolicy! PodGroupPolicy, \
schedulingConstraints PodGroupConstraints, resourceClaims [PodGroupResourceClaim], \
disruptionMode, priorityClassName, priority
"""
# Moorage's own kinds, and one of scheduler-plugins; what is not listed here is checked where it is
# decoded.
OWN = """
NodePool: apiVersion, kind, metadata ObjectMeta, spec NodePoolSpec, status
NodePoolSpec: count!, zones, devices, template! NodePoolTemplate
NodePoolTemplate: metadata ObjectMeta, spec NodeSpec, status NodeStatus
Queue: apiVersion, kind, metadata ObjectMeta, spec QueueSpec, status
QueueSpec: parent, guaranteed, max, weight, namespaces
ElasticQuota: apiVersion, kind, metadata ObjectMeta, spec ElasticQuotaSpec, status
ElasticQuotaSpec: min, max
"""
_FIELD = re.compile(r"(?P<name>\w+)!?(?: (?P<form>[\[{]?)(?P<type>\w+)[\]}]?)?")


class _Field(NamedTuple):
    form: str
    type: str


Fields = dict[str, _Field]


@cache
def _types() -> dict[str, Fields]:
    text = resources.files(__package__).joinpath("kubernetes_fields.txt").read_text("utf-8")
    found = {}
    for line in (text + POD_GROUPS + OWN).splitlines():
        if line and not line.startswith("#"):
            name, _, listed = line.partition(": ")
            matches = [match for each in listed.split(", ") if (match := _FIELD.fullmatch(each))]
            found[name] = {
                match["name"]: _Field(match["form"] or "", match["type"] or "") for match in matches
            }
    return found


def field_errors(type_name: str, document: object, path: str = "") -> Iterator[Problem]:
    """Every unknown field of a document."""
    types = _types()
    known = types.get(type_name)
    if known is None or not isinstance(document, Mapping):
        return  # A kind without a table; a value of the wrong type is refused by the decoder.
    if type(document) is dict and _is_known(document, known, types):
        return
    for name, value in document.items():
        field = known.get(name) if isinstance(name, str) else None
        if field is None:
            yield join_path(path, str(name)), _unknown(str(name), known)
        elif field.type and value:
            yield from _below(field, value, f"{path}.{name}" if path else name)


def _is_known(document: dict[Any, Any], known: Fields, types: dict[str, Fields]) -> bool:
    """Whether a document has known fields only: most do, so this is quick and names no path."""
    for name, value in document.items():
        field = known.get(name)
        if field is None:
            return False
        if field.type and value and (inner := types.get(field.type)) is not None:
            if field.form and type(value) is not (list if field.form == "[" else dict):
                return False
            parts = (value,) if not field.form else value if field.form == "[" else value.values()
            for part in parts:
                if type(part) is not dict or not _is_known(part, inner, types):
                    return False
    return True


def document_errors(document: object) -> Iterator[Problem]:
    """The same, and its invalid values, for the kind that a document states.

    A document that an API server has stored is not looked at.
    """
    if isinstance(document, Mapping):
        api_version, kind = document.get("apiVersion"), document.get("kind")
        known = kinds.known(str(api_version), str(kind))
        if known is not None and not is_stored(document):
            yield from field_errors(known.name, document)
            for error in validation.validate(known.name, document):
                yield error.field, error.message


def is_stored(document: Mapping[str, Any]) -> bool:
    """Whether an API server has stored an object, and so has validated it."""
    meta = document.get("metadata")
    return isinstance(meta, Mapping) and bool(meta.get("uid"))


def _below(field: _Field, value: Any, path: str) -> Iterator[Problem]:
    if field.form == "[":
        for index, each in enumerate(value if isinstance(value, list | tuple) else ()):
            yield from field_errors(field.type, each, f"{path}[{index}]")
    elif field.form == "{":
        for key, each in value.items() if isinstance(value, Mapping) else ():
            yield from field_errors(field.type, each, join_path(path, str(key)))
    else:
        yield from field_errors(field.type, value, path)


def _unknown(name: str, known: Fields) -> str:
    by_lower = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.75)
    longer = [each for lower, each in by_lower.items() if lower.startswith(name.lower())]
    meant = by_lower[close[0]] if close else longer[0] if len(name) > 3 and longer else ""
    return "unknown field" + (f'; did you mean "{meant}"?' if meant else "")
