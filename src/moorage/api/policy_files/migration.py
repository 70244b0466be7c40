"""Migration: a Policy as the KubeSchedulerConfiguration that decides alike."""

import os
from pathlib import Path
from typing import Any

from msgspec import Struct

from moorage.api import config
from moorage.api.config.errors import shown
from moorage.api.pod import DEFAULT_SCHEDULER
from moorage.api.policy_files import names, policy
from moorage.api.policy_files.policy import Named, Policy
from moorage.errors import ConfigError

# As many as an int32 holds; kube-scheduler speaks of overflow from where 64 bits do not.
HEAVIEST = 2**31 - 1


class Migration(Struct, frozen=True):
    """The equivalent configuration as plain data, and what could not be carried over."""

    configuration: dict[str, Any]
    warnings: tuple[str, ...] = ()


def migrate(file: str | os.PathLike[str]) -> Migration:
    """Translate a Policy file; a ConfigError says what cannot be."""
    path = Path(file)
    try:
        migration = of_policy(policy.read(path))
        config.load(migration.configuration)  # What comes out can be used.
    except ConfigError as error:
        raise ConfigError([f"{path}: {problem}" for problem in error.problems]) from None
    except RecursionError:
        raise ConfigError([f"{path}: nested too deeply"]) from None
    return migration


def of_policy(given: Policy) -> Migration:
    """Translate a Policy."""
    filters = Filters(given)
    scores = Scores(given)
    if problems := [*filters.problems, *scores.problems]:
        raise ConfigError(problems)
    warnings = [*filters.warnings, *scores.warnings]
    if given.checks_all:
        warnings.append("alwaysCheckAllPredicates has no equivalent and is left out")
    profile: dict[str, Any] = {
        "schedulerName": DEFAULT_SCHEDULER,
        "plugins": _plugins(filters.plugins, scores.weights),
    }
    if args := {**filters.args, **scores.args, **_affinity_args(given)}:
        profile["pluginConfig"] = [{"name": name, "args": args[name]} for name in sorted(args)]
    plain = {"apiVersion": config.API_VERSION, "kind": config.KIND, "profiles": [profile]}
    if given.extenders:
        plain["extenders"] = list(given.extenders)
    return Migration(plain, tuple(warnings))


def _plugins(filters: list[str], weights: dict[str, int]) -> dict[str, Any]:
    """Each plugin once; where it must not take part it is switched off."""
    scoring = [name for name in sorted(weights) if name not in filters]
    enabled: list[dict[str, Any]] = [{"name": name} for name in names.ALWAYS_FIRST]
    for name in (*filters, *scoring):
        entry: dict[str, Any] = {"name": name}
        if weights.get(name, 1) != 1:
            entry["weight"] = weights[name]
        enabled.append(entry)
    enabled += [{"name": name} for name in names.ALWAYS_LAST]
    plugins: dict[str, Any] = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}
    off = {
        ("preFilter", "filter"): [name for name in scoring if name in names.ALSO_FILTER],
        ("preScore", "score"): [n for n in filters if n in names.ALSO_SCORE and n not in weights],
    }
    for points, disabled in off.items():
        for point in points if disabled else ():
            plugins[point] = {"disabled": [{"name": name} for name in disabled]}
    return plugins


def _affinity_args(given: Policy) -> dict[str, Any]:
    weight = given.hard_pod_affinity_weight
    return {"InterPodAffinity": {"hardPodAffinityWeight": weight}} if weight else {}


