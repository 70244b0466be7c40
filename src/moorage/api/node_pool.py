"""NodePool, Moorage's own kind: many nodes of one sort, written short.

apiVersion: moorage.dev/v1
kind: NodePool
metadata: {name: general}
spec:
  count: 200
  zones: [eu-1a, eu-1b, eu-1c]
  template:
    metadata: {labels: {disk: ssd}}
    status: {allocatable: {cpu: "8", memory: 32Gi}}
"""

from typing import Annotated

from msgspec import Meta

from moorage.api.meta import Data, KubeObject, ObjectMeta
from moorage.api.node import NodeSpec, NodeStatus

MOST_NODES = 1_000_000


class NodeTemplate(Data):
    """What the nodes of a pool are like: a node without a name."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class NodePoolSpec(Data, kw_only=True, forbid_unknown_fields=True):
    """How many nodes, of what sort, and the zones that they are dealt out to in turn."""

    count: Annotated[int, Meta(ge=0, le=MOST_NODES)]
    template: NodeTemplate
    zones: tuple[str, ...] = ()


class NodePool(KubeObject, kw_only=True):
    """A pool of nodes."""

    spec: NodePoolSpec
