"""In-tree volumes as CSI volumes."""

import pytest
from tests.storage_builders import make_csi_node, make_volume, reaching

from moorage.api import csi_migration
from moorage.api.pod import AWSElasticBlockStore, AzureDisk, GCEPersistentDisk, Volume
from moorage.api.storage import (
    GCEDiskSource,
    PersistentVolumeSpec,
    VolumeIDSource,
)

ZONE, BETA_ZONE = csi_migration.ZONE, csi_migration.BETA_ZONE
REGION, BETA_REGION = csi_migration.REGION, csi_migration.BETA_REGION
EBS_KEY, GCE_KEY = "topology.ebs.csi.aws.com/zone", "topology.gke.io/zone"


@pytest.mark.parametrize(
    ("source", "labels", "handle"),
    [
        pytest.param({"aws_elastic_block_store": VolumeIDSource(volume_id="vol-1")}, {}, "vol-1"),
        pytest.param(
            {"aws_elastic_block_store": VolumeIDSource(volume_id="aws://us-east-1a/vol-1")},
            {},
            "vol-1",
            id="an EBS address",
        ),
        pytest.param(
            {"gce_persistent_disk": GCEDiskSource(pd_name="d")},
            {},
            "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
            id="a GCE disk without a zone",
        ),
        pytest.param(
            {"gce_persistent_disk": GCEDiskSource(pd_name="d")},
            {ZONE: "new", BETA_ZONE: "old"},
            "projects/UNSPECIFIED/zones/old/disks/d",
            id="a GCE disk, the old label first",
        ),
        pytest.param(
            {"gce_persistent_disk": GCEDiskSource(pd_name="d")},
            {ZONE: "us-east1-b__us-east1-c"},
            "projects/UNSPECIFIED/regions/us-east1/disks/d",
            id="a GCE disk of a region",
        ),
        pytest.param({"cinder": VolumeIDSource(volume_id="c")}, {}, "c", id="Cinder"),
        pytest.param({"portworx_volume": VolumeIDSource(volume_id="p")}, {}, "p", id="Portworx"),
    ],
)
def test_handles(source, labels, handle):
    assert csi_migration.handle_of(PersistentVolumeSpec(**source), labels.items()) == handle


@pytest.mark.parametrize(
    ("zones", "error"),
    [
        pytest.param(
            "us-east-1a__us-east-1b__zone",
            "zone in unexpected format, expected: {locale}-{region}-{zone}, got: zone",
            id="a zone of one part",
        ),
        pytest.param(
            "us-b-1__us-a-1",
            "multiple or no regions gotten from zones, got: map[us-a:{} us-b:{}]",
            id="two regions",
        ),
    ],
)
def test_a_gce_disk_of_zones_without_a_region(zones, error):
    disk = PersistentVolumeSpec(gce_persistent_disk=GCEDiskSource(pd_name="d"))
    with pytest.raises(csi_migration.MigrationError) as raised:
        csi_migration.handle_of(disk, {ZONE: zones}.items())
    assert str(raised.value) == f"failed to get region from zones: {error}"


@pytest.mark.parametrize(
    "volume",
    [
        pytest.param(
            Volume(aws_elastic_block_store=AWSElasticBlockStore(volume_id="aws://zone/disk")),
            id="an EBS address without a volume",
        ),
        pytest.param(Volume(azure_disk=AzureDisk(kind="Shared")), id="not a managed Azure disk"),
        pytest.param(Volume(name="secret"), id="not a disk at all"),
    ],
)
def test_volumes_without_a_handle(volume):
    with pytest.raises(csi_migration.MigrationError):
        csi_migration.handle_of(volume)


def affinity(labels=None, **spec):
    return csi_migration.affinity_of(make_volume(labels=labels, **spec))


GCE = {"gce_persistent_disk": GCEDiskSource(pd_name="d")}
EBS = {"aws_elastic_block_store": VolumeIDSource(volume_id="vol-1")}


@pytest.mark.parametrize(
    ("labels", "spec", "expected"),
    [
        pytest.param({}, GCE, None, id="nothing said"),
        pytest.param(
            {}, GCE | {"node_affinity": reaching(ZONE, "a")}, reaching(GCE_KEY, "a"), id="zone key"
        ),
        pytest.param(
            {}, EBS | {"node_affinity": reaching(BETA_ZONE, "a")}, reaching(EBS_KEY, "a"), id="old"
        ),
        pytest.param({BETA_ZONE: "a"}, GCE, reaching(GCE_KEY, "a"), id="an old label"),
        pytest.param(
            {ZONE: "b __ a__b"}, EBS, reaching(EBS_KEY, "a", "b"), id="a label with several zones"
        ),
        pytest.param(
            {ZONE: "label"},
            GCE | {"node_affinity": reaching(BETA_ZONE, "affinity")},
            reaching(GCE_KEY, "affinity"),
            id="affinity before labels",
        ),
        pytest.param(
            {BETA_ZONE: "label"},
            {"cinder": VolumeIDSource(volume_id="c")},
            reaching("topology.cinder.csi.openstack.org/zone", "label"),
            id="Cinder",
        ),
        pytest.param(
            {ZONE: "a"}, {"portworx_volume": VolumeIDSource()}, None, id="Portworx has no topology"
        ),
    ],
)
def test_affinity(labels, spec, expected):
    assert affinity(labels, **spec) == expected


def test_an_old_region_is_renamed_along_with_an_old_zone():
    moved = affinity({BETA_ZONE: "a"}, **GCE, node_affinity=reaching(BETA_REGION, "r"))
    expressions = moved.required.node_selector_terms[0].match_expressions
    assert [(each.key, each.values) for each in expressions] == [
        (REGION, ("r",)),
        (GCE_KEY, ("a",)),
    ]


def test_migrated_plugins_of_a_node():
    node = make_csi_node()
    node.metadata.annotations[csi_migration.MIGRATED_PLUGINS] = f"{csi_migration.EBS},x"
    assert csi_migration.EBS in csi_migration.migrated_plugins(node)
    assert csi_migration.GCE not in csi_migration.migrated_plugins(node)
    assert csi_migration.migrated_plugins(None) == frozenset()


def test_plugin_of_a_volume():
    assert (
        csi_migration.plugin_of(Volume(gce_persistent_disk=GCEPersistentDisk()))
        == "kubernetes.io/gce-pd"
    )
    assert csi_migration.plugin_of(Volume(name="secret")) is None
