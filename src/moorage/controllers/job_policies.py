"""What a Job's policies say about its pods: pod failure policy, success policy, indexes."""

from collections.abc import Iterable
from typing import NamedTuple

from moorage.controllers import objects
from moorage.controllers.objects import Object

INDEX = "batch.kubernetes.io/job-completion-index"
FAILURE_COUNT = "batch.kubernetes.io/job-index-failure-count"
COUNT, IGNORE, FAIL_INDEX, FAIL_JOB = "Count", "Ignore", "FailIndex", "FailJob"


# Failures --------------------------------------------------------------------------------------


class FailureAction(NamedTuple):
    """What the failure of a pod leads to, and the message if the Job fails by it."""

    action: str
    message: str = ""


def failure_action(job: Object, pod: Object) -> FailureAction:
    """The action of the first rule that matches a failed pod; a failure counts by default."""
    policy = objects.spec(job).get("podFailurePolicy") or {}
    for number, rule in enumerate(policy.get("rules") or ()):
        cause = _exit_cause(rule.get("onExitCodes"), pod) or _condition_cause(
            rule.get("onPodConditions"), pod
        )
        if cause:
            action = str(rule.get("action"))
            return FailureAction(action, f"{cause} matching {action} rule at index {number}")
    return FailureAction(COUNT)


def _exit_cause(rule: Object | None, pod: Object) -> str:
    if not rule:
        return ""
    fields = ("initContainerStatuses", "containerStatuses")
    for status in (each for field in fields for each in objects.status(pod).get(field) or ()):
        code = objects.value_at(status, "state", "terminated", "exitCode")
        if not code or rule.get("containerName") not in (None, status.get("name")):
            continue
        if (code in (rule.get("values") or ())) == (rule.get("operator") == "In"):
            where = f"{objects.namespace(pod)}/{objects.name(pod)}"
            return f"Container {status.get('name')} for pod {where} failed with exit code {code}"
    return ""


def _condition_cause(patterns: list[Object] | None, pod: Object) -> str:
    for pattern in patterns or ():
        found = objects.condition(pod, str(pattern.get("type")))
        if found and found.get("status") == (pattern.get("status") or "True"):
            where = f"{objects.namespace(pod)}/{objects.name(pod)}"
            return f"Pod {where} has condition {pattern.get('type')}"
    return ""


# Success ---------------------------------------------------------------------------------------


def success_message(job: Object, completed: set[int]) -> str:
    """The message of the first rule of the success policy that is met; empty if none is."""
    policy = objects.spec(job).get("successPolicy") or {}
    for number, rule in enumerate(policy.get("rules") or ()):
        listed, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        wanted = completed if listed is None else parse_indexes(listed)
        enough = len(wanted) if count is None else int(count)
        if (listed is not None or count is not None) and len(wanted & completed) >= enough:
            return f"Matched rules at index {number}"
    return ""


# Indexes ---------------------------------------------------------------------------------------


def is_indexed(job: Object) -> bool:
    return objects.spec(job).get("completionMode") == "Indexed"


def completion_index(pod: Object) -> int:
    """The index of a pod; -1 if it has none."""
    text = objects.annotations(pod).get(INDEX, "")
    return int(text) if text.isdecimal() else -1


def failure_count(pod: Object) -> int:
    """How many pods of the same index failed before this one."""
    text = objects.annotations(pod).get(FAILURE_COUNT, "")
    return int(text) if text.isdecimal() else 0


def parse_indexes(text: str) -> set[int]:
    """Indexes such as `1,3-5` as numbers."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def format_indexes(numbers: Iterable[int]) -> str:
    """Numbers as `1,3-5`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
