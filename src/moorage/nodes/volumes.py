"""VolumeUses: which rows have pods that use which claims and disks.

Updated as pods come and go, for the few pods with volumes that restrict the node; secrets and
config maps do not. The volume of a claim is not known here, only the pods that use the claim.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from moorage.api import claims
from moorage.api.pod import Pod, Volume
from moorage.nodes.changes import RowLog

# What is used: its kind and its identity.
Use = tuple[str, ...]

CLAIM, EPHEMERAL = "claim", "ephemeral"
READ_ONLY, READ_WRITE = "read-only", "read-write"


@dataclass(slots=True)
class VolumeUses:
    """Uses by row with the number of volumes, and the pods with such volumes."""

    # Rows to which a pod with volumes came, or that one left.
    changes: RowLog = field(default_factory=RowLog)
    _rows: dict[Use, dict[int, int]] = field(default_factory=dict)
    _pods: dict[int, dict[str, Pod]] = field(default_factory=dict)

    def add(self, row: int, pod: Pod) -> None:
        """Add a pod with such volumes to a row."""
        self._pods.setdefault(row, {})[pod.uid] = pod
        self.changes.add(row)
        for use in uses_of(pod):
            rows = self._rows.setdefault(use, {})
            rows[row] = rows.get(row, 0) + 1

    def remove(self, row: int, pod: Pod) -> None:
        """Remove such a pod from a row."""
        pods = self._pods[row]
        del pods[pod.uid]
        if not pods:
            del self._pods[row]
        self.changes.add(row)
        for use in uses_of(pod):
            rows = self._rows[use]
            rows[row] -= 1
            if not rows[row]:
                del rows[row]
                if not rows:
                    del self._rows[use]

    def rows(self, use: Use) -> Collection[int]:
        """The rows with a pod that has a use."""
        return self._rows.get(use, {}).keys()

    def pods(self, row: int) -> Mapping[str, Pod]:
        """The pods of a row with volumes that restrict the node, by UID."""
        return self._pods.get(row, {})


def is_bare(volume: Volume) -> bool:
    """Whether a volume does not restrict the node."""
    return volume == Volume(name=volume.name)


def are_telling(pod: Pod) -> bool:
    """Whether any volume of a pod restricts the node."""
    return not all(map(is_bare, pod.spec.volumes))


def claim_use(namespace: str, claim: str) -> Use:
    """The use of a claim that the pod names."""
    return (CLAIM, f"{namespace}/{claim}")


def uses_of(pod: Pod) -> Iterator[Use]:
    """What the volumes of a pod use, volume by volume."""
    for volume in pod.spec.volumes:
        claim = claims.name_of(pod, volume)
        if claim is None:
            yield from disks(volume)
        else:
            kind = CLAIM if volume.ephemeral is None else EPHEMERAL
            yield (kind, f"{pod.namespace}/{claim}")


# Disks that pods name themselves


def disks(volume: Volume, mode: str = "") -> Iterator[Use]:
    """The disk of a volume, in its own mode unless another is given.

    Several for RBD, one for each of its monitors: two volumes are of one disk if they have a
    monitor in common.
    """
    if (gce := volume.gce_persistent_disk) is not None:
        yield ("gce", gce.pd_name, mode or _mode(read_only=gce.read_only))
    if (ebs := volume.aws_elastic_block_store) is not None:
        yield ("ebs", ebs.volume_id)  # One pod of a node at a time, even to read.
    if (iscsi := volume.iscsi) is not None:
        yield ("iscsi", iscsi.iqn, mode or _mode(read_only=iscsi.read_only))
    if (rbd := volume.rbd) is not None:
        for monitor in rbd.monitors:
            access = mode or _mode(read_only=rbd.read_only)
            yield ("rbd", monitor, rbd.pool, rbd.image, access)


def in_conflict(volume: Volume) -> Iterable[Use]:
    """The uses that conflict with a volume on one node: the same disk, unless both read."""
    writing = list(disks(volume, READ_WRITE))
    if list(disks(volume)) == writing:
        return [*writing, *disks(volume, READ_ONLY)]
    return writing


def _mode(*, read_only: bool) -> str:
    return READ_ONLY if read_only else READ_WRITE
