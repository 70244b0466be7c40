"""Where a pod may be: tolerations and taints, affinity, topology spreading, gates."""

from moorage.api import labels
from moorage.api.validation import field_errors as fe
from moorage.api.validation import names
from moorage.api.validation.field_errors import FieldErrors, Fields
from moorage.api.validation.names import each_problem, label_problems, label_selector

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_EQUAL, _EXISTS = "Equal", "Exists"
_COMPARISONS = ("Lt", "Gt")
_NO_SELECTOR = "must not be specified when labelSelector is not set"


# Tolerations and taints


def tolerations(listed: list[Fields], path: str) -> FieldErrors:
    """The tolerations of a pod."""
    for i, each in enumerate(listed):
        yield from _toleration(each, f"{path}[{i}]")


def _toleration(toleration: Fields, path: str) -> FieldErrors:
    key, operator = fe.text(toleration, "key"), fe.text(toleration, "operator")
    value, effect = fe.text(toleration, "value"), fe.text(toleration, "effect")
    if key:
        yield from each_problem(labels.key_problems, key, f"{path}.key")
    elif operator != _EXISTS:
        rule = 'operator must be Exists when `key` is empty, which means "match all values and '
        yield fe.invalid(f"{path}.operator", operator, rule + 'all keys"')
    if fe.is_set(toleration, "tolerationSeconds") and effect != "NoExecute":
        rule = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield fe.invalid(f"{path}.effect", effect, rule)
    if operator in ("", _EQUAL):
        if problems := labels.value_problems(value):
            yield fe.invalid(f"{path}.operator", value, ";".join(problems))
    elif operator == _EXISTS:
        if value:
            rule = "value must be empty when `operator` is 'Exists'"
            yield fe.invalid(f"{path}.operator", value, rule)
    elif operator in _COMPARISONS:
        # An API server accepts them if the feature gate TaintTolerationComparisonOperators is on.
        if labels.parse_int64(value) is None:
            yield fe.invalid(f"{path}.value", value, "must be a valid decimal integer")
    else:
        yield fe.not_supported(f"{path}.operator", operator, (_EQUAL, _EXISTS))
    if effect and effect not in EFFECTS:
        yield fe.not_supported(f"{path}.effect", effect, EFFECTS)


def taints(listed: list[Fields], path: str) -> FieldErrors:
    """The taints of a node."""
    seen = set()
    for i, each in enumerate(listed):
        here = f"{path}[{i}]"
        key, effect = fe.text(each, "key"), fe.text(each, "effect")
        yield from each_problem(labels.key_problems, key, f"{here}.key")
        if problems := labels.value_problems(fe.text(each, "value")):
            yield fe.invalid(f"{here}.value", fe.text(each, "value"), ";".join(problems))
        yield from fe.one_of(each, here, "effect", EFFECTS, needed=True)
        if (key, effect) in seen:
            shown = {
                "Key": key,
                "Value": fe.text(each, "value"),
                "Effect": effect,
                "TimeAdded": each.get("timeAdded"),
            }
            yield fe.duplicate(here, shown, "taints must be unique by key and effect pair")
        seen.add((key, effect))


# Affinity


def affinity(spec: Fields, path: str, pod_labels: Fields) -> FieldErrors:
    """Node affinity, pod affinity and pod anti-affinity."""
    found = fe.optional(spec, "affinity")
    if found is None:
        return
    path = f"{path}.affinity"
    if (nodes := fe.optional(found, "nodeAffinity")) is not None:
        here = f"{path}.nodeAffinity"
        if (selector := fe.optional(nodes, REQUIRED)) is not None:
            yield from node_selector(selector, f"{here}.{REQUIRED}")
        for i, term in enumerate(fe.items(nodes, PREFERRED)):
            item = f"{here}.{PREFERRED}[{i}]"
            yield from _weight(term, item)
            # Values that are no labels are stored. They are an error when the pod is scheduled.
            yield from node_selector_term(
                fe.mapping(term, "preference"), f"{item}.preference", any_values=True
            )
    for field in ("podAffinity", "podAntiAffinity"):
        if (pods := fe.optional(found, field)) is not None:
            yield from _pod_terms(pods, f"{path}.{field}", pod_labels)


