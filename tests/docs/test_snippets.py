"""Every snippet of the README and the docs is run, so that none of them can grow old unnoticed.

Python blocks of a page share a namespace and run in order, in an empty folder. A block whose first
line is `# file: NAME` is not run but written to that file of the folder, from where later blocks
can import it. In console blocks, lines that begin with `$ moorage` are run from the repository's
root, in order: in this process, or in a shell if they have pipes or the like. The lines below a
command are compared with what it prints, where `...` stands for anything. Other commands are not
run; those of `make` have to exist.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from moorage.cli.main import moorage

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
SHOW_CODE = '; echo "exit code $?"'
SHELL = re.compile(r"[|&;<>$]")
FILE = re.compile(r"# file: (?P<name>\S+)\n")


class Block(NamedTuple):
    """A fenced block, and the line of the page on which its text begins."""

    page: Path
    line: int
    language: str
    text: str


class Command(NamedTuple):
    """A command line, and what the page says that it prints."""

    block: Block
    line: str
    shown: list[str]


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for fence in FENCE.finditer(text):
        line = text.count("\n", 0, fence.start("text")) + 1
        yield Block(page, line, fence["language"], fence["text"])


def commands_of(block: Block) -> Iterator[Command]:
    first, *others = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert not first.strip(), f"{block.page.name}:{block.line}: does not begin with a command"
    for each in others:
        line, *shown = each.rstrip("\n").split("\n")
        yield Command(block, line, shown)


PYTHON = [page for page in PAGES if any(block.language == "python" for block in blocks(page))]
CONSOLE = [block for page in PAGES for block in blocks(page) if block.language == "console"]
MAKE = [
    command
    for block in CONSOLE
    for command in commands_of(block)
    if command.line.startswith("make")
]


@pytest.mark.parametrize("page", PYTHON, ids=lambda page: page.name)
def test_python(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    namespace = {"__name__": "__main__"}
    try:
        for block in blocks(page):
            run_block(block, tmp_path, namespace)
    finally:
        for loaded in set(sys.modules) - before:
            if str(getattr(sys.modules[loaded], "__file__", None)).startswith(str(tmp_path)):
                del sys.modules[loaded]


def run_block(block: Block, folder: Path, namespace: dict[str, object]) -> None:
    declared = FILE.match(block.text)
    if declared:
        file = folder / declared["name"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text[declared.end() :], encoding="utf-8")
    elif block.language == "python":
        # The empty lines make line numbers in tracebacks those of the page.
        source = "\n" * (block.line - 1) + block.text
        exec(compile(source, str(block.page), "exec"), namespace)


@pytest.mark.parametrize("block", CONSOLE, ids=lambda block: f"{block.page.name}:{block.line}")
def test_console(block, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    before = visible_files()
    for command in commands_of(block):
        if command.line.startswith("moorage "):
            check(command)
    assert visible_files() == before, "a command leaves files in the repository"


def visible_files() -> set[str]:
    return {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}


def check(command: Command) -> None:
    """Run a command, and compare what it prints with what the page shows."""
    line = command.line.removesuffix(SHOW_CODE)
    code, printed = run_in_shell(line) if SHELL.search(line) else run_here(line)
    if line != command.line:
        code, printed = 0, f"{printed}exit code {code}"
    printed = "\n".join(text.rstrip() for text in printed.splitlines())
    assert code == 0, printed
    if command.shown:
        assert re.fullmatch(pattern(command.shown), printed + "\n"), printed


def run_here(line: str) -> tuple[int, str]:
    """Run a command in this process, which takes a tenth of the time of a new one."""
    with pytest.MonkeyPatch.context() as patched:
        # On one core, workers are not processes of their own.
        patched.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
        arguments = shlex.split(line, comments=True)[1:]
        ran = CliRunner().invoke(moorage, arguments, terminal_width=78)
    return ran.exit_code, ran.output


def run_in_shell(line: str) -> tuple[int, str]:
    ran = subprocess.run(
        ["bash", "-c", line],
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return ran.returncode, ran.stdout


def pattern(shown: list[str]) -> str:
    return "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n"
        for line in shown
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_example_files(page):
    """A block that is shown as a file of `examples/` has the text of that file."""
    shown = {
        declared["name"]: block.text[declared.end() :]
        for block in blocks(page)
        if (declared := FILE.match(block.text)) and declared["name"].startswith("examples/")
    }
    assert shown == {name: (ROOT / name).read_text(encoding="utf-8") for name in shown}


@pytest.mark.parametrize("command", MAKE, ids=lambda command: command.line)
def test_make(command):
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    words = command.line.partition("#")[0].split()[1:]
    assert [word for word in words if "=" not in word and word not in targets] == []


@pytest.mark.parametrize(
    ("shown", "printed", "matches"),
    [
        pytest.param(["a", "b"], "a\nb\n", True, id="equal"),
        pytest.param(["a", "b"], "a\nc\n", False, id="another line"),
        pytest.param(["a"], "a\nb\n", False, id="more than shown"),
        pytest.param(["a", "...", "d"], "a\nb\nc\nd\n", True, id="lines left out"),
        pytest.param(["took ... s"], "took 1.5 s\n", True, id="a part of a line left out"),
        pytest.param(["(a|b)"], "a\n", False, id="no regular expressions"),
    ],
)
def test_pattern(shown, printed, matches):
    assert bool(re.fullmatch(pattern(shown), printed)) is matches
