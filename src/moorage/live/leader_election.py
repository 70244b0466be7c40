"""LeaderElector: leader election among schedulers by a Lease (coordination.k8s.io/v1).

    standby   reads the lease twice per retry period; takes it over when it has no holder, or when
              it has not changed for its duration, measured by our own clock
    leader    renews the lease every retry period. It leads until one renew deadline after the last
              successful renewal was *sent*, whatever is in progress then

The clock runs on while the process is stopped or the machine sleeps. So a leader that wakes up late
knows at once that it must not act: `may_act` is called before every request.
"""

import asyncio
import math

import msgspec
from msgspec import Struct, structs

from moorage.api.config import LeaderElection
from moorage.live import api_errors, logs, paths
from moorage.live.api_errors import ApiError, ApiStatusError
from moorage.live.client import Client


class _LeaseSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _LeaseMeta(Struct, frozen=True, rename="camel", omit_defaults=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}  # A Struct copies it for every instance.
    annotations: dict[str, str] = {}


class LeaseRecord(Struct, frozen=True, rename="camel"):
    """The fields of a Lease that leader election uses."""

    metadata: _LeaseMeta
    spec: _LeaseSpec = _LeaseSpec()
    api_version: str = "coordination.k8s.io/v1"
    kind: str = "Lease"


class LeaseLost(Exception):
    """This scheduler is not the leader any more."""


class LeaderElector:
    """One candidate for one lease."""

    def __init__(self, client: Client, settings: LeaderElection, identity: str) -> None:
        self.identity = identity
        self.settings = settings
        self.renewed_at = -math.inf  # When the last successful renewal was sent.
        self.is_held = False
        self._client = client
        self._clock = client.clock.boot
        self._log = logs.named("lease").bound(
            lease=f"{settings.resource_namespace}/{settings.resource_name}", identity=identity
        )
        self._random = client.random
        self._lease: LeaseRecord | None = None  # As last read or written.
        self._changed_at = -math.inf  # When it was last seen to change.
        self._holder = ""
        base = "/apis/coordination.k8s.io/v1"
        self._all = paths.namespaced(base, settings.resource_namespace, "leases")
        self._path = f"{self._all}/{settings.resource_name}"
        self._seconds = max(1.0, settings.renew_deadline_seconds / 2)

    def may_act(self) -> bool:
        """Whether this scheduler is the leader at this moment, for certain."""
        deadline = self.renewed_at + self.settings.renew_deadline_seconds
        return self.is_held and self._clock() < deadline

    def seconds_since_renewal(self) -> float:
        """How long ago the last successful renewal was sent."""
        return self._clock() - self.renewed_at

    # Standby

    async def acquire(self) -> None:
        """Wait until this scheduler is the leader."""
        self._log.info("attempting to acquire leader lease")
        while not await self._try_to_acquire():
            await asyncio.sleep(self._retry_seconds())
        self.is_held = True
        self._log.info("successfully acquired lease")

    async def _try_to_acquire(self) -> bool:
        try:
            return await self._read_and_take()
        except (ApiError, msgspec.MsgspecError) as error:
            self._log.warning("cannot read the lease", why=str(error))
            return False

    async def _read_and_take(self) -> bool:
        began = self._clock()
        try:
            body = await self._client.get(self._path, seconds=self._seconds, tries=1)
        except ApiStatusError as error:
            if error.code != api_errors.NOT_FOUND:
                raise
            meta = _LeaseMeta(
                name=self.settings.resource_name, namespace=self.settings.resource_namespace
            )
            spec = self._renewed(_LeaseSpec(lease_transitions=0))
            return await self._write(LeaseRecord(meta, spec), began)
        lease = msgspec.json.decode(body, type=LeaseRecord)
        self._update(lease)
        # The holder may be this scheduler, if the response to its own request was lost.
        has_other_holder = lease.spec.holder_identity not in (None, "", self.identity)
        if has_other_holder and self._clock() < self._expires_at():
            return False
        began = self._clock()
        transitions = (lease.spec.lease_transitions or 0) + 1
        spec = self._renewed(_LeaseSpec(lease_transitions=transitions))
        return await self._write(structs.replace(lease, spec=spec), began)

    def _update(self, lease: LeaseRecord) -> None:
        if self._lease is None or lease.spec != self._lease.spec:
            self._changed_at = self._clock()
        self._lease = lease
        holder = lease.spec.holder_identity or ""
        if holder != self._holder:
            self._log.info("new leader elected", leader=holder)
            self._holder = holder

    def _expires_at(self) -> float:
        assert self._lease is not None
        seconds = self._lease.spec.lease_duration_seconds
        default = self.settings.lease_duration_seconds
        return self._changed_at + (default if seconds is None else seconds)

    def _retry_seconds(self) -> float:
        # Half a period: the later a renewal is seen, the later a take-over can be.
        usual = self.settings.retry_period_seconds / 2 * self._random.uniform(0.8, 1.2)
        if self._lease is None or not self._lease.spec.holder_identity:
            return usual
        left = self._expires_at() - self._clock()
        # If it has expired and is not ours, requests fail or another candidate was quicker.
        return min(usual, max(left, 0.01)) if left > 0 else usual

    # Leader

    async def keep(self) -> None:
        """Renew the lease until that fails; raises LeaseLost."""
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
        raise LeaseLost("the lease was not renewed in time")

    async def _renew(self) -> bool:
        assert self._lease is not None
        spec = self._renewed(self._lease.spec)
        if await self._write(structs.replace(self._lease, spec=spec), self._clock()):
            return True
        if (holder := await self._read_holder()) != self.identity:
            self.is_held = False
            raise LeaseLost(f"{holder or 'nobody'} holds the lease")
        return False

    async def _read_holder(self) -> str | None:
        body = await self._client.get(self._path, seconds=self._seconds, tries=1)
        lease = msgspec.json.decode(body, type=LeaseRecord)
        self._update(lease)
        return lease.spec.holder_identity

    async def release(self) -> None:
        """Release the lease, so that another candidate need not wait until it expires."""
        if not self.is_held or self._lease is None:
            return
        self.is_held = False
        now = self._client.clock.micro()
        spec = structs.replace(
            self._lease.spec,
            holder_identity="",
            lease_duration_seconds=1,
            acquire_time=now,
            renew_time=now,
        )
        try:
            # A renewal whose answer was not awaited may have changed it.
            while not await self._write(structs.replace(self._lease, spec=spec), self._clock()):
                if await self._read_holder() != self.identity:
                    return
            self._log.info("released the lease")
        except (ApiError, msgspec.MsgspecError) as error:
            self._log.warning("cannot release the lease", why=str(error))

    # Standby and leader

    def _renewed(self, before: _LeaseSpec) -> _LeaseSpec:
        now = self._client.clock.micro()
        return _LeaseSpec(
            holder_identity=self.identity,
            lease_duration_seconds=math.ceil(self.settings.lease_duration_seconds),
            acquire_time=before.acquire_time or now,
            renew_time=now,
            lease_transitions=before.lease_transitions,
        )

    async def _write(self, lease: LeaseRecord, began: float) -> bool:
        """Create or update the lease; False if another candidate has changed it meanwhile."""
        is_new = not lease.metadata.resource_version
        method, path = ("POST", self._all) if is_new else ("PUT", self._path)
        try:
            body = await self._client.request(
                method, path, msgspec.json.encode(lease), seconds=self._seconds, tries=1
            )
        except ApiStatusError as error:
            if error.code == api_errors.CONFLICT:
                return False
            raise
        self._lease = msgspec.json.decode(body, type=LeaseRecord)
        self.renewed_at = began
        return True
