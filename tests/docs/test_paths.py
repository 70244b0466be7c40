"""The files and folders of the repository that documents name exist.

Those for contributors name files of ours only. Pages for users also name files of theirs, such as
`cluster.json`; paths that begin with a folder of the repository, or a package of Moorage, are ours.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("docs/architecture.md", "CONTRIBUTING.md", "tests/README.md")
ALL_PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))]
PACKAGES = [path for path in (ROOT / "src" / "moorage").iterdir() if path.is_dir()]
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


@pytest.mark.parametrize("page", ALL_PAGES)
def test_paths_of_the_repository(page):
    ours = {path.name for path in [*FOLDERS, *PACKAGES]}
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w.-]+/[\w./*-]*)`", text))
    roots = (ROOT, ROOT / "src" / "moorage")
    wrong = [
        path
        for path in sorted(named)
        if path.partition("/")[0] in ours
        and not any(any(root.glob(path.strip("/"))) for root in roots)
    ]
    assert wrong == []
