"""SchedulingGates: a pod stays out of the queue until all its scheduling gates are removed."""

from moorage import plugin as mp


class SchedulingGates:
    name = "SchedulingGates"
    reads_kinds = ()

    def pre_enqueue(self, pod: mp.Pod) -> mp.Status:
        gates = pod.spec.scheduling_gates
        if not gates:
            return mp.SUCCESS
        # A reason with names: it is not counted across nodes.
        names = " ".join(gate.name for gate in gates)
        return mp.unresolvable(f"waiting for scheduling gates: [{names}]")

    def explain_rejection(self, rejection: mp.Rejection) -> str:
        gates = [gate.name for gate in rejection.pod.spec.scheduling_gates]
        which = "gate is" if len(gates) == 1 else "gates are"
        return f"The pod is not scheduled until its scheduling {which} removed: {', '.join(gates)}."

    def events_to_register(self) -> mp.Events:
        return {mp.ClusterEvent.POD_GATES_ELIMINATED: own_gates_gone}


def own_gates_gone(pod: mp.Pod, old: mp.Pod, new: mp.Pod) -> mp.Hint:
    return mp.Hint.QUEUE if new.uid == pod.uid else mp.Hint.QUEUE_SKIP
