"""Bugs that someone could make: `mutants.py --bugs` checks that the simulations find each."""

from typing import NamedTuple


class Bug(NamedTuple):
    """A text in a file below src/moorage, and the wrong text in its place."""

    name: str
    path: str
    before: str
    after: str


BUGS = (
    Bug(
        "the lease is counted from the answer, not from sending",
        "live/leader_election.py",
        "self.renewed_at = began",
        "self.renewed_at = self._clock()",
    ),
    Bug(
        "a standby takes a lease over that has not expired",
        "live/leader_election.py",
        "if has_other_holder and self._clock() < self._expires_at():",
        "if has_other_holder and self._clock() < self._changed_at + 1.0:",
    ),
    Bug(
        "requests are sent after the lease is lost",
        "live/client.py",
        "if fence is not None and not fence():",
        "if False:",
    ),
    Bug(
        "a new leader does not list again",
        "live/run.py",
        "old = [each for each in self.reflectors if each.listed_at < self._acquired_at]",
        "old = self.reflectors[:0]",
    ),
    Bug(
        "a binding without an answer counts as failed",
        "live/performer.py",
        "case ApiStatusError() | NoResponseError():\n            return Unknown(str(error))",
        "case ApiStatusError() | NoResponseError():\n            return Failed(str(error))",
    ),
    Bug(
        "a list does not delete what is gone",
        "live/reflector.py",
        "            if key not in listed:",
        "            if False:",
    ),
    Bug(
        "pods that an earlier list hides do not come back",
        "live/reflector.py",
        "yield Deleted(_without_version(obj) if is_earlier else obj)",
        "yield Deleted(obj)",
    ),
    Bug(
        "a watch goes on from an expired version",
        "live/reflector.py",
        '            self._log.verbose(1, "listing anew", why=str(error))\n'
        '            self._version = ""',
        '            self._log.verbose(1, "listing anew", why=str(error))',
    ),
    Bug(
        "events before an error of a watch are dropped",
        "live/reflector.py",
        "            self._queue.put(found)\n            if found:",
        "            if found:",
    ),
    Bug(
        "changes while a pod is in flight are lost",
        "core/in_flight.py",
        "            self._events.append(InFlightEvent(event, old, new))",
        "            pass",
    ),
    Bug(
        "a pod that is confirmed is counted twice",
        "nodes/table.py",
        "            self.remove_pod(node_name, uid)\n            self.add_pod(",
        "            self.add_pod(",
    ),
    Bug(
        "no second filtering pass with nominated pods",
        "core/cycle.py",
        "        if self._nominated:\n            fits = self._beside_nominated",
        "        if False:\n            fits = self._beside_nominated",
    ),
    Bug(
        "an uncordoned node is not noticed",
        "core/updates.py",
        "if old.spec.unschedulable and not new.spec.unschedulable:",
        "if False:",
    ),
    Bug(
        "an older version of a pod is accepted",
        "core/event_handlers.py",
        "            if is_older(new, old):\n                return",
        "            if False:\n                return",
    ),
    Bug(
        "a deleted pod comes back with a late event",
        "core/event_handlers.py",
        "if meta.uid in self._gone and version(new) <= self._gone[meta.uid] != NO_VERSION:",
        "if False:",
    ),
    Bug(
        "preemption evicts every pod of lower priority",
        "plugins/default_preemption/victims.py",
        "    if what_if.status().is_success:\n        return True\n    what_if.remove(each)",
        "    what_if.remove(each)",
    ),
    Bug(
        "pods are tried in the order of their arrival",
        "plugins/priority_sort.py",
        "return -pod.priority, queued_at",
        "return 0, queued_at",
    ),
    Bug(
        "a pod is bound before its volumes",
        "plugins/volume_binding/plugin.py",
        "return binding.await_binding(state.cluster, plan, node, until, state.now)",
        "return mp.SUCCESS",
    ),
    Bug(
        "devices of a pod that is being bound are allocated again",
        "plugins/dynamic_resources/plugin.py",
        "        binding.hold(state.cluster, plan, pod)",
        "        pass",
    ),
)
