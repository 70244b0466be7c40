"""Rules in CEL of a structural schema (`x-kubernetes-validations`), and objects that break them."""

import contextlib
from dataclasses import dataclass, field
from typing import Any

import msgspec

from moorage.cel import schemas
from moorage.cel.rule import Rule
from moorage.cel.schemas import Declaration
from moorage.cel.types import BOOL, STRING
from moorage.cel.values import (
    COST_LIMIT,
    NONE,
    CelCompileError,
    CelRuntimeError,
    CostLimitExceeded,
    OptionalValue,
)
from moorage.cluster.objects import correlation, custom_schemas, field_paths
from moorage.cluster.objects.correlation import Correlation
from moorage.cluster.status_errors import StatusCause

Schema = dict[str, Any]

RULES = "x-kubernetes-validations"
_BUDGET = 10_000_000  # of one object
_MAX_MESSAGE_BYTES = 5 * 1024
_NO_MORE = "no further validation rules will be run"
_OUT_OF_BUDGET = f"validation failed due to running out of cost budget, {_NO_MORE}"


class CompiledRule:
    """A rule of a schema with its message. Errors of compilation are kept, not raised."""

    def __init__(self, stated: dict[str, Any], schema: Schema, declaration: Declaration) -> None:
        self.stated = stated
        self.optional_old_self = bool(stated.get("optionalOldSelf"))
        self.rule: Rule | None = None
        self.message: Rule | None = None
        self.error = self.message_error = ""
        try:
            self.rule = Rule(
                stated.get("rule", ""),
                declaration,
                result=BOOL,
                optional_old_self=self.optional_old_self,
            )
        except CelCompileError as error:
            self.error = str(error)
            if self.error.startswith("must"):
                self.error = f"cel expression {error}"
            return
        if expression := stated.get("messageExpression"):
            try:
                self.message = Rule(
                    expression,
                    declaration,
                    result=STRING,
                    optional_old_self=self.optional_old_self,
                )
            except CelCompileError as error:
                self.message_error = f"messageExpression {error}"
        path = str(stated.get("fieldPath") or "")
        self.field_path = field_paths.normalized(path, schema) or "" if path else ""

    @property
    def shown(self) -> str:
        """The rule in messages of errors."""
        return str(self.stated.get("message") or self.stated.get("rule") or "").strip()


@dataclass(slots=True)
class RuleTree:
    """The rules of a schema, and those of its parts that have any."""

    schema: Schema
    rules: list[CompiledRule]
    is_resource: bool = False
    items: "RuleTree | None" = None
    values: "RuleTree | None" = None
    properties: dict[str, "RuleTree"] = field(default_factory=dict)


def compile_rules(schema: Schema) -> RuleTree | None:
    """The rules of the schema of a resource; None if it has none."""
    if not _mentions_rules(schema):
        return None
    declaration = schemas.declare(schema, "selfType", is_resource=True)
    return None if declaration is None else _tree(schema, declaration, is_resource=True)


def _mentions_rules(schema: Any) -> bool:
    if isinstance(schema, dict):
        return RULES in schema or any(map(_mentions_rules, schema.values()))
    return isinstance(schema, list) and any(map(_mentions_rules, schema))


def _tree(schema: Schema, declaration: Declaration, *, is_resource: bool) -> RuleTree | None:
    rules = [CompiledRule(each, schema, declaration) for each in schema.get(RULES) or ()]
    tree = RuleTree(schema, rules, is_resource)
    for keyword in ("items", "additionalProperties"):
        inner = schema.get(keyword)
        if isinstance(inner, dict) and declaration.element is not None:
            found = _tree(inner, declaration.element, is_resource=_is_embedded(inner))
            setattr(tree, "items" if keyword == "items" else "values", found)
    for name, inner in (schema.get("properties") or {}).items():
        declared = _property(declaration, name, inner) if isinstance(inner, dict) else None
        if declared and (found := _tree(inner, declared, is_resource=_is_embedded(inner))):
            tree.properties[name] = found
    return tree if rules or tree.items or tree.values or tree.properties else None


def _property(declaration: Declaration, name: str, schema: Schema) -> Declaration | None:
    identifier = schemas.escaped(name)
    if identifier is not None:
        return declaration.fields.get(identifier)
    return schemas.declare(schema, "selfType", is_resource=_is_embedded(schema))


def _is_embedded(schema: Schema) -> bool:
    return bool(schema.get("x-kubernetes-embedded-resource"))


