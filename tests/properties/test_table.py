"""The node table after any history equals a recount from scratch.

Few names, so that nodes and pods come back, ghosts form, and rows change hands; a small capacity,
so that the table grows in the middle of it.
"""

import pickle
from random import Random

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from moorage.api import requests
from moorage.api.node import ContainerImage
from moorage.api.selectors import Requirement
from moorage.nodes.changes import Cursor
from moorage.nodes.columns import Column
from moorage.nodes.table import NodeTable
from moorage.nodes.usage import Usage
from moorage.testing import strategies

NAMES = tuple(f"n{i}" for i in range(6))
PODS = tuple(f"p{i}" for i in range(8))
RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods", strategies.GPU, "example.com/none")
PORTS = [
    (ip or "0.0.0.0", protocol or "TCP", port)
    for ip in strategies.IPS
    for protocol in strategies.PROTOCOLS
    for port in strategies.HOST_PORTS
]


def read_length(node):
    return len(node.labels)


LENGTH = Column("length", np.int64, read_length, default=-1)


class Histories(RuleBasedStateMachine):
    """What may happen to a table, and what it must look like afterwards."""

    @initialize(capacity=st.integers(1, 4))
    def begin(self, capacity):
        self.table = NodeTable(capacity)
        self.nodes = {}
        self.pods = {}  # name -> (pod, usage), wherever it is
        self.ports = {}  # node -> ports, as a set: who leaves takes them along
        self.sizes = {}  # image -> the first reporter's word

    # Nodes

    @rule(name=st.sampled_from(NAMES), seed=st.integers(0, 50))
    def set_node(self, name, seed):
        self._set(strategies.random_node(Random(seed), name))

    @rule(name=st.sampled_from(NAMES), size=st.integers(1, 9))
    def report_an_image(self, name, size):
        node = self.nodes.get(name) or strategies.random_node(Random(size), name)
        image = ContainerImage(names=("odd:1",), size_bytes=size)
        self._set(replace(node, status=replace(node.status, images=(image,))))

    def _set(self, node):
        old = self.nodes.get(node.name)
        if old is None or old.status.images != node.status.images:
            self._unreport(node.name)
        self.nodes[node.name] = node
        for image in node.status.images:
            for name in image.names:
                self.sizes.setdefault(name, image.size_bytes)
        self.table.set_node(node)

    @precondition(lambda self: self.nodes)
    @rule(data=st.data())
    def remove_node(self, data):
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        self._unreport(name)
        self.table.remove_node(name)

    def _unreport(self, name):
        self.nodes.pop(name, None)
        held = {n for node in self.nodes.values() for i in node.status.images for n in i.names}
        self.sizes = {name: size for name, size in self.sizes.items() if name in held}

    # Pods

    @rule(name=st.sampled_from(PODS), node=st.sampled_from(NAMES), seed=st.integers(0, 200))
    def add_pod(self, name, node, seed):
        if name in self.pods:
            return
        pod = strategies.random_pod(Random(seed), name, node=node)
        usage = Usage.of(pod)
        self.pods[name] = (pod, usage)
        self.ports.setdefault(node, set()).update(usage.ports)
        self.table.add_pod(node, pod, usage)

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def remove_pod(self, data):
        pod, usage = self.pods.pop(data.draw(st.sampled_from(sorted(self.pods))))
        self.ports[pod.node_name].difference_update(usage.ports)
        self.table.remove_pod(pod.node_name, pod.uid)

    @precondition(lambda self: self.pods)
    @rule(data=st.data(), seed=st.integers(0, 200))
    def replace_pod(self, data, seed):
        name = data.draw(st.sampled_from(sorted(self.pods)))
        old, before = self.pods[name]
        drawn = strategies.random_pod(Random(seed), name, node=old.node_name)
        new = replace(drawn, metadata=replace(drawn.metadata, uid=old.uid))
        usage = Usage.of(new)
        self.pods[name] = (new, usage)
        self.ports[new.node_name].difference_update(before.ports)
        self.ports[new.node_name].update(usage.ports)
        self.table.replace_pod(new.node_name, new, usage)

    @rule()
    def fork(self):
        self.table = pickle.loads(pickle.dumps(self.table))

    # What must hold

    def rows(self):
        return self.table.row_of

    def on(self, name):
        return [(pod, usage) for pod, usage in self.pods.values() if pod.node_name == name]

    @invariant()
    def rows_belong_to_nodes_and_to_pods(self):
        wanted = set(self.nodes) | {pod.node_name for pod, _ in self.pods.values()}
        assert set(self.rows()) == wanted
        assert len(set(self.rows().values())) == len(wanted)
        assert all(self.table.name(row) == name for name, row in self.rows().items())
        assert self.table.node_count == len(self.nodes)
        active = {self.table.name(row) for row in np.flatnonzero(self.table.active)}
        assert active == set(self.nodes)
        assert {self.table.name(row) for row in self.table.zone_order.rows()} == set(self.nodes)

    @invariant()
    def amounts_are_sums(self):
        for name, row in self.rows().items():
            node = self.nodes.get(name)
            offered = {} if node is None else requests.allocatable(node)
            taken = [usage for _, usage in self.on(name)]
            info = self.table.info(row)
            for resource in RESOURCES:
                total = sum(dict(usage.requested).get(resource, 0) for usage in taken)
                assert info.requested(resource) == self.table.requested(resource)[row] == total
                assert self.table.allocatable(resource)[row] == offered.get(resource, 0)
            for resource in ("cpu", "memory"):
                amounts = [dict(usage.nonzero)[resource] for usage in taken]
                assert info.nonzero_requested(resource) == sum(amounts)
            assert info.pod_count == self.table.pod_count[row] == len(taken)
            assert {p.uid: p for p in info.pods} == {p.uid: p for p, _ in self.on(name)}

    @invariant()
    def free_rows_are_empty(self):
        free = np.ones(self.table.capacity, dtype=np.bool_)
        free[list(self.rows().values())] = False
        columns = [self.table.requested(r) for r in RESOURCES]
        columns += [self.table.allocatable(r) for r in RESOURCES]
        columns += [self.table.nonzero_requested("cpu"), self.table.pod_count, self.table.active]
        assert not any(column[free].any() for column in columns)
        assert (self.table[LENGTH][free] == -1).all()
        assert all(self.table.nodes[row] is None for row in np.flatnonzero(free))

    @invariant()
    def what_is_read_off_nodes(self):
        sets = self.table.taint_sets
        gathered = self.table.per_taint_set(np.arange(len(sets)))
        for name, row in self.rows().items():
            node = self.nodes.get(name)
            taints = () if node is None else node.spec.taints
            labels = {} if node is None else node.labels
            assert sets[gathered[row]] == taints
            assert self.table[LENGTH][row] == (-1 if node is None else len(labels))
            for key in strategies.LABEL_KEYS:
                for operator, values in (("In", ("a", "5")), ("NotIn", ("b",)), ("Gt", ("4",))):
                    requirement = Requirement(key, operator, values)
                    assert self.table.meets(requirement)[row] == requirement.matches(labels)

    @invariant()
    def images_and_ports(self):
        for image in (*strategies.IMAGES, "odd:1"):
            held, size, count = self.table.holding(image)
            holders = {
                name
                for name, node in self.nodes.items()
                if any(image in reported.names for reported in node.status.images)
            }
            assert {self.table.name(row) for row in np.flatnonzero(held)} == holders
            assert (size, count) == (self.sizes.get(image, 0), len(holders))
        for name, row in self.rows().items():
            assert set(self.table.info(row).used_ports) == self.ports.get(name, set())
        for port in PORTS:
            found = {self.table.name(row) for row in np.flatnonzero(self.table.conflicting([port]))}
            assert found == {name for name in self.rows() if self.conflicts(name, port)}

    def conflicts(self, name, wanted):
        return any(
            ((protocol, port) == wanted[1:] and "0.0.0.0" in (ip, wanted[0]))
            or (ip, protocol, port) == wanted
            for ip, protocol, port in self.ports.get(name, ())
        )

    @invariant()
    def a_slice_is_a_part_of_the_whole(self):
        index = np.array(sorted(self.rows().values())[::-1], dtype=np.intp)
        part = self.table.slice(index)
        assert part.requested("cpu").tolist() == self.table.requested("cpu")[index].tolist()
        assert part.active.tolist() == self.table.active[index].tolist()
        assert part[LENGTH].tolist() == self.table[LENGTH][index].tolist()


