"""ImageLocality: prefer nodes that already hold the pod's images.

An image counts for its size, scaled down by the share of nodes that hold it; otherwise the few
nodes with a rare image would draw all its pods. Sums below 23 MiB score 0, sums above 1000 MiB
per container 100.
"""

from dataclasses import dataclass

import numpy as np

from moorage import plugin as mp

MIB = 1024 * 1024
LEAST = 23 * MIB
MOST_PER_CONTAINER = 1000 * MIB


@dataclass(frozen=True, slots=True)
class PodImages:
    """The images of a pod, each as often as it is used, and the sum of sizes that scores 100."""

    names: tuple[str, ...]
    most: int


SLOT = "ImageLocality.images"


def normalized(image: str) -> str:
    """The name under which nodes list an image: one without a tag means `latest`."""
    # A colon before the last slash belongs to the registry's port.
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def pod_images(pod: mp.Pod) -> PodImages:
    spec = pod.spec
    containers = (*spec.init_containers, *spec.containers)
    names = [container.image for container in containers]
    names += [volume.image.reference for volume in spec.volumes if volume.image is not None]
    return PodImages(tuple(sorted(map(normalized, names))), MOST_PER_CONTAINER * len(containers))


def worth(size: int, holders: int, nodes: int) -> int:
    """What holding an image is worth; truncated per image, as Kubernetes does."""
    return int(size * (holders / nodes))


class ImageLocality:
    name = "ImageLocality"
    depends = mp.Depends.NODES  # How widely an image is spread is a matter of all nodes.
    reads_kinds = ()

    def reads(self, pod: mp.Pod) -> PodImages:
        return pod_images(pod)

    def nodes_key(self, pod: mp.Pod, table: mp.NodeTable) -> tuple[int, ...]:
        """What each image is worth; 0 where no node holds it, whatever the number of nodes."""
        images = [table.images.get(name) for name in pod_images(pod).names]
        return tuple(
            [0 if i is None else worth(i.size, len(i.rows), table.node_count) for i in images]
        )

    def prepare(self, template: mp.PodTemplate) -> PodImages:
        images = template.compiled[SLOT] = pod_images(template.exemplar)
        return images

    def _images(self, state: mp.CycleState) -> PodImages:
        return state.template.compiled.get(SLOT) or self.prepare(state.template)

    def score(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> int:
        images = self._images(state)
        total, nodes = 0, node.table.size
        for name in images.names:
            image = node.image(name)
            if image is not None:
                total += worth(image.size, len(image.rows), nodes)
        if total < LEAST:
            return 0
        return mp.BEST * (min(total, images.most) - LEAST) // (images.most - LEAST)

    def score_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Scores:
        images = self._images(state)
        total = np.zeros(len(table), dtype=np.int64)
        for name in images.names:
            held, size, holders = table.holding(name)
            if holders:
                total += held * np.int64(worth(size, holders, table.size))
        above = np.minimum(total, images.most) - LEAST
        return np.where(total < LEAST, 0, mp.BEST * above // (images.most - LEAST))