# Evaluation ------------------------------------------------------------------------------------

_UNCHECKED = (
    "some validation rules were not checked because the object was invalid;"
    " correct the existing errors to complete validation"
)
# After such an error the values may not be of the types that the rules are compiled for.
_BLOCKING = frozenset(
    (
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    )
)


class TooExpensiveError(Exception):
    """The rules cost more than the caller can evaluate at once."""


def validate(
    obj: Any,
    before: Any | None,
    schema: Schema,
    rules: RuleTree | None,
    *,
    inline_budget: int | None = None,
) -> list[StatusCause]:
    """All errors of a custom resource, or of its update if `before` is given.

    Raises TooExpensiveError if the rules cost more than `inline_budget`.
    """
    old = Correlation(obj, before, schema) if before is not None else None
    causes = list(custom_schemas.causes(obj, schema, before=old))
    if before is None or not any(custom_schemas.duplicates(before, schema)):
        causes += custom_schemas.duplicates(obj, schema)
    if rules is None:
        return causes
    if any(cause.reason in _BLOCKING for cause in causes):
        text = f"Invalid value: null: {_UNCHECKED}"
        return [*causes, StatusCause("FieldValueInvalid", text, "<nil>")]
    evaluation = Evaluation(inline_budget)
    evaluation.run(rules, obj, before)
    return causes + evaluation.causes


@dataclass(frozen=True, slots=True)
class _Ratchet:
    """What a value is compared with, or else the nearest part around it that has a counterpart."""

    current: Correlation | None = None
    parent: Correlation | None = None

    @property
    def is_unchanged(self) -> bool:
        found = self.current or self.parent
        return found is not None and found.is_unchanged

    def step(self, part: Correlation | None) -> "_Ratchet":
        return _Ratchet(part, self.current) if self.current is not None else self

    def key(self, name: str) -> "_Ratchet":
        # The types of the two objects are always equal, so that they do not count.
        if self.parent is None and name in ("apiVersion", "kind"):
            return _Ratchet()
        return self.step(self.current.key(name) if self.current else None)

    def index(self, index: int) -> "_Ratchet":
        return self.step(self.current.index(index) if self.current else None)


class _BudgetExceeded(Exception):
    """No further rules of the object are evaluated."""


