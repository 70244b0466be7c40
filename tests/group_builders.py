"""Manifests of nodes, gangs and their pods, for simulations."""

from moorage.api import config

GATES = {"GenericWorkload": True, "GangScheduling": True}


def settings(**gates):
    """A configuration with the gates of gangs and these."""
    header = {"apiVersion": config.API_VERSION, "kind": config.KIND}
    return {**header, "featureGates": {**GATES, **gates}}


def node(name, cpu=4, **labels):
    amounts = {"cpu": str(cpu), "memory": "32Gi", "pods": "110"}
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta,
        "status": {"allocatable": amounts},
    }


def pod(name, group="", cpu="1", **spec):
    container = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def group(name, min_count=None, **spec):
    """A gang, or without a count a basic group."""
    policy = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": policy, **spec},
    }


def pods(name, count, **spec):
    """The pods of a gang, `name-0` and so on."""
    return [pod(f"{name}-{i}", name, **spec) for i in range(count)]


def gang(name, count, min_count=None, **spec):
    """A gang with its pods."""
    return [group(name, min_count or count), *pods(name, count, **spec)]