def _pod_terms(pods: Fields, path: str, pod_labels: Fields) -> FieldErrors:
    for i, term in enumerate(fe.items(pods, REQUIRED)):
        yield from _pod_term(term, f"{path}.{REQUIRED}[{i}]", pod_labels)
    for i, weighted in enumerate(fe.items(pods, PREFERRED)):
        item = f"{path}.{PREFERRED}[{i}]"
        yield from _weight(weighted, item)
        term = fe.mapping(weighted, "podAffinityTerm")
        yield from _pod_term(term, f"{item}.podAffinityTerm", pod_labels)


def _weight(term: Fields, path: str) -> FieldErrors:
    weight = fe.number(term, "weight") or 0
    if not 1 <= weight <= 100:
        yield fe.invalid(f"{path}.weight", weight, "must be in the range 1-100")


def node_selector(selector: Fields, path: str) -> FieldErrors:
    """Terms of which one has to match a node."""
    terms = fe.items(selector, "nodeSelectorTerms")
    if not terms:
        rule = "must have at least one node selector term"
        yield fe.required(f"{path}.nodeSelectorTerms", rule)
    for i, term in enumerate(terms):
        yield from node_selector_term(term, f"{path}.nodeSelectorTerms[{i}]")


def node_selector_term(term: Fields, path: str, *, any_values: bool = False) -> FieldErrors:
    """Requirements on the labels and fields of a node."""
    for i, each in enumerate(fe.items(term, "matchExpressions")):
        place, numbers = f"{path}.matchExpressions[{i}]", ("Gt", "Lt")
        yield from names.requirement(
            each, place, operators_of_numbers=numbers, any_values=any_values
        )
    for i, each in enumerate(fe.items(term, "matchFields")):
        yield from _node_field(each, f"{path}.matchFields[{i}]")


def _node_field(requirement: Fields, path: str) -> FieldErrors:
    key, values = fe.text(requirement, "key"), fe.texts(requirement, "values")
    if (operator := fe.text(requirement, "operator")) in ("In", "NotIn"):
        if len(values) != 1:
            rule = "must be only one value when `operator` is 'In' or 'NotIn' for node field "
            yield fe.required(f"{path}.values", rule + "selector")
    else:
        yield fe.invalid(f"{path}.operator", operator, names.BAD_OPERATOR)
    if key != "metadata.name":
        yield fe.invalid(f"{path}.key", key, "not a valid field selector key")
    else:
        for i, value in enumerate(values):
            yield from each_problem(labels.subdomain_problems, value, f"{path}.values[{i}]")


def _pod_term(term: Fields, path: str, pod_labels: Fields) -> FieldErrors:
    selector = fe.optional(term, "labelSelector")
    yield from label_selector(selector, f"{path}.labelSelector")
    namespaces = fe.optional(term, "namespaceSelector")
    yield from label_selector(namespaces, f"{path}.namespaceSelector")
    for namespace in fe.texts(term, "namespaces"):
        yield from each_problem(label_problems, namespace, f"{path}.namespace")
    yield from _label_keys(term, path, selector, pod_labels)
    key = fe.text(term, "topologyKey")
    if not key:
        yield fe.required(f"{path}.topologyKey", "can not be empty")
    yield from each_problem(labels.key_problems, key, f"{path}.topologyKey")


def _label_keys(
    term: Fields, path: str, selector: Fields | None, pod_labels: Fields
) -> FieldErrors:
    match, mismatch = fe.texts(term, "matchLabelKeys"), fe.texts(term, "mismatchLabelKeys")
    for field, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            yield fe.forbidden(f"{path}.{field}", _NO_SELECTOR)
            continue
        for i, key in enumerate(keys):
            yield from each_problem(labels.key_problems, key, f"{path}.{field}[{i}]")
    yield from _repeated_keys(match, selector, pod_labels, path)
    for i, key in enumerate(match):
        if key in mismatch:
            rule = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield fe.invalid(f"{path}.matchLabelKeys[{i}]", key, rule)


