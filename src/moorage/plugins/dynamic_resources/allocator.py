"""The allocator: devices for all claims of a pod on one node, or none.

A depth-first search in a fixed order, so the choice is that of kube-scheduler: claims, their
requests, and the devices of the inventory; the first solution is taken. The next device of a
request comes after the one before it. A request for the first available of several alternatives
tries them in order, each together with everything that follows.

Devices that cannot be used at all are excluded before the search. What is left is bounded by a
number of steps, which stands for kube-scheduler's timeout.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from moorage import plugin as mp
from moorage.plugins.dynamic_resources import capacity
from moorage.plugins.dynamic_resources.constraints import ConstraintCheck
from moorage.plugins.dynamic_resources.inventory import Inventory
from moorage.plugins.dynamic_resources.plan import (
    AllocationFailed,
    AllocationPlan,
    ClaimPlan,
    Failure,
    RequestPlan,
    Selectable,
)
from moorage.plugins.dynamic_resources.pools import Counters
from moorage.plugins.dynamic_resources.usage import Amounts

# How many devices kube-scheduler tries per second, roughly.
STEPS_PER_SECOND = 100_000


class Chosen(NamedTuple):
    """A device for a request; `consumed` is None unless the device is shared."""

    request: RequestPlan
    device: int
    consumed: Amounts | None


# The devices of each claim, in the order of the claims.
Solution = tuple[tuple[Chosen, ...], ...]


@dataclass(slots=True)
class Taken:
    """What taking a device has changed, so that it can be given back."""

    device: int
    counters: bool = False
    # How many constraints of the claim count it.
    constraints: int = 0
    # For a shared device what it gives, and what the search had consumed of it before.
    consumed: Amounts | None = None
    consumed_before: Amounts | None = None


class SearchTimeout(Exception):
    """The search took too many steps."""


class TooManyDevices(Exception):
    """A claim would get more devices than it can hold, whichever of them are taken."""


class InvalidPools(Exception):
    """There is no solution, and a pool could not be used."""


def allocate(plan: AllocationPlan, inventory: Inventory, most_steps: float) -> Solution | None:
    """Devices for all claims; None if there is no solution.

    Raises AllocationFailed, InvalidPools or SearchTimeout.
    """
    search = Search(plan, inventory, most_steps)
    if search.may_succeed() and search.solve_claim(0):
        return tuple(tuple(chosen) for chosen in search.chosen)
    if inventory.shape.has_invalid_pool:
        raise InvalidPools
    return None


class Search:
    """One search; see the module."""

    def __init__(self, plan: AllocationPlan, inventory: Inventory, most_steps: float) -> None:
        self._plan = plan
        self._inventory = inventory
        self._shape = inventory.shape
        self._steps_left = most_steps
        self.chosen: list[list[Chosen]] = [[] for _ in plan.claims]
        # Devices taken in this search: by any claim, and by each.
        self._taken = 0
        self._taken_by = [0] * len(plan.claims)
        # What this search consumes of shared devices, and of the counters of each pool.
        self._consumed: dict[int, Amounts] = {}
        self._spent: list[Counters] = [{} for _ in self._shape.pools]
        # What was taken, the latest last.
        self._stack: list[Taken] = []
        self._all: dict[RequestPlan, list[int]] = {}
        self._constraints = [self._validate(i, claim) for i, claim in enumerate(plan.claims)]

    # Validation

    def _validate(self, position: int, claim: ClaimPlan) -> list[ConstraintCheck]:
        least = 0
        for request, alternatives in zip(claim.spec.requests or (), claim.requests, strict=True):
            if missing := self._plan.features.missing_for(request):
                raise AllocationFailed(Failure(missing, position))
            counts = [self._validate_request(position, each) for each in alternatives]
            least += min(counts, default=0)
        if least > mp.MAX_DEVICES:
            text = f"number of requested devices {least} exceeds the claim limit"
            raise AllocationFailed(Failure(f": {text} of {mp.MAX_DEVICES}", position))
        found = []
        for i, constraint in enumerate(claim.constraints()):
            if constraint is None:
                text = "empty constraint (unsupported constraint type?)"
                raise AllocationFailed(Failure(f", constraint #{i}: {text}", position))
            found.append(constraint)
        return found

    def _validate_request(self, position: int, request: RequestPlan) -> int:
        """The number of devices that a request needs."""
        where, spec = f", request {request.label}", request.spec
        for i, selector in enumerate(spec.selectors):
            if selector.cel is None:
                text = "CEL expression empty (unsupported selector type?)"
                raise AllocationFailed(Failure(f"{where}, selector #{i}: {text}", position))
        if request.device_class is None:
            name = spec.device_class_name
            missing = f'deviceclass.resource.k8s.io "{name}" not found'
            text = f"{where}: could not retrieve device class {name}: {missing}"
            raise AllocationFailed(Failure(text, position))
        if spec.allocation_mode == mp.EXACT_COUNT:
            return spec.count
        if not request.takes_all:
            text = f"{where}: unsupported count mode {spec.allocation_mode}"
            raise AllocationFailed(Failure(text, position))
        self._all[request] = self._all_devices(position, request)
        return len(self._all[request])

    def _all_devices(self, position: int, request: RequestPlan) -> list[int]:
        """All devices that a request can use, whether they are in use or not."""
        shape, selectable = self._shape, request.selectable(self._shape)
        found = []
        for number, (pool, offset) in enumerate(zip(shape.pools, shape.offsets, strict=True)):
            if pool.problem:
                text = f"asks for all devices, but resource pool {{pool}} is {pool.problem}"
                failure = Failure(f", request {request.label}: {text}", position, pool=number)
                raise AllocationFailed(failure)
            for device in range(offset, offset + len(pool.devices)):
                if device in selectable.failed:
                    raise AllocationFailed(selectable.failed[device])
                if selectable.accepted >> device & 1 and self._has_capacity(selectable, device):
                    found.append(device)
        return found

    def may_succeed(self) -> bool:
        """Whether every request has as many free devices as it needs, as far as can be seen.

        False only if the search would find nothing and no error on its way.
        """
        free = self._shape.usable & ~self._inventory.taken
        short = False
        for claim in self._plan.claims:
            for alternatives in claim.requests:
                enough = False
                for request in alternatives:
                    selectable = request.selectable(self._shape)
                    if selectable.failed or (request.takes_all and claim.spec.constraints):
                        return True
                    if request.takes_all:
                        enough = enough or bool(self._all[request])
                        continue
                    usable = selectable.accepted & selectable.tolerated & selectable.large_enough
                    usable &= self._shape.usable if request.admin_access else free
                    enough = enough or usable.bit_count() >= request.spec.count
                short = short or not enough
        return not short

    # The search

    def solve_claim(self, claim: int) -> bool:
        """Find devices for a claim and all that follow."""
        return claim == len(self._plan.claims) or self._solve_request(claim, 0)

    def _solve_request(self, claim: int, number: int) -> bool:
        requests = self._plan.claims[claim].requests
        if number == len(requests):
            return self.solve_claim(claim + 1)
        exceeds = True
        for each in requests[number]:
            try:
                if self._solve_devices(claim, number, each, 0, 0):
                    return True
                exceeds = False
            except TooManyDevices:
                continue  # Another alternative may need fewer.
        if exceeds and number:
            raise TooManyDevices
        return False

    def _solve_devices(
        self, claim: int, number: int, request: RequestPlan, found: int, start: int
    ) -> bool:
        """Find the remaining devices of a request, from a device on, and all that follows."""
        everything = self._all.get(request)
        if everything is not None and not everything:
            return False
        needed = request.spec.count if everything is None else len(everything)
        if found >= needed:
            return self._solve_request(claim, number + 1)
        if len(self.chosen[claim]) + needed - found > mp.MAX_DEVICES:
            raise TooManyDevices
        if everything is not None:
            device = everything[found]
            if not self._take(claim, request, device, must=True):
                return False
            return self._solve_rest(claim, number, request, found, device)
        for device in self._candidates(claim, request, start):
            if self._take(claim, request, device, must=False) and self._solve_rest(
                claim, number, request, found, device
            ):
                return True
        return False

    def _solve_rest(
        self, claim: int, number: int, request: RequestPlan, found: int, device: int
    ) -> bool:
        """Go on with a device that was taken; it is given back if there is no solution with it."""
        solved = False
        try:
            solved = self._solve_devices(claim, number, request, found + 1, device + 1)
        finally:
            if not solved:
                self._return(claim, request)
        return solved

    def _candidates(self, claim: int, request: RequestPlan, start: int) -> Iterator[int]:
        """Devices that are not in use and that the request accepts, in order."""
        selectable = request.selectable(self._shape)
        failed = sum(1 << device for device in selectable.failed)
        rest = (selectable.accepted | failed) & self._shape.usable & ~self._in_use(claim, request)
        rest = rest >> start << start
        while rest:
            bit = rest & -rest
            rest ^= bit
            device = bit.bit_length() - 1
            self._steps_left -= 1
            if self._steps_left < 0:
                raise SearchTimeout
            if device in selectable.failed:
                raise AllocationFailed(selectable.failed[device])
            if self._has_capacity(selectable, device):
                yield device

    def _in_use(self, claim: int, request: RequestPlan) -> int:
        if request.admin_access:
            return self._taken_by[claim]
        return self._inventory.taken | self._taken

    def _has_capacity(self, selectable: Selectable, device: int) -> bool:
        if not selectable.large_enough >> device & 1:
            return False
        used, more = self._inventory.consumed.get(device), self._consumed.get(device)
        if used is None and more is None:
            return True
        amounts = selectable.consumption[device]
        assert amounts is not None
        total = {name: (used or {}).get(name, 0) + (more or {}).get(name, 0) for name in amounts}
        return capacity.fits(self._shape.devices[device].model, amounts, total)

    def _take(self, claim: int, request: RequestPlan, device: int, *, must: bool) -> bool:
        """Take a device, unless something speaks against it; then nothing has changed."""
        if self._in_use(claim, request) >> device & 1:
            return False
        model = self._shape.devices[device].model
        features = self._plan.features
        if model.consumes and not features.counters:
            return False
        is_shared = model.is_shared and features.capacity
        taken = Taken(device)
        if model.consumes and not (is_shared and self._is_shared_already(device)):
            # A shared device consumes counters once.
            if not self._has_counters(device):
                return False
            self._spend(device, 1)
            taken.counters = True
        selectable = request.selectable(self._shape)
        if not selectable.tolerated >> device & 1:
            self._undo(claim, request, taken)
            return False
        for constraint in self._constraints[claim]:
            if not constraint.add(request.request, request.subrequest, model):
                self._undo(claim, request, taken)
                if must:
                    text = "cannot add device {device} because a claim constraint would not be"
                    where = f", request {request.label}"
                    failure = Failure(f"{where}: {text} satisfied", claim, device=device)
                    raise AllocationFailed(failure)
                return False
            taken.constraints += 1
        if must and not self._has_capacity(selectable, device):
            self._undo(claim, request, taken)
            return False
        if is_shared:
            taken.consumed = selectable.consumption[device] or {}
            taken.consumed_before = self._consumed.get(device)
            self._consumed[device] = capacity.plus(taken.consumed_before, taken.consumed)
        else:
            self._taken_by[claim] |= 1 << device
            self._taken |= 1 << device
        self._stack.append(taken)
        self.chosen[claim].append(Chosen(request, device, taken.consumed))
        return True

    def _return(self, claim: int, request: RequestPlan) -> None:
        """Take back the device that was taken last."""
        self.chosen[claim].pop()
        taken = self._stack.pop()
        if taken.consumed is None:
            bit = 1 << taken.device
            # An admin request may have taken a device that another claim has taken before.
            self._taken_by[claim] &= ~bit
            if not any(mine & bit for mine in self._taken_by):
                self._taken &= ~bit
        elif taken.consumed_before is None:
            del self._consumed[taken.device]
        else:
            self._consumed[taken.device] = taken.consumed_before
        self._undo(claim, request, taken)

    def _undo(self, claim: int, request: RequestPlan, taken: Taken) -> None:
        """Give back counters and constraints of a device."""
        for constraint in self._constraints[claim][: taken.constraints]:
            constraint.remove(request.request, request.subrequest)
        if taken.counters:
            self._spend(taken.device, -1)

    def _is_shared_already(self, device: int) -> bool:
        return device in self._inventory.consumed or device in self._consumed

    # Counters

    def _has_counters(self, device: int) -> bool:
        """Whether the pool has enough left for a device that consumes counters."""
        charged = self._shape.devices[device].model.consumes
        pool = self._shape.pool_of[device]
        spent = self._spent[pool]
        # As in Kubernetes: an overdrawn counter blocks devices that do not use it, too.
        return all(
            spent.get(key, 0) + charged.get(key, 0) <= left
            for key, left in self._inventory.left[pool].items()
        )

    def _spend(self, device: int, sign: int) -> None:
        spent = self._spent[self._shape.pool_of[device]]
        for key, amount in self._shape.devices[device].model.consumes.items():
            spent[key] = spent.get(key, 0) + sign * amount
