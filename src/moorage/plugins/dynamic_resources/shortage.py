"""Why nodes have no devices for a request: they are missing, do not match, are tainted or taken."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from moorage import plugin as mp
from moorage.plugins.dynamic_resources import claims, extended, plan
from moorage.plugins.dynamic_resources.index import index_of
from moorage.plugins.dynamic_resources.plan import Requested
from moorage.plugins.dynamic_resources.pools import DeviceModel, PoolKey

MOST_LETTERS = 80
DeviceKey = tuple[PoolKey, str]


class Wanted(NamedTuple):
    """A request of a pod: how texts call it, what it asks for, and how many; 0 for all devices."""

    label: str
    spec: Requested
    needed: int


class Seen(NamedTuple):
    """A device that a node sees, and the pods that have it."""

    model: DeviceModel
    users: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shortage:
    """What one node lacks for a request; nodes that lack the same are told of together."""

    text: str
    users: tuple[str, ...] = ()


def explain(rejection: mp.Rejection) -> str:
    """For the first request that each node cannot serve: what it lacks."""
    cluster = rejection.cluster
    index = index_of(cluster)
    index.refresh()
    users = _users(cluster)
    wanted = list(_wanted(rejection))
    found: dict[str, dict[Shortage, list[str]]] = {}
    for info in rejection.nodes:
        row = cluster.table.row_of[info.name]
        seen = [
            Seen(device.model, users.get((pool.key, device.name), ()))
            for pool in index.pools_of(row)
            for device in pool.devices
            if device.is_here and not pool.problem
        ]
        for request in wanted:
            shortage = _shortage(request, seen, cluster)
            if shortage is not None:
                nodes = found.setdefault(request.label, {}).setdefault(shortage, [])
                nodes.append(info.name)
                break
    return " ".join(f"{label}: {_by_nodes(shortages)}." for label, shortages in found.items())


def _by_nodes(shortages: dict[Shortage, list[str]]) -> str:
    parts = []
    for shortage, nodes in shortages.items():
        users = f", by {mp.texts.listed(list(shortage.users), MOST_LETTERS)}" * bool(shortage.users)
        parts.append(f"on {mp.texts.listed(nodes, MOST_LETTERS)} {shortage.text}{users}")
    return "; ".join(parts)


def _wanted(rejection: mp.Rejection) -> Iterator[Wanted]:
    """The requests of the pod that have no devices yet; alternatives are requests as well."""
    cluster, pod = rejection.cluster, rejection.pod
    for claim in claims.look_up(cluster, pod):
        if claims.is_allocated(claim):
            continue
        for request in claim.spec.devices.requests or ():
            alternatives: list[tuple[str, Requested]] = [
                (f"{request.name}/{each.name}", each) for each in request.first_available
            ]
            if request.exactly is not None:
                alternatives.append((request.name, request.exactly))
            for name, spec in alternatives:
                count = 0 if spec.allocation_mode == mp.ALL_DEVICES else spec.count
                amount = f"{count or 'all'} of class {spec.device_class_name}"
                yield Wanted(f"claim {claim.name}, request {name} needs {amount}", spec, count)
    for resource in extended.requested(pod):
        for each in cluster.all(mp.DeviceClass):
            implicit = f"{mp.resource_claims.IMPLICIT_RESOURCE_PREFIX}{each.name}"
            if resource in (each.spec.extended_resource_name, implicit):
                spec = mp.ExactDeviceRequest(device_class_name=each.name)
                yield Wanted(f"resource {resource} needs devices of class {each.name}", spec, 1)


def _shortage(wanted: Wanted, seen: list[Seen], cluster: mp.Cluster) -> Shortage | None:
    """What is missing for one request; None if there would be enough for it alone."""
    name = wanted.spec.device_class_name
    device_class = cluster.get(mp.DeviceClass, name)
    of_class = () if device_class is None else device_class.spec.selectors
    expressions = [selector.cel.expression for selector in of_class if selector.cel is not None]
    left = [each for each in seen if not any(_is_false(e, each.model) for e in expressions)]
    if not left:
        return Shortage("there is none")
    before = left
    for selector in wanted.spec.selectors:
        if selector.cel is None:
            continue
        expression = selector.cel.expression
        left = [each for each in before if not _is_false(expression, each.model)]
        if not left:
            values = dict.fromkeys(_values(each.model, expression) for each in before)
            shown = mp.texts.listed([value for value in values if value], MOST_LETTERS)
            return Shortage(f"the selector {expression} is false" + f" for {shown}" * bool(shown))
        before = left
    matching = len(left)
    left = [each for each in left if plan.tolerates(wanted.spec, each.model)]
    if len(left) < max(wanted.needed, 1):
        tainted = matching - len(left)
        if tainted:
            devices = mp.texts.count(matching, "device", "have")
            return Shortage(f"{tainted} of {devices} a taint that is not tolerated")
        return Shortage(f"there {mp.texts.verb(matching, 'are')} only {matching}")
    taken = [each for each in left if each.users and not each.model.is_shared]
    if len(left) - len(taken) < wanted.needed:
        users = tuple(dict.fromkeys(user for each in taken for user in each.users))
        devices = mp.texts.count(len(left), "device", "are")
        return Shortage(f"{len(taken)} of {devices} taken", users)
    return None


def _is_false(expression: str, model: DeviceModel) -> bool:
    """Whether a selector is false for a device; one with an error is not."""
    try:
        return not mp.cel.compile_selector(expression).matches(plan.device_input(model))
    except (mp.cel.CelCompileError, mp.cel.CelRuntimeError):
        return False


def _values(model: DeviceModel, expression: str) -> str:
    """The attributes and capacities of a device that an expression reads: `model a10`."""
    device = model.device
    values = {name: each.value for name, each in device.attributes.items()}
    shown = {name: value[1] for name, value in values.items() if value is not None}
    shown |= {name: str(each.value) for name, each in device.capacity.items()}
    return ", ".join(
        f"{short} {value}"
        for name, value in shown.items()
        if (short := name.rpartition("/")[2]) in expression
    )


def _users(cluster: mp.Cluster) -> dict[DeviceKey, tuple[str, ...]]:
    """The pods that have each allocated device; the claim, if it is reserved for none."""
    found: dict[DeviceKey, tuple[str, ...]] = {}
    for known in cluster.all(mp.ResourceClaim):
        claim = cluster.latest(mp.ResourceClaim, known.key) or known
        if claim.status.allocation is None:
            continue
        pods = tuple(f"{claim.namespace}/{user.name}" for user in claim.status.reserved_for)
        for result in claim.status.allocation.devices.results:
            if not result.admin_access:
                key = ((result.driver, result.pool), result.device)
                found[key] = (*found.get(key, ()), *(pods or (f"claim {claim.key}",)))
    return found


def elsewhere(rejection: mp.Rejection) -> str:
    """Where the devices of allocated claims are, if a node cannot use them."""
    parts = []
    for claim in claims.look_up(rejection.cluster, rejection.pod):
        allocation = claim.status.allocation
        if allocation is None or allocation.node_selector is None:
            continue
        terms = allocation.node_selector.node_selector_terms
        where = " or ".join(
            mp.texts.requirements((*term.match_expressions, *term.match_fields)) for term in terms
        )
        users = [f"{claim.namespace}/{user.name}" for user in claim.status.reserved_for]
        who = f" and is reserved for {mp.texts.listed(users, MOST_LETTERS)}" if users else ""
        parts.append(f"claim {claim.name} has devices where {where}{who}")
    return f"{'; '.join(parts)}." if parts else ""
