"""Links of the README and of the pages to files of the repository lead somewhere.

mkdocs checks the links between pages, and their anchors (`make docs`); this also runs without it.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links(page):
    links = LINK.findall(CODE.sub("", page.read_text(encoding="utf-8")))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [page.name for page in PAGES[2:] if f": {page.name}\n" not in navigation] == []


def test_pictures_are_small_and_shown():
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    pictures = list((ROOT / "docs" / "pictures").iterdir())
    assert [path.name for path in pictures if path.stat().st_size > 150_000] == []
    assert [path.name for path in pictures if f"pictures/{path.name})" not in text] == []
