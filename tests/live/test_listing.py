"""Lists: pages become one list, whose pods share equal parts."""

import asyncio
import json

from moorage.api.kinds import KINDS
from moorage.live import listing, logs


class Pages:
    """A client whose responses are given, one page each."""

    def __init__(self, *pages):
        self.pages = [
            json.dumps({"metadata": {"resourceVersion": "7", "continue": token}, "items": items})
            for items, token in pages
        ]

    async def get(self, path, *, seconds):
        return self.pages.pop(0).encode()


def pod(name):
    spec = {"nodeName": f"node-{name}", "containers": [{"name": "c", "image": "a"}]}
    return {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec}


def test_pods_of_all_pages_share_equal_parts():
    client = Pages(([pod("a")], "more"), ([pod("b")], ""))
    listed = listing.list_all(client, KINDS["Pod"], logs.named("test"))
    (one, two), version = asyncio.run(listed)
    assert version == "7"
    assert [one.name, two.name] == ["a", "b"]
    assert [one.node_name, two.node_name] == ["node-a", "node-b"]
    assert one.spec.containers is two.spec.containers
    assert one.labels is two.labels
