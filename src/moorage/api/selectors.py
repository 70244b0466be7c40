"""Label, field and node selectors, compiled once and then matched often; tolerations too.

A selector that Kubernetes would refuse raises `SelectorError` with Kubernetes' text. Knows nothing
of pods and nodes: callers pass labels, a name, a taint.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from moorage.api import labels as rules
from moorage.api.meta import LabelSelector, LabelSelectorRequirement, NodeSelector, NodeSelectorTerm
from moorage.api.node import Taint
from moorage.api.pod import PreferredSchedulingTerm, Toleration

NODE_NAME_FIELD = "metadata.name"

IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GT, LT = "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"
LABEL_OPERATORS = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST)
NODE_OPERATORS = (*LABEL_OPERATORS, GT, LT)
_FIELD_OPERATORS = (IN, NOT_IN)


class SelectorError(ValueError):
    """A selector that Kubernetes would refuse; `problems` has one text per error."""

    def __init__(self, *problems: str) -> None:
        self.problems = tuple(dict.fromkeys(problems))
        one = len(self.problems) == 1
        super().__init__(self.problems[0] if one else f"[{', '.join(self.problems)}]")


class Requirement(NamedTuple):
    """One condition on a label or a field; equality is `In` with a single value."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels meet the condition."""
        return self.accepts(labels.get(self.key))

    def accepts(self, value: str | None) -> bool:
        """Whether a label with this value meets the condition; None is a missing label."""
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return value is not None and self._compares(value)
        return False

    def _compares(self, value: str) -> bool:
        number, bound = rules.parse_int64(value), rules.parse_int64(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if self.operator == GT else number < bound


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that must all hold, in canonical order, so that equal ones compare equal."""

    requirements: tuple[Requirement, ...] = ()
    matches_nothing: bool = False
    # Most requirements are equalities; they are compared without a call.
    _equalities: tuple[tuple[str, str], ...] = field(init=False, repr=False, compare=False)
    _others: tuple[Requirement, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        requirements = tuple(sorted(set(self.requirements)))
        equalities = tuple((r.key, r.values[0]) for r in requirements if _is_equality(r))
        others = tuple(r for r in requirements if not _is_equality(r))
        object.__setattr__(self, "requirements", requirements)
        object.__setattr__(self, "_equalities", equalities)
        object.__setattr__(self, "_others", others)

    @property
    def is_empty(self) -> bool:
        """Whether it selects everything."""
        return not self.requirements and not self.matches_nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        if self.matches_nothing:
            return False
        for key, value in self._equalities:
            if labels.get(key) != value:
                return False
        # A loop: for one or two requirements a generator would take twice as long.
        for requirement in self._others:  # noqa: SIM110
            if not requirement.matches(labels):
                return False
        return True

    def also(self, requirements: Iterable[Requirement]) -> "Selector":
        """This selector with more requirements; unchanged if it matches nothing."""
        return self if self.matches_nothing else Selector((*self.requirements, *requirements))


EVERYTHING = Selector()
NOTHING = Selector(matches_nothing=True)


def _is_equality(requirement: Requirement) -> bool:
    return requirement.operator == IN and len(requirement.values) == 1


def equals(key: str, value: str) -> Requirement:
    """The requirement that a label has exactly this value."""
    return Requirement(key, IN, (value,))


def selector_from_map(labels: Mapping[str, str] | None) -> Selector:
    """A selector from a map, not validated; None or an empty map selects everything."""
    return Selector(tuple(equals(k, v) for k, v in labels.items())) if labels else EVERYTHING


def compile_label_selector(selector: LabelSelector | None) -> Selector:
    """A validated label selector; None selects nothing, an empty one everything."""
    if selector is None:
        return NOTHING
    requirements = []
    for key, value in sorted(selector.match_labels.items()):
        requirements.append(
            _checked(LabelSelectorRequirement(key=key, operator=IN, values=(value,)))
        )
    for expression in selector.match_expressions:
        if expression.operator not in LABEL_OPERATORS:
            raise SelectorError(
                f"{rules.quote(expression.operator)} is not a valid label selector operator"
            )
        requirements.append(_checked(expression))
    return Selector(tuple(requirements)) if requirements else EVERYTHING


class NodeTerm(NamedTuple):
    """One compiled term; an invalid one has problems and matches no node."""

    label_requirements: tuple[Requirement, ...] = ()
    field_requirements: tuple[Requirement, ...] = ()
    problems: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether a node with these labels and this name meets all requirements."""
        if self.problems or not all(r.matches(labels) for r in self.label_requirements):
            return False
        if not name:  # A node without a name has no fields to match.
            return True
        fields = {NODE_NAME_FIELD: name}
        return all(field_matches(r, fields) for r in self.field_requirements)


class NodeSelectorMatcher(NamedTuple):
    """Compiled terms of which one has to match."""

    terms: tuple[NodeTerm, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """The errors of invalid terms; they matter only if no other term matches."""
        return tuple(problem for term in self.terms for problem in term.problems)

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether a node with these labels and this name is selected."""
        return any(term.matches(labels, name) for term in self.terms)


def compile_node_selector(selector: NodeSelector) -> NodeSelectorMatcher:
    """A node selector; an invalid term is no error, but matches nothing."""
    return NodeSelectorMatcher(_terms(selector.node_selector_terms, "nodeSelectorTerms"))


def compile_node_selector_terms(
    terms: Sequence[NodeSelectorTerm], path: str = ""
) -> NodeSelectorMatcher:
    """Node selector terms; raises SelectorError if one is invalid."""
    matcher = NodeSelectorMatcher(_terms(terms, path))
    if matcher.problems:
        raise SelectorError(*matcher.problems)
    return matcher


def compile_preferred(
    terms: Iterable[PreferredSchedulingTerm], path: str = ""
) -> list[tuple[int, NodeTerm]]:
    """Preferred terms with their weights; raises SelectorError if one is invalid.

    Terms with weight 0 and empty terms are omitted without validation.
    """
    weighted = [
        (preferred.weight, _term(preferred.preference, f"{path}[{i}]"))
        for i, preferred in enumerate(terms)
        if preferred.weight != 0 and not _is_empty(preferred.preference)
    ]
    problems = [problem for _, term in weighted for problem in term.problems]
    if problems:
        raise SelectorError(*problems)
    return weighted


def _terms(terms: Sequence[NodeSelectorTerm], path: str) -> tuple[NodeTerm, ...]:
    return tuple(_term(term, f"{path}[{i}]") for i, term in enumerate(terms) if not _is_empty(term))


def _is_empty(term: NodeSelectorTerm) -> bool:
    return not term.match_expressions and not term.match_fields


def _term(term: NodeSelectorTerm, path: str) -> NodeTerm:
    labels, label_problems = _collect(
        term.match_expressions, f"{path}.matchExpressions", _node_requirement
    )
    fields, field_problems = _collect(term.match_fields, f"{path}.matchFields", _field_requirement)
    return NodeTerm(labels, fields, (*label_problems, *field_problems))


def _collect(
    expressions: Sequence[LabelSelectorRequirement],
    path: str,
    compile_one: Callable[[LabelSelectorRequirement, str], Requirement],
) -> tuple[tuple[Requirement, ...], list[str]]:
    requirements: list[Requirement] = []
    problems: list[str] = []
    for i, expression in enumerate(expressions):
        try:
            requirements.append(compile_one(expression, f"{path}[{i}]"))
        except SelectorError as error:
            problems += error.problems
    return tuple(requirements), problems


def _node_requirement(expression: LabelSelectorRequirement, path: str) -> Requirement:
    if expression.operator not in NODE_OPERATORS:
        raise _unsupported(expression.operator, NODE_OPERATORS, path)
    return _checked(expression, f"{path}.")


def _field_requirement(expression: LabelSelectorRequirement, path: str) -> Requirement:
    if expression.operator not in _FIELD_OPERATORS:
        raise _unsupported(expression.operator, _FIELD_OPERATORS, path)
    if len(expression.values) != 1:
        raise SelectorError(
            rules.invalid(f"{path}.values", expression.values, "must have one element")
        )
    return Requirement(expression.key, expression.operator, expression.values)


def _checked(expression: LabelSelectorRequirement, path: str = "") -> Requirement:
    key, operator, values = expression.key, expression.operator, expression.values
    if problems := rules.requirement_problems(key, operator, values, path):
        raise SelectorError(*problems)
    return Requirement(key, operator, tuple(sorted(set(values))))


def _unsupported(operator: str, supported: Iterable[str], path: str) -> SelectorError:
    choice = ", ".join(rules.quote(name) for name in supported)
    return SelectorError(
        f"{path}.operator: Unsupported value: {rules.quote(operator)}: supported values: {choice}"
    )


def field_matches(requirement: Requirement, fields: Mapping[str, str]) -> bool:
    """Whether a field meets the condition; an unknown field reads as the empty string."""
    return requirement.accepts(fields.get(requirement.key, ""))


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Requirements on fields, as `status.phase!=Failed`."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Whether an object with these fields is selected."""
        return all(field_matches(requirement, fields) for requirement in self.requirements)


_WORD = r"[^\s=!<>(),]+"
_LABEL_PIECE = re.compile(
    rf"\s*(?:!\s*(?P<absent>{_WORD})"
    rf"|(?P<key>{_WORD})\s*(?:(?P<sign>==|!=|=|<|>)\s*(?P<value>(?:{_WORD})?)"
    rf"|(?P<set>in|notin)\s*\((?P<values>[^()=!<>]*)\))?)"
    r"\s*(?P<more>,|$)"
)
_OPERATOR_OF = {"=": IN, "==": IN, "!=": NOT_IN, ">": GT, "<": LT, "in": IN, "notin": NOT_IN}
_FIELD_PIECE = re.compile(
    r"(?P<key>[^\\,=!]+)(?P<sign>!=|==|=)(?P<value>(?:\\[\\,=]|[^\\,=])*)(?P<more>,|$)"
)


def parse_label_selector(text: str) -> Selector:
    """kubectl's `-l`: `a=b,c!=d,e in (x,y),f,!g`; an empty text selects everything."""
    pieces = _pieces(_LABEL_PIECE, text, "key=value, key!=value, key in (a,b), key or !key")
    return Selector(tuple(_checked(_label_expression(piece)) for piece in pieces))


def parse_field_selector(text: str) -> FieldSelector:
    """kubectl's `--field-selector`: `spec.nodeName=a,status.phase!=Failed`."""
    pieces = _pieces(_FIELD_PIECE, text, "field=value or field!=value")
    return FieldSelector(
        tuple(
            Requirement(
                piece["key"].strip(),
                _OPERATOR_OF[piece["sign"]],
                (re.sub(r"\\(.)", r"\1", piece["value"]),),
            )
            for piece in pieces
        )
    )


def _pieces(grammar: re.Pattern[str], text: str, expected: str) -> list[re.Match[str]]:
    pieces: list[re.Match[str]] = []
    position, more = 0, bool(text.strip())
    while more:
        piece = grammar.match(text, position)
        if piece is None:
            rest = text[position:]
            raise SelectorError(
                f"invalid selector: '{text}'; can't understand '{rest}', write {expected}"
            )
        pieces.append(piece)
        position, more = piece.end(), piece["more"] == ","
    return pieces


def _label_expression(piece: re.Match[str]) -> LabelSelectorRequirement:
    if piece["absent"]:
        return LabelSelectorRequirement(key=piece["absent"], operator=DOES_NOT_EXIST)
    if piece["set"]:
        values = tuple(value.strip() for value in piece["values"].split(","))
    elif piece["sign"]:
        values = (piece["value"],)
    else:
        return LabelSelectorRequirement(key=piece["key"], operator=EXISTS)
    operator = _OPERATOR_OF[piece["set"] or piece["sign"]]
    return LabelSelectorRequirement(key=piece["key"], operator=operator, values=values)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration tolerates a taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    # Lt and Gt belong to an alpha feature that is off by default: they tolerate nothing.
    return toleration.operator == "Exists"


def tolerates_any(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether at least one toleration tolerates the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)
