"""BindingCycle: one pod from its decision to bound, stage by stage. The scheduler does not wait.

`step` runs stages until one has to wait for effects or objects, and returns the requests.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, structs

from moorage.api.meta import NodeName
from moorage.api.pod import Pod
from moorage.api.server_requests import EmitEvent, Request
from moorage.core import binding_points
from moorage.core.diagnosis import Diagnosis
from moorage.core.effects import Done, Outcome
from moorage.core.extenders import ExtenderBinder
from moorage.core.queued_pod import QueuedPod
from moorage.core.transitions import TransitionTable
from moorage.framework import points
from moorage.framework.invoke import PluginMethod
from moorage.framework.points import Awaiting
from moorage.framework.profile import Profile
from moorage.framework.state import CycleState
from moorage.framework.status import SUCCESS, Code, Status, error, summarize
from moorage.nodes.template import PodTemplate

RESERVE = "reserve"
PERMIT = "permit"
PRE_BIND = "pre_bind"
BIND = "bind"
DONE = "done"
FAILED = "failed"

AGREE = "agree"
ALLOW = "allow"
FINISH = "finish"
FAIL = "fail"

BINDING_TRANSITIONS = TransitionTable(
    "binding",
    (
        (RESERVE, AGREE, PERMIT, "every reserve and permit plugin agrees, or wants to wait"),
        (RESERVE, FAIL, FAILED, "a reserve or permit plugin rejects the pod, or raises"),
        (PERMIT, ALLOW, PRE_BIND, "no plugin waits, or all that waited allow the pod"),
        (PERMIT, FAIL, FAILED, "a plugin rejects the waiting pod, its wait times out, or an error"),
        (PRE_BIND, FINISH, BIND, "all requests of pre_bind plugins are carried out, none waits"),
        (PRE_BIND, FAIL, FAILED, "a request fails, or the pod is preempted or deleted"),
        (BIND, FINISH, DONE, "the request of a bind plugin is carried out"),
        (BIND, FAIL, FAILED, "the request fails, or every bind plugin skips the pod"),
        (FAILED, FAIL, FAILED, "a failed pod is deleted before its outstanding requests end"),
    ),
)

# So often a pre_bind plugin may be called without a request or an object to wait for in between.
MOST_ROUNDS = 100


class BindingCycle(Struct, gc=False):
    """See the module."""

    entry: QueuedPod
    pod: Pod
    node: NodeName
    template: PodTemplate
    profile: Profile
    state: CycleState
    started_at: float
    active: frozenset[str]  # The points with a plugin that has something to do.
    stage: str = RESERVE
    status: Status = SUCCESS
    failed_in: str | None = None
    outstanding: int = 0
    busy: list[Any] = []  # The pre_bind plugins still to run.
    plugin: Any = None  # The plugin whose requests are outstanding.
    unfinished: bool = False  # Whether that plugin has to be called again (pre_bind_next).
    awaiting: Awaiting | None = None  # The objects that that plugin waits for.
    unbound: Sequence[PluginMethod] = ()  # The bind plugins still to run.

    def allow(self, binders: Sequence[ExtenderBinder] = ()) -> None:
        """Go on after permit; `binders` come before the bind plugins."""
        self.stage = BINDING_TRANSITIONS[self.stage, ALLOW]
        if not self.busy:
            self.stage = BINDING_TRANSITIONS[self.stage, FINISH]
        self.unbound = self.profile.chain["bind"]
        if binders:
            first = [self.profile.require(binder, "bind") for binder in binders]
            self.unbound = [*first, *self.unbound]

    def fail(self, status: Status) -> None:
        """End the cycle."""
        self.failed_in = self.stage
        self.stage = BINDING_TRANSITIONS[self.stage, FAIL]
        self.status = status

    @property
    def failure(self) -> tuple[Status, Diagnosis | None]:
        """Why it failed. A rejection by reserve or permit counts as one of the node.

        A later rejection does not depend on nodes: the pod is tried again as after an error.
        """
        status = self.status
        if not status.is_rejected or self.failed_in not in (RESERVE, PERMIT):
            return status, None
        found = Diagnosis(summarize(1, rejected=[(status, 1)]))
        found.blame(status)
        return structs.replace(status, reasons=(found.message,)), found

    @property
    def is_in_pre_bind(self) -> bool:
        """Whether a pre_bind plugin's requests are outstanding, or it waits for objects."""
        is_busy = self.outstanding > 0 or self.awaiting is not None
        return self.stage == PRE_BIND and is_busy

    def step(self) -> list[Request]:
        """Go on as far as possible; the returned requests have to be carried out first."""
        requests: list[Request] = []
        rounds = 0
        while not self.outstanding and self.awaiting is None:
            if self.stage == BIND:
                request = self._bind()
                if request is not None:
                    requests.append(request)
                    self.outstanding = 0 if isinstance(request, EmitEvent) else 1
            elif self.stage != PRE_BIND:
                break
            elif self.unfinished or self.busy:
                found = self._pre_bind()
                requests += found
                # Events have no outcome to wait for.
                self.outstanding = sum(not isinstance(each, EmitEvent) for each in found)
                rounds += 1
                if rounds > MOST_ROUNDS and self.unfinished:
                    self.fail(self._endless())
            else:
                self.stage = BINDING_TRANSITIONS[PRE_BIND, FINISH]
        return requests

    def _endless(self) -> Status:
        """The error of a pre_bind plugin that is called again and again, and waits for nothing."""
        text = "pre_bind_next does not end: it returns nothing that can be waited for"
        name = self.plugin.name
        return error(f'running PreBind plugin "{name}": {text}', name)

    def completed(self, outcome: Outcome) -> None:
        """Take the outcome of one of the outstanding requests."""
        self.outstanding -= 1
        if isinstance(outcome, Done):
            if outcome.claim is not None:
                self.state.written.append(outcome.claim)
            if self.stage == BIND:
                self.stage = BINDING_TRANSITIONS[BIND, FINISH]
            else:
                self.state.done += 1
            return
        if self.stage == FAILED:
            return  # The first failure counts.
        if isinstance(self.plugin, ExtenderBinder):
            if not self.plugin.ignorable:
                self.fail(error(outcome.reason))
        else:
            point = "Bind" if self.stage == BIND else "PreBind"
            name = self.plugin.name
            self.fail(error(f'running {point} plugin "{name}": {outcome.reason}', name))

    def _pre_bind(self) -> tuple[Request, ...]:
        """The requests of a pre_bind plugin; it is called again afterwards, unless it is done."""
        name = "pre_bind_next" if self.unfinished else "pre_bind"
        if not self.unfinished:
            self.plugin = self.busy.pop(0)
        result = binding_points.pre_bind(
            self.profile, self.plugin, self.state, self.pod, self.node, name
        )
        self.unfinished = False
        if isinstance(result, Status):
            if not result.is_success:
                self.fail(result)
            return ()
        self.unfinished = points.follows_up(self.plugin)
        if isinstance(result, Awaiting):
            self.awaiting = result
            return ()
        return result

    def _bind(self) -> Request | None:
        if not self.unbound:
            # Every bind plugin skipped the pod: a failure without a message, as in kube-scheduler.
            self.fail(Status(Code.SKIP))
            return None
        method, *self.unbound = self.unbound
        self.plugin = method.plugin
        result = binding_points.bind(method, self.state, self.pod, self.node)
        if not isinstance(result, Status):
            return result
        if result.is_success:
            self.stage = BINDING_TRANSITIONS[BIND, FINISH]
        elif not result.is_skip:
            self.fail(result)
        return None
