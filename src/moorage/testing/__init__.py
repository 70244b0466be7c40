"""For tests, ours and those of plugin authors: builders, random clusters, conformance checks.

    from moorage.testing import check_plugin, make_node, make_pod, run_plugin

`moorage.testing.strategies` has random pods, nodes and tables for property tests.
"""

from moorage.testing.builders import (
    make_cluster,
    make_node,
    make_pod,
    make_port,
    make_state,
    make_table,
)
from moorage.testing.checks import Ran, check_plugin, check_twins, run_plugin

__all__ = [
    "Ran",
    "check_plugin",
    "check_twins",
    "make_cluster",
    "make_node",
    "make_pod",
    "make_port",
    "make_state",
    "make_table",
    "run_plugin",
]
