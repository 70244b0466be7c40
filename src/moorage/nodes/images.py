"""Images: which rows have which container images, and their sizes.

An image's size is the one that the first node reported, until no node has the image.
"""

from dataclasses import dataclass, field

from moorage.api.node import Node


@dataclass(slots=True)
class Image:
    """One image name: its size in bytes and the rows that have it."""

    size: int
    rows: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Images:
    """All images by name."""

    _by_name: dict[str, Image] = field(default_factory=dict)

    def get(self, name: str) -> Image | None:
        """The image of that name, if any node has it."""
        return self._by_name.get(name)

    def set(self, row: int, old: Node | None, new: Node | None) -> None:
        """Replace the images of a row by those of its new node object."""
        before = () if old is None else old.status.images
        after = () if new is None else new.status.images
        if before == after:
            return
        for reported in before:
            for name in reported.names:
                image = self._by_name.get(name)
                if image is not None:
                    image.rows.discard(row)
                    if not image.rows:
                        del self._by_name[name]
        for reported in after:
            for name in reported.names:
                image = self._by_name.get(name)
                if image is None:
                    image = self._by_name[name] = Image(reported.size_bytes)
                image.rows.add(row)
