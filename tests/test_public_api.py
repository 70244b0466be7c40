"""`import moorage`: what it offers, and how its results look in a notebook."""

import subprocess
import sys

import pytest

import moorage
from moorage.testing import make_node, make_pod


def test_dir_lists_the_public_api():
    assert dir(moorage) == sorted(moorage.__all__)
    assert {"Simulation", "explain", "capacity", "drain", "add_nodes", "run_sweep"} <= {
        *dir(moorage)
    }


@pytest.mark.parametrize("name", moorage.__all__)
def test_every_name_is_importable(name):
    assert getattr(moorage, name) is not None


def test_nothing_is_loaded_before_it_is_used():
    code = "import moorage, sys; print('numpy' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


def test_planning_from_the_package():
    found = moorage.capacity([make_node("n")], make_pod("p", requests={"cpu": "1"}))
    assert found.fits == 4


def test_a_sweep_from_the_package():
    objects = [make_node("n"), make_pod("p", requests={"cpu": "1"})]
    found = moorage.run_sweep(objects, "seed=0..2", workers=1)
    assert [run.parameters for run in found.runs] == [{"seed": 0}, {"seed": 1}, {"seed": 2}]


def test_an_explanation_is_short():
    pending = make_pod("p", requests={"cpu": "99"})
    found = moorage.explain([make_node("n"), pending], "p")
    assert repr(found) == (
        "<Explanation of default/p: 0/1 nodes are available: 1 Insufficient cpu.>"
    )
    found = moorage.explain([make_node("n"), make_pod("p")], "p")
    assert repr(found) == "<Explanation of default/p: picked n>"


def test_builders_take_annotations():
    assert make_pod(annotations={"a": "b"}).metadata.annotations == {"a": "b"}
    assert make_node(annotations={"a": "b"}).metadata.annotations == {"a": "b"}
