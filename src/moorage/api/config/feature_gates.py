"""Feature gates: parts of the scheduler that can be turned off, as in kube-scheduler 1.36.

`moorage run --feature-gates NAME=false`, or `featureGates` in the configuration. Only gates of what
the scheduler does are known. Of the gates that are off by default, those in ALPHA can be turned on;
of the others Moorage does not have what is behind them.
"""

from collections.abc import Iterator, Mapping

from moorage.api.config import errors

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
LOCKED = (
    "DRAAdminAccess",
    "DynamicResourceAllocation",
    "SchedulerQueueingHints",
    "VolumeAttributesClass",
)
# Off by default, with the gate that each needs.
ALPHA = {
    GENERIC_WORKLOAD: "",
    GANG_SCHEDULING: GENERIC_WORKLOAD,
    TOPOLOGY_AWARE: GENERIC_WORKLOAD,
    WORKLOAD_AWARE_PREEMPTION: GANG_SCHEDULING,
}
OFF = (
    "DRADeviceTaintRules",
    "DRAListTypeAttributes",
    "DRANodeAllocatableResources",
    "DRAResourcePoolStatus",
    "DRAWorkloadResourceClaims",
    "StorageCapacityScoring",
    "VolumeLimitScaling",
)


def is_on(gates: Mapping[str, bool], gate: str) -> bool:
    """Whether a gate is on, given those that the configuration sets."""
    return gates.get(gate, gate in (*ON, *LOCKED))


def problems(gates: Mapping[str, bool]) -> Iterator[str]:
    """What is wrong with the values of gates."""
    for name, value in gates.items():
        path = f"featureGates[{name}]"
        if name in LOCKED and not value:
            yield errors.invalid(path, value, "the feature is locked to true")
        elif name in OFF and value:
            yield errors.invalid(path, value, "off by default in 1.36, and not implemented here")
        elif name not in (*ON, *LOCKED, *OFF, *ALPHA):
            yield f"{path}: unrecognized feature gate"
        elif value and (needed := ALPHA.get(name)) and not is_on(gates, needed):
            rule = f"{name} is enabled, but depends on features that are disabled: [{needed}]"
            yield errors.invalid(path, value, rule)


def parse(text: str) -> dict[str, bool]:
    """Gates as on a command line: `DRADeviceTaints=false,DRAExtendedResource=true`."""
    found: dict[str, bool] = {}
    for pair in filter(None, text.split(",")):
        name, _, value = (part.strip() for part in pair.partition("="))
        if value.lower() not in ("true", "false"):
            raise ValueError(f'"{pair}" must be NAME=true or NAME=false')
        found[name] = value.lower() == "true"
    return found
