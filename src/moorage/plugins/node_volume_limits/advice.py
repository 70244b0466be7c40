"""The CSI drivers of the pod's volumes, and how many volumes these attach to the nodes."""

from collections import Counter

from moorage import plugin as mp
from moorage.plugins import claim_advice
from moorage.plugins.node_volume_limits import attachable

DRIVERS = mp.csi_migration.DRIVERS


def explain(rejection: mp.Rejection) -> str:
    """The pod's volumes and the limits of their drivers."""
    drivers, parts = set(), []
    for used in claim_advice.used(rejection):
        driver = _driver(rejection.cluster, used)
        if driver:
            drivers.add(driver)
            which = "a volume to be made" if used.volume is None else used.volume.name
            parts.append(f"claim {used.name} is {which} of {driver}")
    for volume in rejection.pod.spec.volumes:
        driver = DRIVERS.get(mp.csi_migration.plugin_of(volume) or "", "")
        if driver:
            drivers.add(driver)
            parts.append(f"volume {volume.name} is a disk of {driver}")
    limits = Counter(
        f"{limit} of {driver}"
        for node in rejection.nodes
        for driver, limit in attachable.limits_of(
            rejection.cluster.get(mp.CSINode, node.name)
        ).items()
        if driver in drivers
    )
    parts.append(f"attached at most: {mp.texts.counted(limits, 'node', 140)}")
    return claim_advice.sentence(parts)


def _driver(cluster: mp.Cluster, used: claim_advice.UsedClaim) -> str:
    if used.volume is not None:
        spec = used.volume.spec
        in_tree = DRIVERS.get(mp.csi_migration.plugin_of(spec) or "", "")
        return in_tree if spec.csi is None else spec.csi.driver
    name = "" if used.claim is None else mp.claims.class_of(used.claim)
    storage_class = cluster.get(mp.StorageClass, name)
    provisioner = "" if storage_class is None else storage_class.provisioner
    return DRIVERS.get(provisioner, provisioner)
