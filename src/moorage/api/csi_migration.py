"""CSI migration: in-tree volumes as the CSI volumes that serve them.

Volume plugins of clouds were part of Kubernetes; today CSI drivers replace them. Old volumes keep
their in-tree fields, so code that compares or counts volumes translates them with these tables.
"""

import re
from collections.abc import Iterable

from msgspec import structs

from moorage.api.meta import LabelSelectorRequirement, NodeSelector, NodeSelectorTerm
from moorage.api.pod import Volume
from moorage.api.storage import CSINode, PersistentVolume, PersistentVolumeSpec, VolumeNodeAffinity

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"

EBS = "kubernetes.io/aws-ebs"
GCE = "kubernetes.io/gce-pd"
AZURE_DISK = "kubernetes.io/azure-disk"
CINDER = "kubernetes.io/cinder"
PORTWORX = "kubernetes.io/portworx-volume"

# In-tree plugin -> the CSI driver that serves its volumes.
DRIVERS = {
    EBS: "ebs.csi.aws.com",
    GCE: "pd.csi.storage.gke.io",
    AZURE_DISK: "disk.csi.azure.com",
    CINDER: "cinder.csi.openstack.org",
    PORTWORX: "pxd.portworx.com",
}
# These have CSI drivers too, but kube-scheduler treats them as not migrated.
NOT_MIGRATED = ("kubernetes.io/azure-file", "kubernetes.io/vsphere-volume")

# The field of a volume -> the in-tree plugin.
_FIELDS = {
    "aws_elastic_block_store": EBS,
    "gce_persistent_disk": GCE,
    "azure_disk": AZURE_DISK,
    "cinder": CINDER,
    "portworx_volume": PORTWORX,
    "azure_file": NOT_MIGRATED[0],
    "vsphere_volume": NOT_MIGRATED[1],
}
_TOPOLOGY_KEYS = {
    EBS: "topology.ebs.csi.aws.com/zone",
    GCE: "topology.gke.io/zone",
    CINDER: "topology.cinder.csi.openstack.org/zone",
}

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
SEPARATOR = "__"

_QUERY = re.compile(r"[?#]")
_EBS_HANDLE = re.compile(r"vol-[^/]*")


class MigrationError(ValueError):
    """An in-tree volume that cannot be translated; the text is Kubernetes'."""


def plugin_of(source: Volume | PersistentVolumeSpec) -> str | None:
    """The in-tree plugin of a volume; None if CSI migration does not concern it."""
    for field, plugin in _FIELDS.items():
        if getattr(source, field) is not None:
            return plugin
    return None


def migrated_plugins(csi_node: CSINode | None) -> frozenset[str]:
    """The in-tree plugins whose volumes a node serves through CSI, by its annotation."""
    if csi_node is None:
        return frozenset()
    return frozenset(csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "").split(","))


def handle_of(source: Volume | PersistentVolumeSpec, labels: Iterable[tuple[str, str]] = ()) -> str:
    """The CSI handle of an in-tree volume; `labels` are those of a persistent volume."""
    if (ebs := source.aws_elastic_block_store) is not None:
        return _ebs_handle(ebs.volume_id)
    if (gce := source.gce_persistent_disk) is not None:
        return _gce_handle(gce.pd_name, dict(labels))
    if (azure := source.azure_disk) is not None:
        if azure.kind not in (None, "Managed"):
            raise MigrationError(f"kind({azure.kind}) is not supported in csi migration")
        return azure.disk_uri
    if (disk := source.cinder or source.portworx_volume) is not None:
        return disk.volume_id
    raise MigrationError("not a volume that a CSI driver took over")


def _ebs_handle(volume_id: str) -> str:
    if not volume_id.startswith("aws://"):
        return volume_id
    path = _QUERY.split(volume_id.removeprefix("aws://"), maxsplit=1)[0]
    handle = path.partition("/")[2].strip("/")
    if _EBS_HANDLE.fullmatch(handle) is None:
        text = "failed to translate Kubernetes ID to EBS Volume ID"
        raise MigrationError(f"{text} Invalid format for AWS volume ({volume_id})")
    return handle


def _gce_handle(disk: str, labels: dict[str, str]) -> str:
    zone = labels.get(BETA_ZONE) or labels.get(ZONE) or "UNSPECIFIED"
    zones = zone.split(SEPARATOR)
    if len(zones) > 1:
        return f"projects/UNSPECIFIED/regions/{_gce_region(zones)}/disks/{disk}"
    return f"projects/UNSPECIFIED/zones/{zone}/disks/{disk}"


def _gce_region(zones: list[str]) -> str:
    """The region of several zones, whose names have three parts."""
    prefix, regions = "failed to get region from zones", set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            rule = "zone in unexpected format, expected: {locale}-{region}-{zone}"
            raise MigrationError(f"{prefix}: {rule}, got: {zone}")
        regions.add("-".join(parts[:2]))
    if len(regions) > 1:
        got = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise MigrationError(f"{prefix}: multiple or no regions gotten from zones, got: map[{got}]")
    return regions.pop()


def affinity_of(volume: PersistentVolume) -> VolumeNodeAffinity | None:
    """The node affinity of an in-tree volume, with the topology key of its CSI driver."""
    plugin = plugin_of(volume.spec)
    handle_of(volume.spec, volume.labels.items())  # Raises for a volume that has no handle.
    csi_key = _TOPOLOGY_KEYS.get(plugin or "")
    if csi_key is None:
        return volume.spec.node_affinity
    affinity = volume.spec.node_affinity
    required = None if affinity is None else affinity.required
    terms = () if required is None else required.node_selector_terms
    keys = {e.key for term in terms for e in term.match_expressions if e.values}
    found = (ZONE in keys, BETA_ZONE in keys, ZONE in volume.labels, BETA_ZONE in volume.labels)
    beta = found.index(True) % 2 == 1 if any(found) else False
    zone = BETA_ZONE if beta else ZONE
    names = {BETA_REGION: REGION} if beta else {}
    if zone in keys:
        names[zone] = csi_key
    renamed = tuple(_renamed(term, names) for term in terms)
    if zone not in keys and zone in volume.labels:
        renamed = _with_zones(renamed, csi_key, volume.labels[zone])
    if not renamed and affinity is None:
        return None
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=renamed))


def _renamed(term: NodeSelectorTerm, names: dict[str, str]) -> NodeSelectorTerm:
    expressions = tuple(
        structs.replace(expression, key=names.get(expression.key, expression.key))
        for expression in term.match_expressions
    )
    return structs.replace(term, match_expressions=expressions)


def _with_zones(
    terms: tuple[NodeSelectorTerm, ...], key: str, label: str
) -> tuple[NodeSelectorTerm, ...]:
    zones = tuple(sorted({zone.strip() for zone in label.split(SEPARATOR)} - {""}))
    if not zones:
        return terms
    requirement = LabelSelectorRequirement(key=key, operator="In", values=zones)
    return tuple(
        structs.replace(term, match_expressions=(*term.match_expressions, requirement))
        for term in terms or (NodeSelectorTerm(),)
    )
