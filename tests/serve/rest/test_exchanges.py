"""The server answers recorded requests as kube-apiserver does."""

import json

import pytest

from . import exchanges
from .conftest import Served


@pytest.fixture(scope="module")
def shared():
    """One server for all cases: their objects have different names."""
    server = Served()
    yield server
    server.close()


@pytest.mark.parametrize(
    "steps", [pytest.param(each[2], id=f"{each[0]}: {each[1]}") for each in exchanges.cases()]
)
def test_exchange(shared, steps):
    def send(method, path, body, media, accept):
        answer = shared.request(method, path, body, media=media, Accept=accept)
        return answer.status, json.loads(answer.body) if answer.body else None

    assert exchanges.run(steps, send) == []
