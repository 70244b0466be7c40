"""The plugins of another commit: its entry points, beside its sources.

A checkout that is run by PYTHONPATH has the entry points of the installed package, which may name
plugins that the commit does not have yet. Metadata that comes first on the path hides them.
"""

import tomllib
from pathlib import Path

GROUP = "moorage.plugins"


def write(source: Path, pyproject: str) -> None:
    """Write the metadata of a commit with this pyproject.toml into its source folder."""
    plugins = tomllib.loads(pyproject)["project"]["entry-points"][GROUP]
    folder = source / "moorage-0.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: moorage\nVersion: 0\n")
    lines = [f"[{GROUP}]", *(f"{name} = {value}" for name, value in plugins.items())]
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")
