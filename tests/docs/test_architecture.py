"""docs/architecture.md agrees with the code: layers, imports of folders, files of each table."""

import ast
import configparser
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "moorage"
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NAME = re.compile(r"`([\w./*-]+)`")
PATH = re.compile(r"`([\w./*-]+(?:\.py|\.txt|/))`")


def tables():
    """Each table as its heads and its rows."""
    for head, rows in re.findall(r"^(\|.*)\n\|[-|]+\n((?:\|.*\n)+)", TEXT, re.MULTILINE):
        yield cells(head), [cells(row) for row in rows.splitlines()]


def cells(row):
    return [cell.strip() for cell in row.strip("|").split("|")]


FOLDERS = next(rows for heads, rows in tables() if "imports of ours" in heads)
FILES = [
    pytest.param(folder, names, id=folder)
    for heads, rows in tables()
    for number, head in enumerate(heads)
    if (found := re.match(r"file in `([\w/]+)/`", head))
    for folder in [found[1]]
    for names in [[name for row in rows for name in NAME.findall(row[number])]]
]


def imported(path):
    """The packages and `plugin` that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "moorage":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("moorage."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            names = (alias.name.split(".") for alias in node.names)
            yield from (name[1] for name in names if name[0] == "moorage" and len(name) > 1)


@pytest.mark.parametrize("row", FOLDERS, ids=lambda row: row[0].strip("`"))
def test_imports(row):
    folder, purpose, imports, _ = row
    path = SOURCE / folder.strip("`")
    if imports.startswith("anything"):
        return
    files = path.rglob("*.py") if path.is_dir() else [path]
    of_ours = {name for file in files for name in imported(file)} - {path.stem}
    of_ours &= {"plugin", *(each.name for each in SOURCE.iterdir() if each.is_dir())}
    assert sorted(NAME.findall(imports)) == sorted(of_ours)
    named = [name for name in PATH.findall(purpose) if not exists(path, name)]
    assert named == []


def exists(folder, name):
    """Whether a file is somewhere in a folder, or a path begins with a package or at the root."""
    is_inside = any(path.match(name) for path in folder.rglob("*"))
    return is_inside or (SOURCE / name).exists() or (ROOT / name).exists()


def test_every_folder_has_a_row():
    folders = {f"{path.parent.name}/" for path in SOURCE.glob("*/__init__.py")}
    assert sorted(row[0].strip("`") for row in FOLDERS) == sorted({*folders, "plugin.py"})


@pytest.mark.parametrize(("folder", "names"), FILES)
def test_files_of_a_folder(folder, names):
    root = SOURCE / folder
    assert [name for name in names if not any(root.glob(name.strip("/")))] == []


def test_layers():
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    layers = contracts["importlinter:contract:layers"]["layers"]
    assert re.sub(r"[()]", "", layers).strip() in TEXT
    ignored = contracts["importlinter:contract:shells"]["ignore_imports"]
    shells = {line.split(" ->")[0].removesuffix(".**") for line in ignored.split("\n") if line}
    [sentence] = re.findall(r"in every package except\n(.*?)\.\n", TEXT, re.DOTALL)
    stated = [f"moorage.{name.removesuffix('.py')}" for name in NAME.findall(sentence)]
    assert sorted(name.replace("/", ".") for name in stated) == sorted(shells)
