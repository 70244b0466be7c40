"""Plugins that raise, print, or return fractions."""

import json

import pytest

PLUGINS = """
import numpy as np

class Raises:
    name = "Raises"
    def filter(self, state, pod, node):
        return compute(node)

def compute(node):
    return node.missing

class Prints:
    name = "Prints"
    def score(self, state, pod, node):
        print("scoring", node.name)
        return 50

class Fractions:
    name = "Fractions"
    def score(self, state, pod, node):
        return 0.5

class FractionsAll(Fractions):
    name = "FractionsAll"
    def score_all(self, state, pod, table):
        return np.full(len(table), 0.5)
"""


@pytest.fixture
def outcome(run, write, configure, make_node, make_pod):
    """Runs a command with a plugin on two nodes, which fit both pods."""

    def run_with(plugin, *command):
        write("mine.py", PLUGINS)
        pods = make_pod("fits"), make_pod("too")
        cluster = write("cluster.yaml", make_node("small"), make_node("large"), *pods)
        return run(*command, "-f", cluster, "--config", configure(f"mine:{plugin}"))

    return run_with


@pytest.mark.parametrize("command", [("simulate",), ("explain", "fits"), ("explain",)])
def test_a_traceback_is_shown_once(outcome, command):
    got = outcome("Raises", *command)
    assert got.stderr.count("Traceback (most recent call last):") == 1
    assert got.stderr.startswith("moorage: plugin Raises raised an exception:\n")
    assert "return node.missing" in got.stderr
    assert "(mine.py:10)" in " ".join(got.stdout.split())


@pytest.mark.parametrize("command", [("simulate",), ("explain", "fits"), ("explain",)])
def test_what_a_plugin_prints_is_not_part_of_the_document(outcome, command):
    got = outcome("Prints", *command, "-o", "json")
    assert json.loads(got.stdout)
    assert "scoring large" in got.stderr


@pytest.mark.parametrize("plugin", ["Fractions", "FractionsAll"])
def test_fractions_are_warned_about_once(outcome, plugin):
    got = outcome(plugin, "explain", "fits")
    assert got.stderr == (
        f"moorage: warning: plugin {plugin}: scores below 1 count as 0, because scores are whole "
        "numbers; use 0 to 100\n"
    )
