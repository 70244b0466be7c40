"""In-tree volumes under the handles of the CSI drivers that serve them now."""

import pytest

from moorage.api import csi_migration
from moorage.api.csi_migration import MigrationError
from moorage.api.pod import AWSElasticBlockStore, AzureDisk, GCEPersistentDisk, Volume
from moorage.api.storage import CinderSource, PortworxSource

ZONE, BETA_ZONE = csi_migration.ZONE, csi_migration.BETA_ZONE


def ebs(volume_id):
    return Volume(aws_elastic_block_store=AWSElasticBlockStore(volume_id))


GCE = Volume(gce_persistent_disk=GCEPersistentDisk("d"))


@pytest.mark.parametrize(
    ("volume", "labels", "handle"),
    [
        pytest.param(ebs("vol-1"), {}, "vol-1", id="EBS"),
        pytest.param(ebs("aws://us-east-1a/vol-1"), {}, "vol-1", id="EBS with its zone"),
        pytest.param(ebs("aws:///vol-1/"), {}, "vol-1", id="EBS with an empty zone"),
        pytest.param(ebs("aws://z/vol-1?x=/y"), {}, "vol-1", id="EBS with a query"),
        pytest.param(GCE, {}, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d", id="GCE"),
        pytest.param(
            GCE, {ZONE: "r1-a"}, "projects/UNSPECIFIED/zones/r1-a/disks/d", id="GCE in a zone"
        ),
        pytest.param(
            GCE,
            {ZONE: "r1-a", BETA_ZONE: "r1-b"},
            "projects/UNSPECIFIED/zones/r1-b/disks/d",
            id="GCE: the old label first",
        ),
        pytest.param(
            GCE,
            {ZONE: "r1-a__r1-b"},
            "projects/UNSPECIFIED/regions/r1/disks/d",
            id="GCE in several zones",
        ),
        pytest.param(Volume(azure_disk=AzureDisk(disk_uri="u")), {}, "u", id="Azure"),
        pytest.param(
            Volume(azure_disk=AzureDisk(disk_uri="u", kind="Managed")), {}, "u", id="Azure, managed"
        ),
        pytest.param(Volume(cinder=CinderSource("c")), {}, "c", id="Cinder"),
        pytest.param(Volume(portworx_volume=PortworxSource("p")), {}, "p", id="Portworx"),
    ],
)
def test_handles(volume, labels, handle):
    assert csi_migration.handle_of(volume, labels.items()) == handle


@pytest.mark.parametrize(
    "volume",
    [
        pytest.param(ebs("aws://z/disk-1"), id="an EBS URL without a volume"),
        pytest.param(ebs("aws://z/vol-1/more"), id="an EBS URL with too much"),
        pytest.param(Volume(azure_disk=AzureDisk(disk_uri="u", kind="Shared")), id="not managed"),
        pytest.param(Volume(name="secret"), id="no disk at all"),
    ],
)
def test_volumes_without_a_handle(volume):
    with pytest.raises(MigrationError):
        csi_migration.handle_of(volume)
