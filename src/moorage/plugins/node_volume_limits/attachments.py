"""Attachments: which volumes are attached to which node, by the word of the cluster."""

from collections.abc import Iterable

from moorage import plugin as mp


class Attachments:
    """VolumeAttachments by node, brought up to date when somebody asks."""

    def __init__(self, cluster: mp.Cluster) -> None:
        self._cluster = cluster
        self._cursor = mp.Cursor(cluster.changes_of(mp.VolumeAttachment))
        self._of_node: dict[str, dict[str, mp.VolumeAttachment]] = {}
        self._node_of: dict[str, str] = {}

    def on(self, node: str) -> Iterable[mp.VolumeAttachment]:
        """The attachments to a node."""
        if not self._cursor.is_current:
            self._refresh()
        return self._of_node.get(node, {}).values()

    def _refresh(self) -> None:
        changed = self._cursor.changed()
        if changed is None:
            self._of_node.clear()
            self._node_of.clear()
            changed = [each.key for each in self._cluster.all(mp.VolumeAttachment)]
        for key in changed:
            self._set(key, self._cluster.get(mp.VolumeAttachment, key))
        self._cursor.commit()

    def _set(self, key: str, attachment: mp.VolumeAttachment | None) -> None:
        before = self._node_of.pop(key, None)
        if before is not None:
            del self._of_node[before][key]
        if attachment is not None:
            node = self._node_of[key] = attachment.spec.node_name
            self._of_node.setdefault(node, {})[key] = attachment
