"""The files and folders that the documents for contributors name exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("docs/architecture.md", "CONTRIBUTING.md", "tests/README.md")
FOLDERS = [
    ROOT / name for name in ("src", "tests", "tools", "deploy", "docs", "examples", "changes")
]
PATHS = [*FOLDERS, *[path for folder in FOLDERS for path in folder.rglob("*")]]
NAMED = re.compile(r"`([\w./*-]+(?:\.py|/))`")


def exists(named):
    is_file = named.endswith(".py")
    return any(path.match(named) and path.is_file() == is_file for path in PATHS)


@pytest.mark.parametrize("page", PAGES)
def test_paths(page):
    text = (ROOT / page).read_text()
    named = {n for n in NAMED.findall(text) if "NAME" not in n and "COMMAND" not in n}
    assert named, "the pattern finds no path"
    assert [n for n in sorted(named) if not exists(n)] == []