def _repeated_keys(
    keys: list[str], selector: Fields | None, pod_labels: Fields, path: str
) -> FieldErrors:
    """Keys that the selector has besides the requirement that is made from the pod's label."""
    if selector is None:
        return
    expressions = fe.items(selector, "matchExpressions")
    for i, key in enumerate(keys):
        made = {"key": key, "operator": "In", "values": [pod_labels.get(key)]}
        count = sum(fe.text(each, "key") == key for each in expressions)
        count += key in fe.mapping(selector, "matchLabels")
        count += key in pod_labels and made not in expressions
        if count > 1:
            yield fe.invalid(f"{path}[{i}]", key, "exists in both matchLabelKeys and labelSelector")


# Topology spreading, gates, preemption


def spread_constraints(listed: list[Fields], path: str, pod_labels: Fields) -> FieldErrors:
    """The topology spread constraints of a pod."""
    identities = [
        (fe.text(each, "topologyKey"), fe.text(each, "whenUnsatisfiable")) for each in listed
    ]
    for i, each in enumerate(listed):
        here, (key, action) = f"{path}[{i}]", identities[i]
        skew = fe.number(each, "maxSkew") or 0
        if skew <= 0:
            yield fe.invalid(f"{here}.maxSkew", skew, "must be greater than zero")
        if not key:
            yield fe.required(f"{here}.topologyKey", "can not be empty")
        if action not in ACTIONS:
            yield fe.not_supported(f"{here}.whenUnsatisfiable", action, ACTIONS)
        if identities[i] in identities[i + 1 :]:
            repeated = f"{here}.{{topologyKey, whenUnsatisfiable}}"
            yield fe.duplicate(repeated, f"{{{key}, {action}}}")
        domains = fe.number(each, "minDomains")
        if domains is not None and domains <= 0:
            yield fe.invalid(f"{here}.minDomains", domains, "must be greater than zero")
        if domains is not None and action != "DoNotSchedule":
            rule = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            yield fe.invalid(f"{here}.minDomains", domains, rule)
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            yield from fe.one_of(each, here, field, ("Honor", "Ignore"))
        selector = fe.optional(each, "labelSelector")
        yield from _label_keys(each, here, selector, pod_labels)
        yield from label_selector(selector, f"{here}.labelSelector")


def scheduling_gates(listed: list[Fields], path: str) -> FieldErrors:
    """The gates of a pod: their names are qualified and differ."""
    seen = set()
    for i, gate in enumerate(listed):
        name = fe.text(gate, "name")
        yield from each_problem(labels.key_problems, name, f"{path}[{i}]")
        if name in seen:
            yield fe.duplicate(f"{path}[{i}]", name)
        seen.add(name)


def scheduling_group(spec: Fields, path: str) -> FieldErrors:
    """The PodGroup that a pod is a member of."""
    group = fe.optional(spec, "schedulingGroup")
    if group is not None:
        rule = labels.subdomain_problems
        yield from names.named(rule, group, f"{path}.schedulingGroup", "podGroupName")


def pod_placement(spec: Fields, path: str, pod_labels: Fields) -> FieldErrors:
    """Everything that decides where a pod is placed, except for amounts.

    The labels of a template are left out: requirements are made from those of a pod.
    """
    if "affinity" in spec:
        yield from affinity(spec, path, pod_labels)
    if gates := fe.items(spec, "schedulingGates"):
        yield from scheduling_gates(gates, f"{path}.schedulingGates")
    if constraints := fe.items(spec, "topologySpreadConstraints"):
        here = f"{path}.topologySpreadConstraints"
        yield from spread_constraints(constraints, here, pod_labels)
    if tolerated := fe.items(spec, "tolerations"):
        yield from tolerations(tolerated, f"{path}.tolerations")
    if "preemptionPolicy" in spec:
        yield from fe.one_of(spec, path, "preemptionPolicy", PREEMPTION_POLICIES)
    if "schedulingGroup" in spec:
        yield from scheduling_group(spec, path)
