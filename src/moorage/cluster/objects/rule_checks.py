"""RuleChecks: the rules in CEL of all custom resources, evaluated at once or by another thread.

The rules of one object may take seconds. A server that answers other clients meanwhile performs a
request inside `deferring`: expensive rules then raise DeferredRules. The server evaluates them in
another thread, and performs the request again, which finds the result.
"""

import contextlib
from collections.abc import Callable, Iterator

from moorage.cluster.objects import custom_rules
from moorage.cluster.objects.custom_rules import RuleTree, TooExpensiveError
from moorage.cluster.resources import Resource
from moorage.cluster.status_errors import StatusCause
from moorage.cluster.store import encode
from moorage.controllers.objects import Object

# What is evaluated at once, in units of cost: about 5 milliseconds.
INLINE_BUDGET = 30_000
# Results that wait for their request; those of clients that are gone are dropped.
_MAX_RESULTS = 64

_Request = tuple[Resource, bytes, bytes]


class DeferredRules(Exception):
    """Rules that are too expensive here: `evaluate` them elsewhere, then repeat the request."""

    def __init__(self, evaluate: Callable[[], None]) -> None:
        super().__init__()
        self.evaluate = evaluate


class RuleChecks:
    """See the module."""

    def __init__(self) -> None:
        self._rules: dict[Resource, RuleTree | None] = {}
        self._results: dict[_Request, list[StatusCause]] = {}
        self._defers = False

    def forget(self) -> None:
        """Drop the compiled rules, because a definition changed."""
        self._rules.clear()

    @contextlib.contextmanager
    def deferring(self) -> Iterator[None]:
        """Raise DeferredRules for expensive rules; the block may not wait."""
        self._defers = True
        try:
            yield
        finally:
            self._defers = False

    def causes(self, resource: Resource, obj: Object, before: Object | None) -> list[StatusCause]:
        """The errors of a custom resource, or of its update; raises DeferredRules."""
        schema = resource.schema
        assert schema is not None, "a resource without a schema has no rules"
        if resource not in self._rules:
            self._rules[resource] = custom_rules.compile_rules(schema)
        rules = self._rules[resource]
        if rules is None or not self._defers:
            return custom_rules.validate(obj, before, schema, rules)
        request = (resource, encode(obj), encode(before))
        if (known := self._results.pop(request, None)) is not None:
            return known
        try:
            return custom_rules.validate(obj, before, schema, rules, inline_budget=INLINE_BUDGET)
        except TooExpensiveError:
            pass

        def evaluate() -> None:
            self._results[request] = custom_rules.validate(obj, before, schema, rules)
            while len(self._results) > _MAX_RESULTS:
                del self._results[next(iter(self._results))]

        raise DeferredRules(evaluate)