class Logs(RuleBasedStateMachine):
    """A copy that is refreshed from the log alone never falls behind."""

    @initialize()
    def begin(self):
        self.table = NodeTable(2)
        self.seen = [0, 0]
        self.capacity = self.table.capacity
        self.kept = {}

    @rule(name=st.sampled_from(NAMES), seed=st.integers(0, 5))
    def set_node(self, name, seed):
        self.table.set_node(strategies.random_node(Random(seed), name))

    @rule(name=st.sampled_from(NAMES))
    def remove_node(self, name):
        if self.table.node(name) is not None:
            self.table.remove_node(name)

    @rule(name=st.sampled_from(PODS), node=st.sampled_from(NAMES), seed=st.integers(0, 5))
    def put_pod(self, name, node, seed):
        pod = strategies.random_pod(Random(seed), name, node=node)
        row = self.table.row_of.get(node)
        if row is not None and pod.uid in self.table.placed[row]:
            self.table.replace_pod(node, pod, Usage.of(pod))
        else:
            self.table.add_pod(node, pod, Usage.of(pod))

    @rule(data=st.data())
    def remove_pod(self, data):
        placed = sorted(
            (n, uid) for n, r in self.table.row_of.items() for uid in self.table.placed[r]
        )
        if placed:
            self.table.remove_pod(*data.draw(st.sampled_from(placed)))

    @invariant()
    def refresh(self):
        rows = Cursor(self.table.changes, self.seen[0]).changed()
        of_nodes = Cursor(self.table.node_changes, self.seen[1]).changed()
        assert (rows is None) == (of_nodes is None) == (self.table.capacity != self.capacity)
        if rows is None:  # The table has grown.
            rows, of_nodes = range(self.table.capacity), ()
        assert set(of_nodes) <= set(rows)
        self.capacity = self.table.capacity
        self.seen = [self.table.changes.position, self.table.node_changes.position]
        for row in rows:
            self.kept[row] = self.look(row)
        for row in range(self.table.capacity):
            assert self.kept.get(row, (None, {})) == self.look(row)

    def look(self, row):
        return self.table.nodes[row], {uid: p.usage for uid, p in self.table.placed[row].items()}


TestHistories = Histories.TestCase
TestHistories.settings = settings(stateful_step_count=40)
TestLogs = Logs.TestCase
TestLogs.settings = settings(stateful_step_count=40)
