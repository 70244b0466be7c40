"""Results as data frames, and as notebooks show them."""

import sys

import pandas
import polars
import pytest

from moorage import Simulation, explain
from moorage.errors import InputError
from moorage.testing import make_node, make_pod


@pytest.fixture
def simulation():
    found = Simulation(
        [
            make_node("a"),
            make_pod("fits", requests={"cpu": "1"}),
            make_pod("<huge>", requests={"cpu": "64"}),
        ]
    )
    found.run()
    return found


@pytest.mark.parametrize(
    ("library", "kind"), [("pandas", pandas.DataFrame), ("polars", polars.DataFrame)]
)
def test_pods(simulation, library, kind):
    frame = simulation.frame("pods", library=library)
    assert isinstance(frame, kind)
    assert list(frame["pod"]) == ["default/fits", "default/<huge>"]
    first, second = frame["node"]
    assert first == "a"
    assert pandas.isna(second)
    assert list(frame["cpu requested"]) == [1000, 64000]
    assert "Insufficient cpu" in list(frame["pending"])[1]


@pytest.mark.parametrize(
    "table", ["nodes", "samples", "placements", "pending", "disruptions", "spread"]
)
def test_the_other_tables(simulation, table):
    frame = simulation.frame(table)
    assert isinstance(frame, pandas.DataFrame)
    rows = {"nodes": 1, "placements": 2, "pending": 1, "disruptions": 0, "spread": 0}
    assert len(frame) == rows.get(table, len(simulation.result.samples))
    assert simulation.frame(table, library="polars").columns == list(frame.columns)


def test_times_of_pods():
    sim = Simulation([make_node("a", allocatable={"cpu": "1", "pods": "9"})])
    short = make_pod("short", requests={"cpu": "1"})
    sim.create([short])
    sim.at(5, lambda: sim.create([make_pod("next", requests={"cpu": "1"})]))
    sim.at(20, lambda: sim.delete("Pod", "default", "short"))
    sim.run(until=60)
    found = sim.frame("placements")
    assert list(found["pod"]) == ["default/short", "default/next"]
    assert list(found["created"]) == [0, 5]
    assert found["ended"][0] >= 20
    assert found["bound"][1] >= found["ended"][0]
    assert found["scheduled"][1] == found["bound"][1]
    pods = sim.frame("pods")
    assert (pods["created"][0], pods["bound"][0]) == (5, found["bound"][1])


def test_times_are_numbers(simulation):
    assert simulation.frame("samples")["seconds"].dtype == "float64"


def test_polars_where_there_is_no_pandas(simulation, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(simulation.frame(), polars.DataFrame)


@pytest.mark.parametrize(
    ("table", "library", "missing", "message"),
    [
        pytest.param("cats", None, (), 'table "cats" is not known', id="unknown table"),
        pytest.param("pods", "R", (), 'library "R" is not known', id="unknown library"),
        pytest.param("pods", None, ("pandas", "polars"), "pip install pandas", id="neither"),
        pytest.param("pods", "polars", ("polars",), "pip install polars", id="not the one wanted"),
    ],
)
def test_bad_input_is_one_line(simulation, monkeypatch, table, library, missing, message):
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=message):
        simulation.frame(table, library=library)


def test_a_simulation_in_a_notebook(simulation):
    html = simulation._repr_html_()
    assert "1 pod on 1 node after" in html
    assert "<td" in html
    assert "25%" in html
    assert "default/&lt;huge&gt;" in html
    assert "<huge>" not in html


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        pytest.param("fits", "would run on", id="fits"),
        pytest.param("huge", "nodes refused", id="fits nowhere"),
    ],
)
def test_an_explanation_in_a_notebook(pod, said):
    objects = [
        make_node("a"),
        make_node("b", labels={"x": "<y>"}),
        make_pod("fits", requests={"cpu": "1"}),
        make_pod("huge", requests={"cpu": "64"}),
    ]
    html = explain(objects, pod)._repr_html_()
    assert said in html
    assert html.count("<table>") == html.count("</table>") == 1
