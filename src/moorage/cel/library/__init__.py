"""CEL's functions by family. Importing the package registers them in `types.OVERLOADS`."""

from moorage.cel.library import (
    formats,
    kubernetes,
    lists,
    network,
    operators,
    optionals,
    strings,
    times,
)

__all__ = [
    "formats",
    "kubernetes",
    "lists",
    "network",
    "operators",
    "optionals",
    "strings",
    "times",
]
