"""BindingCycle: from its decision to bound, as a table of stages. Nobody waits for it.

    stage      goes on when                                  next
    RESERVE    every reserve and permit plugin agrees        PERMIT
    PERMIT     no plugin waits, or all allowed the pod       PRE_BIND
    PRE_BIND   every busy plugin's requests were carried out BIND
               and it waits for nothing more
    BIND       a plugin's request was carried out            DONE
    any        somebody refuses, or trouble                  FAILED

`step` runs stages until one has to wait for the world, and returns what is asked of it.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any

from msgspec import Struct, field, structs

from moorage.api.meta import NodeName
from moorage.api.pod import Pod
from moorage.core.diagnosis import Diagnosis
from moorage.core.effects import Done, Outcome
from moorage.core.extenders import ExtenderBinder
from moorage.core.queued_pod import QueuedPod
from moorage.framework import points, summary
from moorage.framework.awaiting import Awaiting
from moorage.framework.effects import Request
from moorage.framework.profile import Profile
from moorage.framework.state import CycleState
from moorage.framework.status import SUCCESS, Code, Status, error
from moorage.framework.template import PodTemplate


class Stage(Enum):
    """Where a pod is on its way to its node."""

    RESERVE = "reserve"
    PERMIT = "permit"
    PRE_BIND = "pre_bind"
    BIND = "bind"
    DONE = "done"
    FAILED = "failed"


class BindingCycle(Struct, gc=False):
    """One pod's way from its decision to its binding."""

    entry: QueuedPod
    pod: Pod
    node: NodeName
    template: PodTemplate
    profile: Profile
    state: CycleState
    started_at: float
    stage: Stage = Stage.RESERVE
    status: Status = SUCCESS
    failed_in: Stage | None = None
    outstanding: int = 0
    busy: list[Any] = field(default_factory=list)
    asked: Any = None  # The plugin whose requests are outstanding.
    unfinished: bool = False  # Whether that plugin has to be asked what comes next.
    awaiting: Awaiting | None = None  # What that plugin waits for.
    unbound: list[Any] = field(default_factory=list)

    def allowed(self, binders: Sequence[Any] = ()) -> None:
        """Permit is given; `binders` come before the bind plugins."""
        self.stage = Stage.PRE_BIND if self.busy else Stage.BIND
        self.unbound = [*binders, *self.profile.binds]

    def fail(self, status: Status) -> None:
        """The way ends here."""
        self.failed_in = self.stage
        self.stage = Stage.FAILED
        self.status = status

    @property
    def failure(self) -> tuple[Status, Diagnosis | None]:
        """Why it failed; a refusal by reserve or permit is that of the one node in question.

        Later on a refusal is no matter of nodes: the pod is tried again later, as after trouble.
        """
        status = self.status
        if not status.is_rejected or self.failed_in not in (Stage.RESERVE, Stage.PERMIT):
            return status, None
        found = Diagnosis(summary.summarize(1, refused=[(status, 1)]))
        found.blame(status)
        return structs.replace(status, reasons=(found.message,)), found

    @property
    def is_in_pre_bind(self) -> bool:
        """Whether a pre_bind plugin's requests are being carried out, or followed up."""
        is_busy = self.outstanding > 0 or self.awaiting is not None
        return self.stage is Stage.PRE_BIND and is_busy

    def step(self) -> tuple[Request, ...]:
        """Go on as far as possible; what comes back has to be carried out first."""
        while not self.outstanding and self.awaiting is None:
            if self.stage is Stage.BIND:
                asked = self._bind()
            elif self.stage is not Stage.PRE_BIND:
                return ()
            elif self.unfinished:
                asked = self._pre_bind_next()
            elif self.busy:
                asked = self._pre_bind(self.busy.pop(0))
            else:
                self.stage = Stage.BIND
                continue
            self.outstanding = len(asked)
            if asked:
                return asked
        return ()

    def answered(self, outcome: Outcome) -> None:
        """One of the outstanding requests came to an end."""
        self.outstanding -= 1
        if self.stage is Stage.FAILED:
            return
        if isinstance(outcome, Done):
            if self.stage is Stage.BIND:
                self.stage = Stage.DONE
        elif isinstance(self.asked, ExtenderBinder):
            if not self.asked.ignorable:
                self.fail(error(outcome.reason))
        else:
            point = "Bind" if self.stage is Stage.BIND else "PreBind"
            name = self.asked.name
            self.fail(error(f'running {point} plugin "{name}": {outcome.reason}', name))

    def _pre_bind(self, plugin: Any) -> tuple[Request, ...]:
        self.asked = plugin
        answer = self.profile.run_pre_bind(plugin, self.state, self.pod, self.node)
        return self._requests(answer)

    def _pre_bind_next(self) -> tuple[Request, ...]:
        answer = self.profile.run_pre_bind_next(self.asked, self.state, self.pod, self.node)
        return self._requests(answer)

    def _requests(self, answer: Status | Awaiting | tuple[Request, ...]) -> tuple[Request, ...]:
        """What a pre_bind plugin asks for; it may go on afterwards, unless it said it is done."""
        self.unfinished = False
        if isinstance(answer, Status):
            if not answer.is_success:
                self.fail(answer)
            return ()
        self.unfinished = points.follows_up(self.asked)
        if isinstance(answer, Awaiting):
            self.awaiting = answer
            return ()
        return answer

    def _bind(self) -> tuple[Request, ...]:
        if not self.unbound:
            # Every bind plugin skipped the pod: a failure without words, as in the reference.
            self.fail(Status(Code.SKIP))
            return ()
        self.asked = self.unbound.pop(0)
        answer = self.profile.run_bind(self.asked, self.state, self.pod, self.node)
        if not isinstance(answer, Status):
            return (answer,)
        if answer.is_success:
            self.stage = Stage.DONE
        elif not answer.is_skip:
            self.fail(answer)
        return ()
