"""Health: named checks that really check, and how Kubernetes words their outcome.

path       checks
/healthz   leaderElection (ping without an election), schedulingLoop
/livez     ping, schedulingLoop
/readyz    leaderElection, shutdown, sched-handler-sync
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from moorage.live import lease as leases
from moorage.live.run import Live

# A leader that has not renewed for so long beyond the lease's duration is stuck.
TOLERATED_SECONDS = 20.0
# A scheduler that may try pods, has some, and tries none for so long is stuck.
STUCK_SECONDS = 60.0

# Nothing, or what is wrong.
Check = Callable[[], str]


class Answer(NamedTuple):
    """A status code and a text."""

    code: int
    text: str


class Health:
    """The checks of a scheduler at work."""

    def __init__(self, live: Live, clock: Callable[[], float] = time.monotonic) -> None:
        self._live = live
        self._clock = clock
        self._tried = -1
        self._tried_at = clock()
        elected = {"leaderElection": self._leads_or_waits} if live.lease else {}
        loop = {"schedulingLoop": self._goes_on}
        self.paths: Mapping[str, Mapping[str, Check]] = {
            "healthz": {**(elected or {"ping": _ping}), **loop},
            "livez": {"ping": _ping, **loop},
            "readyz": {
                **elected,
                "shutdown": self._is_not_stopping,
                "sched-handler-sync": self._is_synced,
            },
        }
        # (check, path, status) -> how often; status is success or error.
        self.outcomes: Counter[tuple[str, str, str]] = Counter()
        self.last: dict[tuple[str, str], bool] = {}

    def all(self, path: str, *, verbose: bool = False, exclude: Collection[str] = ()) -> Answer:
        """Every check of a path, but for those that are excluded."""
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
            return Answer(500, _text([*lines, f"{path} check failed"]))
        return Answer(200, _text([*lines, f"{path} check passed"]) if verbose else "ok")

    def one(self, path: str, name: str) -> Answer:
        """A single check."""
        wrong = self._check(path, name)
        return Answer(500, f"internal server error: {wrong}\n") if wrong else Answer(200, "ok")

    def slis(self) -> Iterator[str]:
        """The outcomes so far, as Prometheus reads them."""
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

    def _leads_or_waits(self) -> str:
        """A leader renews its lease; who does not lead waits for it, and that is well."""
        lease = self._live.lease
        if lease is None or not lease.is_held:
            return ""
        limit = lease.settings.lease_duration_seconds + TOLERATED_SECONDS
        if leases.clock() - lease.renewed_at <= limit:
            return ""
        return f"failed election to renew leadership on lease {lease.settings.resource_name}"

    def _is_not_stopping(self) -> str:
        return "process is shutting down" if self._live.is_stopping else ""

    def _is_synced(self) -> str:
        if self._live.is_synced:
            return ""
        missing = [each.kind.name for each in self._live.reflectors if not each.is_synced]
        return f"not listed yet: {', '.join(missing) or 'told, but not taken in'}"

    def _goes_on(self) -> str:
        """Whether pods are tried, as long as there are any and nothing keeps us from it."""
        tried = self._live.scheduler.queue.scheduling_cycle
        if tried != self._tried or not self._live.could_schedule():
            self._tried, self._tried_at = tried, self._clock()
        still = self._clock() - self._tried_at
        return f"no pod was tried for {still:.0f} s" if still > STUCK_SECONDS else ""


def _ping() -> str:
    return ""


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