class Evaluation:
    """The evaluation of all rules for one object."""

    def __init__(self, inline_budget: int | None = None) -> None:
        self.budget = _BUDGET
        self._inline_budget = inline_budget
        self.causes: list[StatusCause] = []
        self.warnings: list[str] = []

    def run(self, tree: RuleTree, obj: Any, old: Any | None) -> None:
        """Evaluate the rules; `old` is the stored object, if this is an update."""
        root = Correlation(obj, old, tree.schema) if old is not None else None
        with contextlib.suppress(_BudgetExceeded):
            self._visit(tree, "", obj, old, _Ratchet(root))

    def _visit(self, tree: RuleTree, path: str, value: Any, old: Any, ratchet: _Ratchet) -> None:
        if value is None:
            return
        if tree.rules:
            self._evaluate(tree, path, value, old, ratchet)
        if isinstance(value, list) and tree.items is not None:
            before = correlation.items_by_key(old, tree.schema)
            for index, each in enumerate(value):
                was = before.get(correlation.key_of(each, tree.schema))
                self._visit(tree.items, f"{path}[{index}]", each, was, ratchet.index(index))
        elif isinstance(value, dict):
            stored = old if isinstance(old, dict) else {}
            for key, each in value.items():
                if tree.values is not None:
                    inside = f"{path}[{key}]"
                    self._visit(tree.values, inside, each, stored.get(key), ratchet.key(key))
                if (inner_tree := tree.properties.get(key)) is not None:
                    inside = f"{path}.{key}" if path else key
                    self._visit(inner_tree, inside, each, stored.get(key), ratchet.key(key))

    def _evaluate(self, tree: RuleTree, path: str, value: Any, old: Any, ratchet: _Ratchet) -> None:
        schema = schemas.with_object_meta(tree.schema) if tree.is_resource else tree.schema
        kind = str(tree.schema.get("type") or "")
        try:
            own = schemas.value_of(value, schema)
            before = schemas.value_of(old, schema) if old is not None else None
        except CelRuntimeError as error:
            self._invalid(path, kind, str(error))
            return
        for each in tree.rules:
            if each.rule is None:
                self._invalid(path, kind, f"rule compile error: {each.error}")
                continue
            if each.rule.uses_old_self and old is None and not each.optional_old_self:
                continue  # There is no transition.
            stored = before
            if each.optional_old_self:
                stored = NONE if before is None else OptionalValue(before)
            if self.budget <= 0:
                self._stop(path, kind, _OUT_OF_BUDGET)
            result = self._charged(each.rule, own, stored, path, kind)
            if isinstance(result, CelRuntimeError):
                self._report_error(each, path, kind, result)
            elif result is not True:
                self._report(each, path, kind, value, own, stored, ratchet)

    def _charged(self, rule: Rule, value: Any, old: Any, path: str, kind: str) -> Any:
        result, cost = self._result(rule, value, old)
        if cost > self.budget:
            self._stop(path, kind, _OUT_OF_BUDGET)
        self.budget -= cost
        return result

    def _result(self, rule: Rule, value: Any, old: Any) -> tuple[Any, int]:
        if self._inline_budget is None:
            return rule.evaluate(value, old)
        result, cost = rule.evaluate(value, old, min(self._inline_budget, COST_LIMIT))
        self._inline_budget -= cost
        if self._inline_budget < 0:
            raise TooExpensiveError
        return result, cost

    def _report_error(
        self, rule: CompiledRule, path: str, kind: str, error: CelRuntimeError
    ) -> None:
        if isinstance(error, CostLimitExceeded):
            why = f"'{error}': {_NO_MORE} due to call cost exceeds limit for rule: {rule.shown}"
            self._stop(path, kind, why)
        if str(error).startswith("no such overload"):
            why = "call arguments did not match a supported operator, function or macro signature"
            self._invalid(path, kind, f"'{error}': {why} for rule: {rule.shown}")
        else:
            self._invalid(path, kind, f"{error} evaluating rule: {rule.shown}")

    def _report(
        self,
        rule: CompiledRule,
        path: str,
        kind: str,
        value: Any,
        own: Any,
        old: Any,
        ratchet: _Ratchet,
    ) -> None:
        """Add the error of a rule that is false."""
        assert rule.rule is not None
        message = self._message(rule, path, kind, own, old)
        if message is None:
            stated = str(rule.stated.get("message") or "").strip()
            message = stated or f"failed rule: {rule.shown}"
        if rule.field_path:
            path = f"{path}.{rule.field_path}" if path else rule.field_path
        cause = _cause(path or "<nil>", value, message, rule.stated.get("reason"))
        if not rule.rule.uses_old_self and ratchet.is_unchanged:
            self.warnings.append(f"{cause.field}: {cause.message}")
        else:
            self.causes.append(cause)

    def _message(
        self, rule: CompiledRule, path: str, kind: str, value: Any, old: Any
    ) -> str | None:
        """The value of `messageExpression`; None if there is none that can be used."""
        if rule.message is None:
            return None
        text, cost = self._result(rule.message, value, old)
        if cost > self.budget:
            why = (
                f"messageExpression evaluation failed due to running out of cost budget, {_NO_MORE}"
            )
            self._stop(path, str(value), why)
        if isinstance(text, CostLimitExceeded):
            why = "due to call cost exceeds limit for messageExpression"
            self._stop(path, str(value), f'{_NO_MORE} {why}: "{rule.message.text}"')
        self.budget -= cost
        text = text.strip() if isinstance(text, str) else ""
        if not text or "\n" in text or len(text.encode()) > _MAX_MESSAGE_BYTES:
            return None
        return text

    def _invalid(self, path: str, kind: str, why: str) -> None:
        self.causes.append(
            StatusCause("FieldValueInvalid", f'Invalid value: "{kind}": {why}', path or "<nil>")
        )

    def _stop(self, path: str, kind: str, why: str) -> None:
        self._invalid(path, kind, why)
        raise _BudgetExceeded


def _cause(path: str, value: Any, message: str, reason: str | None) -> StatusCause:
    shown = "" if isinstance(value, dict | list) else f": {msgspec.json.encode(value).decode()}"
    match reason:
        case "FieldValueForbidden":
            return StatusCause(reason, f"Forbidden: {message}", path)
        case "FieldValueRequired":
            return StatusCause(reason, f"Required value: {message}", path)
        case "FieldValueDuplicate":
            return StatusCause(reason, f"Duplicate value{shown}", path)
    return StatusCause("FieldValueInvalid", f"Invalid value{shown}: {message}", path)
