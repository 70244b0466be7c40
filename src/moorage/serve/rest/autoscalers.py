"""HorizontalPodAutoscalers of `autoscaling/v1`, which have one metric; they are stored as `v2`."""

from typing import Any

from moorage.controllers.objects import Object

_TARGET, _CURRENT = "targetCPUUtilizationPercentage", "currentCPUUtilizationPercentage"


def to_v2(obj: Object) -> Object:
    """An object of `v1` as it is stored."""
    new = {**obj, "apiVersion": "autoscaling/v2"}
    if isinstance(obj.get("spec"), dict):
        spec = dict(obj["spec"])
        if (percent := spec.pop(_TARGET, None)) is not None:
            target = {"type": "Utilization", "averageUtilization": percent}
            spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
        new["spec"] = spec
    if isinstance(obj.get("status"), dict):
        status = dict(obj["status"])
        if (percent := status.pop(_CURRENT, None)) is not None:
            current = {"averageUtilization": percent}
            resource = {"name": "cpu", "current": current}
            status["currentMetrics"] = [{"type": "Resource", "resource": resource}]
        new["status"] = status
    return new


def to_v1(obj: Object) -> Object:
    """A stored object as `v1` serves it; other metrics than that of the CPU are left out."""
    new = {**obj, "apiVersion": "autoscaling/v1"}
    for part, metrics, field, value in (
        ("spec", "metrics", _TARGET, "target"),
        ("status", "currentMetrics", _CURRENT, "current"),
    ):
        if isinstance(obj.get(part), dict):
            fields = dict(obj[part])
            for metric in fields.pop(metrics, None) or ():
                percent = _cpu_percent(metric, value)
                if percent is not None:
                    fields[field] = percent
            dropped = ("behavior", "conditions")
            new[part] = {key: each for key, each in fields.items() if key not in dropped}
    return new


def _cpu_percent(metric: Any, value: str) -> int | None:
    resource = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    percent: int | None = (resource.get(value) or {}).get("averageUtilization")
    return percent
