"""Validation of the schemas that a CustomResourceDefinition states, with their rules in CEL.

A rule that does not compile, or that could cost too much, refuses the definition.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from moorage.cel import schemas
from moorage.cel.cost_estimate import UNLIMITED
from moorage.cluster.objects import correlation, field_paths, structural_schemas
from moorage.cluster.objects.custom_rules import RULES, CompiledRule
from moorage.cluster.status_errors import StatusCause
from moorage.controllers.objects import Object

Schema = dict[str, Any]

_RULE_LIMIT, _TOTAL_LIMIT = 10_000_000, 100_000_000
_REASONS = (
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
)
_ADVICE = (
    "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays,"
    " maps, and strings are declared"
)


def validate(definition: Object) -> Iterator[StatusCause]:
    """The errors of the schemas of all versions."""
    versions = [each for each in definition["spec"].get("versions") or () if isinstance(each, dict)]
    stated = [(each.get("schema") or {}).get("openAPIV3Schema") for each in versions]
    # The API server keeps a schema that all versions share in one place, and names that place.
    if stated and all(each == stated[0] for each in stated):
        paths = ["spec.validation.openAPIV3Schema"]
    else:
        paths = [f"spec.versions[{i}].schema.openAPIV3Schema" for i in range(len(stated))]
    for path, schema in zip(paths, stated, strict=False):
        if isinstance(schema, dict):
            yield from _validate_schema(schema, path)


def _validate_schema(schema: Schema, path: str) -> list[StatusCause]:
    structure = structural_schemas.errors(schema, path)
    walk = _Walk(checks_rules=not structure)
    walk.visit(schema, _Place(path, is_resource=True, cardinality=1))
    causes = [*structure, *walk.schema_causes, *walk.rule_causes]
    if walk.total > _TOTAL_LIMIT:
        what = "contributed to estimated rule cost total exceeding cost limit"
        costly = sorted(walk.costly, key=lambda each: -each[1])[:4]
        causes += [_forbidden(rule, f"{what} for entire OpenAPIv3 schema") for rule, _ in costly]
        name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        causes.append(_forbidden(path, _too_costly(name, walk.total, _TOTAL_LIMIT)))
    return causes


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a schema is: how often its values can occur, and whether they have counterparts.

    `uncorrelated` is the path of the schema around it whose elements have no counterparts in the
    stored object, so that there is no `oldSelf`. Without a limit `cardinality` is None.
    """

    path: str
    is_resource: bool
    cardinality: int | None
    uncorrelated: str = ""

    def inside(self, path: str, schema: Schema, inner: Schema) -> "_Place":
        factor: int | None = 1
        if schema.get("type") == "array":
            factor = schema.get("maxItems")
        elif schema.get("type") == "object" and schema.get("additionalProperties") is not None:
            factor = schema.get("maxProperties")
        known = self.cardinality is not None and factor is not None
        cardinality = (self.cardinality or 0) * max(0, factor or 0) if known else None
        embedded = bool(inner.get("x-kubernetes-embedded-resource"))
        return _Place(path, embedded, cardinality, self.uncorrelated)