class Filters:
    """Predicates as filter plugins."""

    def __init__(self, given: Policy) -> None:
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self.args: dict[str, Any] = {}
        self._required: list[dict[str, Any]] = []
        wanted = set(names.MANDATORY)
        if given.predicates is None:
            wanted |= set(names.DEFAULT_PREDICATES)
        for predicate in given.predicates or ():
            wanted |= self._known_as(predicate)
        if self._required:
            terms = [{"matchExpressions": self._required}]
            self.args["NodeAffinity"] = {
                "addedAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
                }
            }
        asked = [name for name in names.PREDICATES if name in wanted]
        self.plugins = list(
            dict.fromkeys(plugin for name in asked for plugin in names.PREDICATES[name])
        )

    def _known_as(self, predicate: Named) -> set[str]:
        name = predicate.name
        if predicate.argument is not None:
            return self._by_argument(name, *predicate.argument)
        if name in names.COVERED_BY_TAINTS:
            self.warnings.append(f"predicate {name} is left out: taints say the same")
        elif name in names.REPLACED:
            self.warnings.append(f"predicate {name} has become NodeVolumeLimits")
            return {name}
        elif name == names.SERVICE_AFFINITY:
            self.problems.append(_gone("predicate", name, "pod affinity in the pods themselves"))
        elif name == names.LABEL_PRESENCE:
            self.problems.append(f"predicate {name}: needs argument.labelsPresence")
        elif name in names.PREDICATES:
            return {name}
        else:
            self.problems.append(f"predicate type not found for {shown(name)}")
        return set()

    def _by_argument(self, name: str, kind: str, argument: dict[str, Any]) -> set[str]:
        if kind == "serviceaffinity":
            self.problems.append(_gone("predicate", name, "pod affinity in the pods themselves"))
            return set()
        labels = argument.get("labels")
        if kind != "labelspresence" or not isinstance(labels, list):
            self.problems.append(
                f"predicate {name}: the argument has to be labelsPresence with labels, or "
                "serviceAffinity"
            )
            return set()
        operator = "Exists" if argument.get("presence") else "DoesNotExist"
        self._required += [{"key": str(label), "operator": operator} for label in labels]
        return {names.LABEL_PRESENCE}


class Scores:
    """Priorities as score plugins."""

    def __init__(self, given: Policy) -> None:
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self.args: dict[str, Any] = {}
        self.weights: dict[str, int] = {}
        self._strategy = ""
        priorities = given.priorities
        if priorities is None:
            priorities = tuple(
                Named(name=name, weight=weight) for name, weight in names.DEFAULT_PRIORITIES.items()
            )
        for priority in sorted(priorities, key=lambda each: each.name):
            self._take(priority)
        chosen = {priority.name for priority in priorities}
        if names.EVEN_SPREAD in chosen and not chosen & set(names.SELECTOR_SPREAD):
            self.args["PodTopologySpread"] = {"defaultingType": "List"}

    def _take(self, priority: Named) -> None:
        name = priority.name
        if not 0 < priority.weight <= HEAVIEST:
            self.problems.append(
                f"priority {name} should have a positive weight applied to it or it has overflown"
            )
        elif priority.argument is not None:
            self._by_argument(priority, *priority.argument)
        elif name == names.EQUAL:
            pass  # It told no nodes apart.
        elif name == names.PREFER_AVOID:
            self.warnings.append(f"priority {name} is left out: use taints instead")
        elif name == names.RATIO:
            self.problems.append(
                f"priority {name}: needs argument.requestedToCapacityRatioArguments"
            )
        elif name in names.STRATEGIES:
            self._score_by(priority, {"type": names.STRATEGIES[name]})
        elif name in names.PRIORITIES:
            # If two have become one plugin, the first has the say.
            self.weights.setdefault(names.PRIORITIES[name], priority.weight)
        else:
            self.problems.append(f"priority type not found for {shown(name)}")

    def _by_argument(self, priority: Named, kind: str, argument: dict[str, Any]) -> None:
        if kind == "requestedtocapacityratioarguments":
            strategy: dict[str, Any] = {"type": names.STRATEGIES[names.RATIO]}
            if argument.get("resources"):
                strategy["resources"] = argument["resources"]
            strategy["requestedToCapacityRatio"] = {"shape": argument.get("shape") or []}
            self._score_by(priority, strategy)
        elif kind == "labelpreference":
            advice = "NodeAffinity's addedAffinity with a preferred term"
            self.problems.append(_gone("priority", priority.name, advice))
        elif kind == "serviceantiaffinity":
            advice = "topology spread constraints"
            self.problems.append(_gone("priority", priority.name, advice))
        else:
            self.problems.append(f"priority {priority.name}: unknown argument {shown(kind)}")

    def _score_by(self, priority: Named, strategy: dict[str, Any]) -> None:
        """NodeResourcesFit has one strategy."""
        if self._strategy:
            self.problems.append(
                f"priorities {self._strategy} and {priority.name} cannot be had together: "
                "NodeResourcesFit has one scoring strategy; keep one of them"
            )
            return
        self._strategy = priority.name
        self.weights["NodeResourcesFit"] = priority.weight
        self.args["NodeResourcesFit"] = {"scoringStrategy": strategy}


def _gone(what: str, name: str, instead: str) -> str:
    return f"{what} {name} has no equivalent; use {instead}"
