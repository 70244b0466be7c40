"""The ways to install Moorage that the documents name, and where `make demo` leaves the reader."""

import subprocess

import pytest

from .test_links import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_installs_what_is_not_released(page):
    """There is no release on PyPI; a clone can be installed."""
    text = page.read_text(encoding="utf-8")
    for command in ("pip install moorage", "pipx install moorage", "uv tool install moorage"):
        assert command not in text
    assert "uvx moorage" not in text


def test_the_demo_ends_with_the_next_command():
    # `make test` may run this test, and then make would say in which directory it is.
    command = ["make", "--no-print-directory", "--dry-run", "demo"]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    shown = subprocess.run(
        ["sh", "-c", made.stdout.splitlines()[-1]], capture_output=True, text=True, check=True
    )
    assert shown.stdout.splitlines()[-1] == "  . .venv/bin/activate"
    assert "docs/tutorial.md" in shown.stdout
    tutorial = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    assert "$ . .venv/bin/activate" in tutorial
