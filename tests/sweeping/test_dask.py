"""The same sweep on a Dask cluster of two workers, which live in this process."""

import warnings

import pytest
from tests.sweeping.test_sweep import POOL, WEB, make_run

from moorage.errors import InputError
from moorage.sweeping import dask
from moorage.sweeping.parameters import grid, parse
from moorage.sweeping.sweep import sweep

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Whatever Dask's own parts complain about.
        with distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster:
            yield cluster


@pytest.mark.filterwarnings("ignore")
def test_dask_gives_what_one_process_gives(cluster):
    def on_dask(function, items):
        return dask.as_completed(function, items, cluster.scheduler_address)

    run = make_run(POOL, WEB)
    runs = grid([parse("seed=0..3"), parse("nodes.general=1,3")])
    said = []
    got = sweep(run, runs, as_completed=on_dask, on_progress=lambda *at: said.append(at))
    assert got == sweep(run, runs, workers=1)
    assert said[-1] == (8, 8)


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_is_not_there(monkeypatch):
    monkeypatch.setattr(dask, "CONNECT_SECONDS", 0.2)
    with pytest.raises(InputError, match=r"Dask scheduler tcp://127.0.0.1:9: "):
        list(dask.as_completed(abs, [1], "tcp://127.0.0.1:9"))


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_without_workers(monkeypatch):
    monkeypatch.setattr(dask, "CONNECT_SECONDS", 0.5)
    with (
        distributed.LocalCluster(
            n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        pytest.raises(InputError, match=r"no worker within 0\.5 s"),
    ):
        list(dask.as_completed(abs, [1], cluster.scheduler_address))


def test_without_dask(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(InputError, match="pip install distributed"):
        list(dask.as_completed(abs, [1], "tcp://127.0.0.1:9"))
