"""Objects that the server itself writes at its start."""

from moorage.cluster.resources import COMPONENT_STATUSES
from moorage.serve import initial_objects
from moorage.serve.server import open_api


def test_statuses_of_components_follow_what_this_process_runs():
    api = open_api(None)
    for is_running in (True, False):  # The second is a start on the same data.
        initial_objects.add_component_statuses(api, {"scheduler": is_running})
        (status,) = api.store.each(COMPONENT_STATUSES)
        (condition,) = status["conditions"]
        assert (condition["status"], "error" in condition) == (
            ("True", False) if is_running else ("Unknown", True)
        )


def test_what_a_quota_refuses_is_reported_and_left_out():
    api = open_api(None)
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
    quota["spec"] = {"hard": {"configmaps": "1"}}
    maps = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **more}}
        for name, more in (("a", {}), ("b", {}), ("c", {"uid": "1"}), ("d", {"uid": "2"}))
    ]
    warnings = []
    found = [(f"file, document {i}", obj) for i, obj in enumerate([*maps, quota], 1)]
    assert initial_objects.add_objects(api, found, warnings.append) == 3
    # Objects of a dump exist already; they count.
    assert [text.partition(", requested")[0] for text in warnings] == [
        f'file, document {i}: configmaps "{name}" is forbidden: exceeded quota: q'
        for i, name in ((1, "a"), (2, "b"))
    ]
