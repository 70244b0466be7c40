"""Devices, slices, classes, claims and pods as plain data, for tests."""

from typing import Any

API = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"

Object = dict[str, Any]


def node(name: str, allocatable: Object | None = None, **labels: str) -> Object:
    """A large node."""
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110", **(allocatable or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"allocatable": amounts},
    }


def attribute(value: Any) -> Object:
    """A typed value; a text that starts with `v` and a digit is a version."""
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int):
        return {"int": value}
    if value[:1] == "v" and value[1:2].isdigit():
        return {"version": value[1:]}
    return {"string": value}


def device(
    name: str, capacity: Object | None = None, attributes: Object | None = None, **fields: Any
) -> Object:
    """A device; a capacity is a quantity, or a whole entry."""
    amounts = {
        key: each if isinstance(each, dict) else {"value": each}
        for key, each in (capacity or {}).items()
    }
    values = {key: attribute(each) for key, each in (attributes or {}).items()}
    return {"name": name, "capacity": amounts, "attributes": values, **fields}


def devices(count: int, **fields: Any) -> list[Object]:
    """So many equal devices."""
    return [device(f"gpu-{i}", **fields) for i in range(count)]


def resource_slice(
    name: str,
    content: list[Object],
    *,
    driver: str = DRIVER,
    pool: str = "",
    generation: int = 1,
    count: int = 1,
    **where: Any,
) -> Object:
    """A slice; without another place it belongs to the node that the pool is named after."""
    pool = pool or name
    where = where or {"nodeName": pool}
    return {
        "apiVersion": API,
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": driver,
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
            "devices": content,
            **where,
        },
    }


def device_class(name: str = "gpu", *expressions: str, **spec: Any) -> Object:
    """A class whose devices all expressions select."""
    selectors = [{"cel": {"expression": each}} for each in expressions]
    return {
        "apiVersion": API,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": selectors, **spec},
    }


def request(name: str = "r", *expressions: str, device_class: str = "gpu", **fields: Any) -> Object:
    """A request for devices of a class."""
    selectors = [{"cel": {"expression": each}} for each in expressions]
    exactly = {"deviceClassName": device_class, "selectors": selectors, **fields}
    return {"name": name, "exactly": exactly}


def first_available(name: str, *alternatives: Object) -> Object:
    """A request for the first of several that is available."""
    flat = [{"name": each["name"], **each["exactly"]} for each in alternatives]
    return {"name": name, "firstAvailable": flat}


def claim(name: str, *requests: Object, status: Object | None = None, **devices: Any) -> Object:
    """A claim in the default namespace."""
    return {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"devices": {"requests": list(requests or (request(),)), **devices}},
        "status": status or {},
    }


def allocated(name: str, *results: Object, on: str = "", **status: Any) -> Object:
    """A claim that has devices, on a node or everywhere."""
    allocation: Object = {"devices": {"results": list(results)}}
    if on:
        field = {"key": "metadata.name", "operator": "In", "values": [on]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return claim(name, status={"allocation": allocation, **status})


def result(name: str, pool: str = "n1", *, driver: str = DRIVER, **fields: Any) -> Object:
    """An allocated device."""
    return {"request": "r", "driver": driver, "pool": pool, "device": name, **fields}


def pod(name: str, *claims: str, requests: Object | None = None, **spec: Any) -> Object:
    """A pod that uses claims by name."""
    amounts = {"cpu": "100m", **(requests or {})}
    container = {"name": "c", "image": "x", "resources": {"requests": amounts}}
    uses = [{"name": f"d{i}", "resourceClaimName": each} for i, each in enumerate(claims)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"containers": [container], "resourceClaims": uses, **spec},
    }
