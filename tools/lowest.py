"""The lowest versions that pyproject.toml allows, as constraints for pip.

python tools/lowest.py > lowest.txt && pip install --constraint lowest.txt --editable .
"""

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
# A name, its lower bound, perhaps other bounds, perhaps where it holds.
REQUIREMENT = re.compile(r"([\w.-]+)>=([\w.]+)(?:,[^;]*)?(;.*)?")


def constraints(requirements: Iterable[str]) -> Iterator[str]:
    """A line for each requirement; groups of our own have none."""
    for requirement in requirements:
        if requirement.startswith("moorage["):
            continue
        found = REQUIREMENT.fullmatch(requirement)
        if found is None:
            sys.exit(f"pyproject.toml: {requirement!r} has no lower bound: write NAME>=VERSION")
        name, version, where = found.groups(default="")
        yield f"{name}=={version}{where}"


if __name__ == "__main__":
    project = tomllib.loads(PROJECT.read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    print(*constraints(each for group in groups for each in group), sep="\n")
