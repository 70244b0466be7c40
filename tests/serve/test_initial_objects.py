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
