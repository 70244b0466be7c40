"""Lease: which of several schedulers leads (coordination.k8s.io/v1).

    standby   looks at the lease twice in a retry period; takes it over when nobody holds it, or
              when it has not changed for as long as it says that it lasts, by our own clock
    leader    renews it every retry period. What counts is when the last renewal that succeeded
              was *sent*: a renew deadline after that we lead no more, whatever is under way

The clock goes on while the process is stopped or the machine asleep. So a leader that wakes up
late knows at once that it may not act: `may_act` is asked before every request that is sent.
"""

import asyncio
import math
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
from msgspec import Struct, structs

from moorage.api.config import LeaderElection
from moorage.live import logs, paths
from moorage.live.client import Client
from moorage.live.refusals import ApiError, Refused

NOT_FOUND = 404
CONFLICT = 409


def clock() -> float:
    """Seconds that go on whatever becomes of the process; CLOCK_BOOTTIME is Linux' name."""
    boot_time = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(boot_time)


class _Spec(Struct, frozen=True, rename="camel", omit_defaults=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Meta(Struct, frozen=True, rename="camel", omit_defaults=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}  # a Struct copies it for every instance
    annotations: dict[str, str] = {}


class Record(Struct, frozen=True, rename="camel"):
    """A Lease, as far as it is read and written here."""

    metadata: _Meta
    spec: _Spec = _Spec()
    api_version: str = "coordination.k8s.io/v1"
    kind: str = "Lease"


class Lost(Exception):
    """We do not lead any more."""


class Lease:
    """One candidate for one lease."""

    def __init__(
        self,
        client: Client,
        settings: LeaderElection,
        identity: str,
        *,
        clock: Callable[[], float] = clock,
    ) -> None:
        self.identity = identity
        self.settings = settings
        self.renewed_at = -math.inf  # When the last renewal that succeeded was sent.
        self.is_held = False
        self._client = client
        self._clock = clock
        self._log = logs.named("lease").bound(
            lease=f"{settings.resource_namespace}/{settings.resource_name}", identity=identity
        )
        self._random = random.Random()
        self._seen: Record | None = None
        self._seen_at = -math.inf  # When the record was last seen to change.
        self._holder = ""
        base = "/apis/coordination.k8s.io/v1"
        self._all = paths.namespaced(base, settings.resource_namespace, "leases")
        self._path = f"{self._all}/{settings.resource_name}"
        self._seconds = max(1.0, settings.renew_deadline_seconds / 2)

    def may_act(self) -> bool:
        """Whether we lead, for certain, at this very moment."""
        deadline = self.renewed_at + self.settings.renew_deadline_seconds
        return self.is_held and self._clock() < deadline

    # Standby

    async def acquire(self) -> None:
        """Wait until we lead."""
        self._log.info("attempting to acquire leader lease")
        while not await self._tried():
            await asyncio.sleep(self._next_look_seconds())
        self.is_held = True
        self._log.info("successfully acquired lease")

    async def _tried(self) -> bool:
        try:
            return await self._try()
        except (ApiError, msgspec.MsgspecError) as error:
            self._log.warning("cannot look at the lease", why=str(error))
            return False

    async def _try(self) -> bool:
        began = self._clock()
        try:
            body = await self._client.get(self._path, seconds=self._seconds, tries=1)
        except Refused as refused:
            if refused.code != NOT_FOUND:
                raise
            return await self._create(began)
        record = msgspec.json.decode(body, type=Record)
        self._saw(record)
        # It may be ours already, if the answer to our own request was lost.
        is_others = record.spec.holder_identity not in (None, "", self.identity)
        if is_others and not self._has_run_out():
            return False
        return await self._take_over(record)

    def _saw(self, record: Record) -> None:
        if self._seen is None or record.spec != self._seen.spec:
            self._seen_at = self._clock()
        self._seen = record
        holder = record.spec.holder_identity or ""
        if holder != self._holder:
            self._log.info("new leader elected", leader=holder)
            self._holder = holder

    def _has_run_out(self) -> bool:
        return self._clock() >= self._runs_out_at()

    def _runs_out_at(self) -> float:
        assert self._seen is not None
        lasts = self._seen.spec.lease_duration_seconds
        return self._seen_at + (self.settings.lease_duration_seconds if lasts is None else lasts)

    def _next_look_seconds(self) -> float:
        # Half a period: a renewal that is noticed late is a take-over that is late.
        look = self.settings.retry_period_seconds / 2 * self._random.uniform(0.8, 1.2)
        if self._seen is None or not self._seen.spec.holder_identity:
            return look
        left = self._runs_out_at() - self._clock()
        # Nothing left, and still not ours: the server is in trouble, or somebody else was quicker.
        return min(look, max(left, 0.01)) if left > 0 else look

    async def _create(self, began: float) -> bool:
        settings = self.settings
        meta = _Meta(name=settings.resource_name, namespace=settings.resource_namespace)
        return await self._write(Record(meta, self._renewed(_Spec(lease_transitions=0))), began)

    async def _take_over(self, record: Record) -> bool:
        began = self._clock()
        before = record.spec
        transitions = (before.lease_transitions or 0) + 1
        spec = self._renewed(_Spec(lease_transitions=transitions))
        return await self._write(structs.replace(record, spec=spec), began)

    # Leader

    async def keep(self) -> None:
        """Renew for as long as that succeeds; raises Lost."""
        while True:
            await asyncio.sleep(self.settings.retry_period_seconds)
            await self._renew_in_time()

    async def _renew_in_time(self) -> None:
        while self.may_act():
            left = self.renewed_at + self.settings.renew_deadline_seconds - self._clock()
            try:
                async with asyncio.timeout(max(left, 0.0)):
                    if await self._renew():
                        return
            except TimeoutError:
                break
            except (ApiError, msgspec.MsgspecError) as error:
                self._log.warning("cannot renew the lease", why=str(error))
            await asyncio.sleep(min(self.settings.retry_period_seconds / 4, max(left, 0.0)))
        self.is_held = False
        raise Lost("the lease was not renewed in time")

    async def _renew(self) -> bool:
        assert self._seen is not None
        began = self._clock()
        if await self._write(
            structs.replace(self._seen, spec=self._renewed(self._seen.spec)), began
        ):
            return True
        body = await self._client.get(self._path, seconds=self._seconds, tries=1)
        record = msgspec.json.decode(body, type=Record)
        self._saw(record)
        if record.spec.holder_identity != self.identity:
            self.is_held = False
            raise Lost(f"{record.spec.holder_identity or 'nobody'} holds the lease")
        return False

    async def release(self) -> None:
        """Give the lease back, so that another need not wait for its end."""
        if not self.is_held or self._seen is None:
            return
        self.is_held = False
        now = _now()
        spec = structs.replace(
            self._seen.spec,
            holder_identity="",
            lease_duration_seconds=1,
            acquire_time=now,
            renew_time=now,
        )
        try:
            await self._write(structs.replace(self._seen, spec=spec), self._clock())
            self._log.info("released the lease")
        except ApiError as error:
            self._log.warning("cannot release the lease", why=str(error))

    # Both

    def _renewed(self, before: _Spec) -> _Spec:
        now = _now()
        return _Spec(
            holder_identity=self.identity,
            lease_duration_seconds=math.ceil(self.settings.lease_duration_seconds),
            acquire_time=before.acquire_time or now,
            renew_time=now,
            lease_transitions=before.lease_transitions,
        )

    async def _write(self, record: Record, began: float) -> bool:
        """Write the record unless somebody else wrote it meanwhile; False if so."""
        is_new = not record.metadata.resource_version
        method, path = ("POST", self._all) if is_new else ("PUT", self._path)
        try:
            body = await self._client.request(
                method, path, msgspec.json.encode(record), seconds=self._seconds, tries=1
            )
        except Refused as refused:
            if refused.code == CONFLICT:
                return False
            raise
        self._seen = msgspec.json.decode(body, type=Record)
        self._seen_at = self._clock()
        self.renewed_at = began
        return True


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
