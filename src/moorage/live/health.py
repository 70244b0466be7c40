"""Health checks by name, with the texts of Kubernetes' health endpoints.

path       checks
/healthz   leaderElection (ping without an election), schedulingLoop
/livez     ping, schedulingLoop
/readyz    leaderElection, shutdown, sched-handler-sync
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from moorage.live.run import LiveScheduler

# A leader that has not renewed its lease for its duration and this long is stuck.
TOLERATED_SECONDS = 20.0
# A scheduler that has pods to schedule and schedules none for this long is stuck.
STUCK_SECONDS = 60.0

# Returns an empty text, or what is wrong.
Check = Callable[[], str]


class HealthResponse(NamedTuple):
    """A status code and a text."""

    code: int
    text: str


class Health:
    """The checks of a running scheduler."""

    def __init__(self, live: LiveScheduler, clock: Callable[[], float] = time.monotonic) -> None:
        self._live = live
        self._clock = clock
        self._last_cycle = -1
        self._last_cycle_at = clock()
        elected = {"leaderElection": self._check_renewal} if live.elector else {}
        loop = {"schedulingLoop": self._check_progress}
        ping: dict[str, Check] = {"ping": lambda: ""}
        self.paths: Mapping[str, Mapping[str, Check]] = {
            "healthz": {**(elected or ping), **loop},
            "livez": {**ping, **loop},
            "readyz": {
                **elected,
                "shutdown": lambda: "process is shutting down" if live.is_stopping else "",
                "sched-handler-sync": self._check_sync,
            },
        }
        # (check, path, status) -> count; status is success or error.
        self.outcomes: Counter[tuple[str, str, str]] = Counter()
        self.last: dict[tuple[str, str], bool] = {}

    def check_all(
        self, path: str, *, verbose: bool = False, exclude: Collection[str] = ()
    ) -> HealthResponse:
        """Run every check of a path that is not excluded."""
        checks = self.paths[path]
        lines, failed = [], False
        for name in checks:
            if name in exclude:
                lines.append(f"[+]{name} excluded: ok")
            elif self._check(path, name):
                lines.append(f"[-]{name} failed: reason withheld")
                failed = True
            else:
                lines.append(f"[+]{name} ok")
        unknown = [f'"{name}"' for name in exclude if name not in checks]
        if unknown:
            text = f"no matches for {','.join(unknown)}"
            lines.append(f"warn: some health checks cannot be excluded: {text}")
        if failed:
            return HealthResponse(500, _text([*lines, f"{path} check failed"]))
        return HealthResponse(200, _text([*lines, f"{path} check passed"]) if verbose else "ok")

    def check_one(self, path: str, name: str) -> HealthResponse:
        """Run a single check."""
        if wrong := self._check(path, name):
            return HealthResponse(500, f"internal server error: {wrong}\n")
        return HealthResponse(200, "ok")

    def slis(self) -> Iterator[str]:
        """The outcomes so far, in Prometheus' text format."""
        yield "# TYPE kubernetes_healthcheck gauge"
        for (name, path), passed in sorted(self.last.items()):
            yield f'kubernetes_healthcheck{{name="{name}",type="{path}"}} {int(passed)}'
        yield "# TYPE kubernetes_healthchecks_total counter"
        for (name, path, status), count in sorted(self.outcomes.items()):
            labels = f'name="{name}",status="{status}",type="{path}"'
            yield f"kubernetes_healthchecks_total{{{labels}}} {count}"

    def _check(self, path: str, name: str) -> str:
        wrong = self.paths[path][name]()
        self.last[name, path] = not wrong
        self.outcomes[name, path, "error" if wrong else "success"] += 1
        return wrong

    # The checks

    def _check_renewal(self) -> str:
        """A leader has to renew its lease; a standby is healthy."""
        elector = self._live.elector
        if elector is None or not elector.is_held:
            return ""
        limit = elector.settings.lease_duration_seconds + TOLERATED_SECONDS
        if elector.seconds_since_renewal() <= limit:
            return ""
        return f"failed election to renew leadership on lease {elector.settings.resource_name}"

    def _check_sync(self) -> str:
        if self._live.is_synced:
            return ""
        missing = [each.kind.name for each in self._live.reflectors if not each.is_synced]
        return f"not listed yet: {', '.join(missing) or 'told, but not taken in'}"

    def _check_progress(self) -> str:
        """Scheduling cycles have to happen while there are pods that may be scheduled."""
        cycle = self._live.scheduler.queue.scheduling_cycle
        if cycle != self._last_cycle or not self._live.could_schedule():
            self._last_cycle, self._last_cycle_at = cycle, self._clock()
        seconds = self._clock() - self._last_cycle_at
        return f"no pod was tried for {seconds:.0f} s" if seconds > STUCK_SECONDS else ""


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
