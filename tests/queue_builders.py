"""Manifests of queues and their pods, and a configuration with FairShare, for simulations."""

from moorage.api import config

PLUGINS = {
    "multiPoint": {
        "enabled": [{"name": "FairShare"}],
        "disabled": [{"name": "PrioritySort"}, {"name": "DefaultPreemption"}],
    }
}


def settings(**gates):
    """A configuration with FairShare and these feature gates."""
    header = {"apiVersion": config.API_VERSION, "kind": config.KIND}
    return {**header, "profiles": [{"plugins": PLUGINS}], "featureGates": gates}


def queue(name, parent="", guaranteed=None, max=None, weight=1, **spec):
    amounts = {"guaranteed": guaranteed or {}, "max": max or {}}
    return {
        "apiVersion": "scheduling.moorage.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"parent": parent, "weight": weight, **amounts, **spec},
    }


def node(name, cpu=4, **more):
    amounts = {"cpu": str(cpu), "memory": "32Gi", "pods": "110", **more}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": amounts},
    }


def pod(name, queue="", cpu="1", priority=0, label="moorage.dev/queue", lasts=None, **requests):
    amounts = {"cpu": str(cpu), **requests}
    spec = {
        "containers": [{"name": "c", "resources": {"requests": amounts}}],
        "terminationGracePeriodSeconds": 0,
        "priority": priority,
    }
    meta = {"name": name, "labels": {label: queue} if queue else {}}
    if lasts is not None:
        meta["annotations"] = {"moorage.dev/run-seconds": str(lasts)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def pods(queue, count, first=0, **options):
    """Pods of a queue, `queue-0` and so on."""
    return [pod(f"{queue}-{i}", queue, **options) for i in range(first, first + count)]
