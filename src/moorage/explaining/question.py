"""The question: a cluster, a pod, and what the scheduler would say if it were its turn now."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import structs

from moorage.api import config, defaults, manifests
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.core.observations import Added
from moorage.core.scheduler import Scheduler
from moorage.errors import InputError
from moorage.expansion import expand
from moorage.explaining import advice
from moorage.explaining.explanation import Explanation


def explain(
    objects: Iterable[Mapping[str, Any] | KubeObject],
    pod: str,
    config: config.Source = None,
    *,
    seed: int = 0,
) -> Explanation:
    """What the scheduler decides for a pod (`namespace/name`, or a bare name) and why.

    A pod that has a node already is looked at as if it were to be scheduled again.
    """
    completed = defaults.complete(expand(manifests.read(objects).everything))
    asked = find_pod(completed, pod)
    scheduler = _scheduler(config, seed)
    unplaced = _unplaced(asked)
    for obj in completed:
        scheduler.observe(Added(unplaced if obj is asked else obj), 0.0)
    return _ask(scheduler, unplaced, asked.node_name)


def _scheduler(source: config.Source, seed: int) -> Scheduler:
    return Scheduler(config.load(source), seed=seed)


def _unplaced(pod: Pod) -> Pod:
    if not pod.node_name:
        return pod
    return structs.replace(pod, spec=structs.replace(pod.spec, node_name=""))


def _ask(scheduler: Scheduler, pod: Pod, runs_on: str) -> Explanation:
    profile = scheduler.profiles.get(pod.spec.scheduler_name)
    if profile is None:
        return _of_another_scheduler(scheduler, pod, runs_on)
    gate = profile.run_pre_enqueue(pod)
    if gate is not None:
        lines = advice.of_gate(profile, pod, gate)
        return Explanation(pod, runs_on=runs_on, gate=gate, advice=lines)
    decision = scheduler.cycle.decide(profile, pod, scheduler.templates.of(pod), 0.0)
    return Explanation.of(decision, runs_on)


def _of_another_scheduler(scheduler: Scheduler, pod: Pod, runs_on: str) -> Explanation:
    profiles = ", ".join(sorted(scheduler.profiles))
    return Explanation(
        pod,
        runs_on=runs_on,
        nodes=scheduler.cluster.table.node_count,
        message=f'no profile for scheduler "{pod.spec.scheduler_name}"',
        advice=[f"The pod asks for it in spec.schedulerName; the profiles here are: {profiles}."],
    )


def find_pod(objects: Iterable[KubeObject], name: str) -> Pod:
    """The pod of that name; a bare name has to be unique, or in the namespace `default`."""
    pods = [obj for obj in objects if isinstance(obj, Pod)]
    exact = [pod for pod in pods if pod.key == name]
    found = exact or [pod for pod in pods if pod.name == name]
    if len(found) > 1:
        found = [pod for pod in found if pod.namespace == "default"] or found
    if len(found) == 1:
        return found[0]
    if found:
        keys = ", ".join(sorted(pod.key for pod in found))
        raise InputError(f"pod {name!r} is not unique: say which of {keys}")
    hint = (
        f"did you mean {alike}?" if (alike := _alike(pods, name)) else "name it as namespace/name"
    )
    raise InputError(f"no pod {name!r} among the {len(pods)} given; {hint}")


def _alike(pods: list[Pod], name: str) -> str:
    """A pod that may have been meant: of that workload, or with a name that is nearly so."""
    _, _, last = name.rpartition("/")
    made = (pod.key for pod in pods if last and pod.name.startswith(f"{last}-"))
    if found := next(made, None):
        return found
    names = {pod.name: pod.key for pod in pods}
    close = difflib.get_close_matches(last, names, n=1)
    return names[close[0]] if close else ""
