"""DeviceIndex: the devices and their usage by row of the node table, kept up to date.

Most pools belong to one node. Nodes whose pools differ in names only have the same *shape*. With
the devices in use this is the node's *state*, a number in an array. A decision evaluates each
distinct state once, whatever the number of nodes. An allocation changes the state of one row.

Pools that several nodes see (*wide* pools) are not part of that number: an allocation from such a
pool would change all rows. Their usage is read when a state is evaluated, and has a version.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp
from moorage.plugins.dynamic_resources import pools, usage
from moorage.plugins.dynamic_resources.inventory import Inventory, NodeShape
from moorage.plugins.dynamic_resources.pools import Models, PoolKey, PoolView
from moorage.plugins.dynamic_resources.usage import UNUSED, Allocated, PoolState, PoolUsage

PARTITIONABLE_DEVICES = mp.feature_gates.PARTITIONABLE_DEVICES
CONSUMABLE_CAPACITY = mp.feature_gates.CONSUMABLE_CAPACITY
MOST_STATES = 1 << 16
NO_STATE = 0


@dataclass(slots=True, eq=False)
class RowDevices:
    """The pools that one node sees, in the order of the search."""

    pools: list[PoolView]
    # The positions of those that other nodes see, too.
    wide: tuple[int, ...]
    shape: NodeShape
    error: str = ""


@dataclass(slots=True, eq=False)
class NodeState:
    """A shape with the usage of the pools that belong to the node."""

    shape: NodeShape
    wide: tuple[int, ...]
    states: tuple[PoolState, ...]
    # What cannot be read, instead of devices.
    error: str = ""


@dataclass(slots=True, eq=False)
class Pool:
    """All slices of a pool, by name, and the node that it belongs to, if it is one."""

    slices: dict[str, mp.ResourceSlice] = field(default_factory=dict)
    node: str | None = None
    # The node under which it is filed.
    filed: str | None = None
    usage: PoolUsage = field(default_factory=PoolUsage)
    # Grows with every change of slices or usage.
    version: int = 0
    views: dict[tuple[object, ...], PoolView | None] = field(default_factory=dict)

    def find_node(self, key: PoolKey, models: Models) -> None:
        """Find out whether the pool belongs to one node.

        A slice with counters counts for every node. Elsewhere it shows no devices, so it matters
        only if something is wrong with the pool.
        """
        slices = list(self.slices.values())
        names = {each.spec.node_name for each in slices}
        self.node = names.pop() if len(names) == 1 else None
        if self.node is not None and any(each.spec.shared_counters for each in slices):
            elsewhere = pools.view(key, slices, mp.Node(), models)
            if elsewhere is not None and elsewhere.problem:
                self.node = None


class DeviceIndex:
    """See the module."""

    def __init__(self, cluster: mp.Cluster) -> None:
        self._cluster = cluster
        self._table = cluster.table
        self._slice_changes = mp.Cursor(cluster.changes_of(mp.ResourceSlice))
        self._claim_changes = mp.Cursor(cluster.changes_of(mp.ResourceClaim))
        self._node_changes = mp.Cursor(cluster.table.node_changes)
        self._start()

    def _start(self) -> None:
        self._models = Models(have_counters=self._cluster.has_feature(PARTITIONABLE_DEVICES))
        self._pools: dict[PoolKey, Pool] = {}
        self._slices: dict[str, PoolKey] = {}
        self._wide: dict[PoolKey, Pool] = {}
        self._local: dict[str, dict[PoolKey, Pool]] = {}
        self._claims: dict[str, tuple[Allocated, ...]] = {}
        self._rows: dict[int, RowDevices] = {}
        self._shapes: dict[tuple[object, ...], NodeShape] = {}
        self._numbers: dict[tuple[object, ...], int] = {}
        self._by_number: list[NodeState] = [NodeState(NodeShape(()), (), ())]
        # The state of every row, and the rows where it changed.
        self.states: NDArray[np.int64] = np.zeros(self._table.capacity, dtype=np.int64)
        self.changes: mp.RowLog = mp.RowLog()
        # Grows when the usage of a wide pool changes.
        self.wide_version = 0

    # Reading

    def refresh(self) -> None:
        """Take in what changed since the last call."""
        cursors = (self._slice_changes, self._claim_changes, self._node_changes)
        if all(cursor.is_current for cursor in cursors):
            return
        slices, claims = self._slice_changes.changed(), self._claim_changes.changed()
        nodes = self._node_changes.changed()
        if slices is None or claims is None or nodes is None or len(self._numbers) > MOST_STATES:
            self._rebuild()
        else:
            self._update(slices, claims, nodes)
        for cursor in cursors:
            cursor.commit()

    def state(self, row: int) -> int:
        """The number of a row's state."""
        return self.states.item(row)

    def node_state(self, number: int) -> NodeState:
        """What a number stands for."""
        return self._by_number[number]

    def pools_of(self, row: int) -> list[PoolView]:
        """The pools that a row sees, with their own names, in the order of the search."""
        found = self._rows.get(row)
        return [] if found is None else found.pools

    def version_of(self, state: NodeState) -> tuple[int, ...]:
        """Changes when wide pools of a state are used differently."""
        return tuple(self._wide_pool(state, position).version for position in state.wide)

    def inventory(self, state: NodeState) -> Inventory:
        """The devices of all rows with that state."""
        states = list(state.states)
        for position in state.wide:
            pool = self._wide_pool(state, position)
            states[position] = pool.usage.state(state.shape.pools[position])
        return Inventory.of(state.shape, states)

    def _wide_pool(self, state: NodeState, position: int) -> Pool:
        return self._pools[state.shape.pools[position].key]

    # Changes

    def _rebuild(self) -> None:
        self._start()
        for published in self._cluster.all(mp.ResourceSlice):
            self._put_slice(published)
        for key, pool in self._pools.items():
            pool.find_node(key, self._models)
        self._file(self._pools)
        known = [claim.key for claim in self._cluster.all(mp.ResourceClaim)]
        assumed = [a.obj.key for a in self._cluster.assumed if isinstance(a.obj, mp.ResourceClaim)]
        for claim in dict.fromkeys((*known, *assumed)):
            self._count(claim)
        for row in np.flatnonzero(self._table.active_rows).tolist():
            self._build_row(row)
        self.changes.forget()

    def _update(self, slices: Sequence[str], claims: Sequence[str], nodes: Sequence[int]) -> None:
        if len(self.states) < self._table.capacity:
            grown = np.zeros(self._table.capacity, dtype=np.int64)
            grown[: len(self.states)] = self.states
            self.states = grown
        changed = dict.fromkeys(nodes)
        if slices and self._update_slices(slices, changed):
            changed.update(dict.fromkeys(np.flatnonzero(self._table.active_rows).tolist()))
        # Usage first: the state of a row that is built again contains it.
        used = [row for key in dict.fromkeys(claims) for row in self._count(key)]
        for row in changed:
            self._build_row(row)
        for row in used:
            if row not in changed:
                self._set_state(row)

    def _update_slices(self, names: Sequence[str], rows: dict[int, None]) -> bool:
        """Take in changed slices; returns whether a wide pool changed."""
        touched: dict[PoolKey, None] = {}
        for name in dict.fromkeys(names):
            if (key := self._slices.pop(name, None)) is not None:
                self._pools[key].slices.pop(name, None)
                touched[key] = None
            published = self._cluster.get(mp.ResourceSlice, name)
            if published is not None:
                touched[self._put_slice(published)] = None
        wide = False
        for key in touched:
            pool = self._pools[key]
            before = pool.node
            pool.find_node(key, self._models)
            for node in (before, pool.node):
                if node is not None and node in self._table.row_of:
                    rows[self._table.row_of[node]] = None
            wide = wide or key in self._wide or pool.node is None
        self._file(touched)
        return wide

    def _put_slice(self, published: mp.ResourceSlice) -> PoolKey:
        key = (published.spec.driver, published.spec.pool.name)
        self._slices[published.name] = key
        self._pools.setdefault(key, Pool()).slices[published.name] = published
        return key

    def _file(self, keys: Iterable[PoolKey]) -> None:
        """File pools as wide, or under their node."""
        for key in keys:
            pool = self._pools[key]
            pool.version += 1
            pool.views.clear()
            self._wide.pop(key, None)
            if pool.filed is not None:
                self._local[pool.filed].pop(key, None)
            pool.filed = pool.node
            if pool.node is not None:
                self._local.setdefault(pool.node, {})[key] = pool
            elif pool.slices:
                self._wide[key] = pool

    def _count(self, key: str) -> list[int]:
        """Count the devices of a claim; returns the rows whose own pools changed."""
        claim = self._cluster.latest(mp.ResourceClaim, key)
        allocated = usage.of_claim(claim, are_shared=self._cluster.has_feature(CONSUMABLE_CAPACITY))
        before = self._claims.get(key, ())
        if allocated == before:
            return []
        rows: dict[int, None] = {}
        for sign, devices in ((-1, before), (1, allocated)):
            for each in devices:
                pool = self._pools.setdefault(each.pool, Pool())
                pool.usage.add(each, sign)
                if pool.node is None:
                    pool.version += 1
                    self.wide_version += 1
                elif pool.node in self._table.row_of:
                    rows[self._table.row_of[pool.node]] = None
        if allocated:
            self._claims[key] = allocated
        else:
            self._claims.pop(key, None)
        return list(rows)

    # Rows

    def _build_row(self, row: int) -> None:
        node = self._table.nodes[row]
        self._rows.pop(row, None)
        if node is not None and (self._wide or self._local.get(node.name)):
            self._rows[row] = self._row_devices(node)
        self._set_state(row)

    def _row_devices(self, node: mp.Node) -> RowDevices:
        found: list[tuple[PoolView, bool]] = []
        try:
            for is_wide, candidates in (
                (False, self._local.get(node.name, {})),
                (True, self._wide),
            ):
                for key, pool in candidates.items():
                    view = self._view(key, pool, node)
                    if view is not None:
                        found.append((view, is_wide))
        except mp.PluginFailure as failure:
            return RowDevices([], (), NodeShape(()), str(failure))
        ordered = pools.in_order(view for view, _ in found)
        names = {view.key for view, is_wide in found if is_wide}
        wide = tuple(i for i, view in enumerate(ordered) if view.key in names)
        return RowDevices(ordered, wide, self._shape(ordered, names))

    def _view(self, key: PoolKey, pool: Pool, node: mp.Node) -> PoolView | None:
        """The pool as the node sees it; one object for all nodes that see the same of it."""
        slices = list(pool.slices.values())
        if pool.node is not None:
            return pools.view(key, slices, node, self._models)
        seen = tuple(pools.seen_by(node, each) for each in slices)
        if seen not in pool.views:
            pool.views[seen] = pools.view(key, slices, node, self._models)
        return pool.views[seen]

    def _shape(self, ordered: list[PoolView], wide: set[PoolKey]) -> NodeShape:
        # A wide pool stands for itself: two of them are never used alike.
        content = tuple(view if view.key in wide else view.signature for view in ordered)
        shape = self._shapes.get(content)
        if shape is None:
            shape = self._shapes[content] = NodeShape(ordered)
        return shape

    def _set_state(self, row: int) -> None:
        devices = self._rows.get(row)
        number = NO_STATE
        if devices is not None:
            wide = devices.wide
            states = tuple(
                UNUSED if i in wide else self._pools[view.key].usage.state(view)
                for i, view in enumerate(devices.pools)
            )
            content = (devices.shape, states, devices.error)
            known = self._numbers.get(content)
            if known is None:
                known = self._numbers[content] = len(self._by_number)
                state = NodeState(devices.shape, wide, states, devices.error)
                self._by_number.append(state)
            number = known
        if self.states.item(row) != number:
            self.states[row] = number
            self.changes.add(row)


def index_of(cluster: mp.Cluster) -> DeviceIndex:
    """The index of a cluster, up to date."""
    index = cluster.derived(DeviceIndex)
    index.refresh()
    return index
