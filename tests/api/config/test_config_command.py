"""`moorage config`, which prints and checks what `moorage.api.config` loads."""

import json

import pytest
import yaml
from tests import command_line

from moorage.api import config as configurations

HEADER = {"apiVersion": configurations.API_VERSION, "kind": configurations.KIND}


def run(*arguments):
    # From the top: a command keeps the help options of the group that first called it.
    return command_line.run("config", *arguments)


@pytest.fixture
def write(tmp_path):
    def write_file(**members):
        path = tmp_path / "scheduler.yaml"
        path.write_text(yaml.safe_dump(HEADER | members))
        return path

    return write_file


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        pytest.param(["default"], yaml.safe_load, id="yaml"),
        pytest.param(["default", "-o", "json"], json.loads, id="json"),
    ],
)
def test_default(arguments, read):
    got = run(*arguments)
    assert got.exit_code == 0
    assert configurations.load(read(got.stdout)) == configurations.load()


MINE = {"multiPoint": {"enabled": [{"name": "mine_only.py:Mine"}]}}
VALID_PLUGIN = """class Mine:
    name = "Mine"

    def score(self, state, pod, node):
        return 1
"""


def test_a_valid_file(write):
    path = write(profiles=[{"schedulerName": "a"}, {"schedulerName": "b", "plugins": MINE}])
    path.with_name("mine_only.py").write_text(VALID_PLUGIN)
    got = run("validate", path)
    assert got.exit_code == 0
    assert got.stdout == f"{path}: valid\n  a: 20 plugins\n  b: 21 plugins\n"


def test_an_invalid_file(write):
    path = write(parallelism=0, percentageOfNodesToScore=101)
    got = run("validate", path)
    assert got.exit_code == 2
    assert got.stdout == ""
    assert got.stderr == (
        f"{path}: parallelism: Invalid value: 0: should be an integer value greater than zero\n"
        f"{path}: percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]\n"
    )


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        pytest.param("", "mine_only.py has no class Mine", id="no class"),
        pytest.param(VALID_PLUGIN.replace("score", "scored"), "write score", id="no method"),
        pytest.param(None, "mine_only.py: no such file", id="no file"),
    ],
)
def test_a_plugin_that_cannot_work(write, written, fault):
    path = write(profiles=[{"plugins": MINE}])
    if written is not None:
        path.with_name("mine_only.py").write_text(written)
    got = run("validate", path)
    assert got.exit_code == 2
    assert got.stdout == ""
    assert got.stderr.startswith(f"{path}: ")
    assert got.stderr.endswith(f"{fault}\n")


@pytest.mark.parametrize(
    ("members", "code", "verdict"),
    [
        pytest.param(
            {},
            0,
            {"valid": True, "profiles": [{"schedulerName": "default-scheduler", "plugins": 20}]},
            id="valid",
        ),
        pytest.param({"parallelism": 0}, 2, {"valid": False, "profiles": []}, id="faults"),
    ],
)
def test_for_programs(write, members, code, verdict):
    path = write(**members)
    got = run("validate", path, "-o", "json")
    assert got.exit_code == code
    printed = json.loads(got.stdout)
    assert printed["file"] == str(path)
    assert bool(printed.pop("problems")) is not verdict["valid"]
    assert {name: printed[name] for name in verdict} == verdict


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="no file"),
        pytest.param(b"", id="an empty file"),
        pytest.param(b"- a\n- b\n", id="a list"),
        pytest.param(b"\x00\xff\xfe\x89PNG", id="binary"),
        pytest.param(b"a: [", id="half a file"),
    ],
)
def test_junk(tmp_path, content):
    path = tmp_path / "junk"
    if content is not None:
        path.write_bytes(content)
    got = run("validate", path)
    assert got.exit_code == 2
    assert got.stderr.startswith(f"{path}: ")
    assert got.stderr.count("\n") == 1


def test_a_folder(tmp_path):
    got = run("validate", tmp_path)
    assert got.exit_code == 2
    assert got.stderr == f"{tmp_path}: is a directory\n"
