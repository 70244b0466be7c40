"""Feature gates: parts of the scheduler that can be turned off, as in kube-scheduler 1.36.

`moorage run --feature-gates NAME=false`, or `featureGates` in the configuration. Every gate may
have its default. Those in ON can be turned off, those in ALPHA can be turned on; of the others
Moorage does not have the other behaviour, and says so.
"""

from collections.abc import Iterator, Mapping

from moorage.api.config import errors, known_gates

PRIORITIZED_LIST = "DRAPrioritizedList"
PARTITIONABLE_DEVICES = "DRAPartitionableDevices"
DEVICE_TAINTS = "DRADeviceTaints"
CONSUMABLE_CAPACITY = "DRAConsumableCapacity"
EXTENDED_RESOURCE = "DRAExtendedResource"
BINDING_CONDITIONS = "DRADeviceBindingConditions"
DEVICE_STATUS = "DRAResourceClaimDeviceStatus"
FILTER_TIMEOUT = "DRASchedulerFilterTimeout"

GENERIC_WORKLOAD = "GenericWorkload"
GANG_SCHEDULING = "GangScheduling"
TOPOLOGY_AWARE = "TopologyAwareWorkloadScheduling"
WORKLOAD_AWARE_PREEMPTION = "WorkloadAwarePreemption"

ON = (
    *(PRIORITIZED_LIST, PARTITIONABLE_DEVICES, DEVICE_TAINTS, CONSUMABLE_CAPACITY),
    *(EXTENDED_RESOURCE, BINDING_CONDITIONS, DEVICE_STATUS, FILTER_TIMEOUT),
)
# Off by default, with the gate that each needs.
ALPHA = {
    GENERIC_WORKLOAD: "",
    GANG_SCHEDULING: GENERIC_WORKLOAD,
    TOPOLOGY_AWARE: GENERIC_WORKLOAD,
    WORKLOAD_AWARE_PREEMPTION: GANG_SCHEDULING,
}
# Moorage does what it does with either value: it never batches pods, which decides the same.
EITHER = ("OpportunisticBatching",)


def is_on(gates: Mapping[str, bool], gate: str) -> bool:
    """Whether a gate is on, given those that the configuration sets."""
    return gates.get(gate, gate not in known_gates.OFF)


def problems(gates: Mapping[str, bool]) -> Iterator[str]:
    """What is wrong with the values of gates."""
    for name, value in gates.items():
        path = f"featureGates[{name}]"
        if name not in known_gates.LOCKED | known_gates.ON | known_gates.OFF:
            yield f"{path}: unrecognized feature gate"
        elif rule := _refusal(name, value, gates):
            yield errors.invalid(path, value, rule)


def _refusal(name: str, value: bool, gates: Mapping[str, bool]) -> str:  # noqa: FBT001 - a gate's
    if value == (name not in known_gates.OFF) or name in (*ON, *EITHER):
        return ""
    if name in known_gates.LOCKED:
        return "the feature is locked to true"
    if name in ALPHA:
        needed = ALPHA[name]
        if not needed or is_on(gates, needed):
            return ""
        return f"{name} is enabled, but depends on features that are disabled: [{needed}]"
    if name not in known_gates.READ:
        return "kube-scheduler knows the gate, but does not read it; leave it out"
    if value:
        return "off by default in 1.36, and not implemented here"
    return "on by default in 1.36, and cannot be turned off here"


def parse(text: str) -> dict[str, bool]:
    """Gates as on a command line: `DRADeviceTaints=false,DRAExtendedResource=true`."""
    found: dict[str, bool] = {}
    for pair in filter(None, text.split(",")):
        name, _, value = (part.strip() for part in pair.partition("="))
        if value.lower() not in ("true", "false"):
            raise ValueError(f'"{pair}" must be NAME=true or NAME=false')
        found[name] = value.lower() == "true"
    return found