@dataclass(slots=True)
class _Walk:
    """All schemas of a version, innermost first, as the API server lists their errors."""

    checks_rules: bool
    schema_causes: list[StatusCause] = field(default_factory=list)
    rule_causes: list[StatusCause] = field(default_factory=list)
    total: int = 0
    costly: list[tuple[str, int]] = field(default_factory=list)

    def visit(self, schema: Schema, place: _Place) -> None:
        before = len(self.schema_causes)
        more, items = schema.get("additionalProperties"), schema.get("items")
        if isinstance(more, dict):
            self.visit(more, place.inside(f"{place.path}.additionalProperties", schema, more))
        for name, inner in (schema.get("properties") or {}).items():
            if isinstance(inner, dict):
                path = f"{place.path}.properties[{name}]"
                self.visit(inner, place.inside(path, schema, inner))
        if isinstance(items, dict):
            inner_place = place.inside(f"{place.path}.items", schema, items)
            if not correlation.has_keys(schema):
                inner_place = replace(inner_place, uncorrelated=place.path)
            self.visit(items, inner_place)
        self.schema_causes += structural_schemas.keyword_errors(schema, place.path)
        stated = schema.get(RULES) or ()
        for i, rule in enumerate(stated):
            self.schema_causes += _statement_errors(rule, schema, f"{place.path}.{RULES}[{i}]")
        if not stated or not self.checks_rules or len(self.schema_causes) > before:
            return
        declaration = schemas.declare(schema, "selfType", is_resource=place.is_resource)
        if declaration is not None:
            count = place.cardinality
            if count is None:
                count = schemas.MAX_REQUEST_BYTES // (declaration.min_size + 1)
            for i, rule in enumerate(stated):
                path = f"{place.path}.{RULES}[{i}]"
                compiled = CompiledRule(rule, schema, declaration)
                self._check_cost(compiled, count, path)
                self._check_rule(compiled, place, path)

    def _check_rule(self, rule: CompiledRule, place: _Place, path: str) -> None:
        for where, error in (("rule", rule.error), ("messageExpression", rule.message_error)):
            if error:
                shown = f"Invalid value: {_shown(rule.stated)}: {error}"
                cause = StatusCause("FieldValueInvalid", shown, f"{path}.{where}")
                self.rule_causes.append(cause)
        if rule.rule is not None and rule.rule.uses_old_self:
            if place.uncorrelated:
                why = "oldSelf cannot be used on the uncorrelatable portion of the schema within"
                text = f"{why} {place.uncorrelated}"
                self.rule_causes.append(_invalid(f"{path}.rule", rule.stated["rule"], text))
        elif "optionalOldSelf" in rule.stated:
            why = "may not be set if oldSelf is not used in rule"
            stated = rule.stated["optionalOldSelf"]
            self.rule_causes.append(_invalid(f"{path}.optionalOldSelf", stated, why))

    def _check_cost(self, rule: CompiledRule, count: int, path: str) -> None:
        if rule.rule is not None:
            self._charge("rule", f"{path}.rule", min(UNLIMITED, rule.rule.max_cost * count))
        if rule.message is not None:
            self._charge("messageExpression", f"{path}.messageExpression", rule.message.max_cost)

    def _charge(self, what: str, path: str, cost: int) -> None:
        if cost > _RULE_LIMIT:
            text = _too_costly(f"estimated {what} cost", cost, _RULE_LIMIT)
            self.rule_causes.append(_forbidden(path, text))
        self.total = min(UNLIMITED, self.total + cost)
        if cost >= _TOTAL_LIMIT // 100:
            self.costly.append((path, cost))


def _statement_errors(rule: Any, schema: Schema, path: str) -> Iterator[StatusCause]:
    """The errors of a rule that do not depend on its expressions."""
    text, message = (str(rule.get(key) or "") for key in ("rule", "message"))
    expression, target = (str(rule.get(key) or "") for key in ("messageExpression", "fieldPath"))
    if not text.strip():
        yield _required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield _invalid(f"{path}.message", message, "must be non-empty if specified")
    elif _has_newlines(message.strip()):
        yield _invalid(f"{path}.message", message, "must not contain line breaks")
    elif _has_newlines(text.strip()) and not message.strip():
        why = "message must be specified if rule contains line breaks"
        yield _required(f"{path}.message", why)
    if expression and not expression.strip():
        why = "messageExpression must be non-empty if specified"
        yield _required(f"{path}.messageExpression", why)
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        options = ", ".join(f'"{each}"' for each in _REASONS)
        text = f'Unsupported value: "{reason}": supported values: {options}'
        yield StatusCause("FieldValueNotSupported", text, f"{path}.reason")
    if target and not target.strip():
        yield _invalid(f"{path}.fieldPath", target, "must be non-empty if specified")
    if _has_newlines(target):
        yield _invalid(f"{path}.fieldPath", target, "must not contain line breaks")
    if target and field_paths.normalized(target, schema) is None:
        yield _invalid(f"{path}.fieldPath", target, "must be a valid path")


def _shown(rule: dict[str, Any]) -> str:
    """A rule as the API server shows it: all fields under their names in Go, escaped for HTML."""
    text = {key: rule.get(key, "") for key in ("rule", "message", "messageExpression")}
    fields = {
        "Rule": text["rule"],
        "Message": text["message"],
        "MessageExpression": text["messageExpression"],
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath", ""),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }
    shown = msgspec.json.encode(fields).decode()
    return shown.translate({ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"})


def _has_newlines(text: str) -> bool:
    return "\n" in text or "\r" in text


def _too_costly(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    if factor > 100:
        shown = "more than 100x"
    else:
        shown = f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{what} exceeds budget by factor of {shown} ({_ADVICE})"


def _invalid(path: str, value: Any, why: str) -> StatusCause:
    shown = msgspec.json.encode(value).decode()
    return StatusCause("FieldValueInvalid", f"Invalid value: {shown}: {why}", path)


def _required(path: str, why: str) -> StatusCause:
    return StatusCause("FieldValueRequired", f"Required value: {why}", path)


def _forbidden(path: str, why: str) -> StatusCause:
    return StatusCause("FieldValueForbidden", f"Forbidden: {why}", path)
