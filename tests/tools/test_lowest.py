"""The constraints of `make lowest`."""

import lowest
import pytest


@pytest.mark.parametrize(
    ("requirement", "lines"),
    [
        pytest.param("numpy>=1.26", ["numpy==1.26"], id="a bound"),
        pytest.param("mkdocs>=1.6,<2", ["mkdocs==1.6"], id="two bounds"),
        pytest.param(
            "uvloop>=0.19; sys_platform != 'win32'",
            ["uvloop==0.19; sys_platform != 'win32'"],
            id="not everywhere",
        ),
        pytest.param("moorage[test]", [], id="a group of our own"),
    ],
)
def test_constraints(requirement, lines):
    assert list(lowest.constraints([requirement])) == lines


def test_without_a_lower_bound():
    with pytest.raises(SystemExit, match=r"pyproject.toml: 'ruff<2' has no lower bound"):
        list(lowest.constraints(["ruff<2"]))
