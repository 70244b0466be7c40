"""How a plugin is found by name, and the one-line error if it cannot be loaded or built."""

import pickle
import sys
from importlib.metadata import EntryPoint

import pytest

from moorage.errors import ConfigError
from moorage.framework import registry
from moorage.framework.registry import Registry
from moorage.plugins.node_name import NodeName

PLUGIN = """
from moorage import plugin as mp

class Quiet:
    name = "Quiet"

    def score(self, state, pod, node):
        return 7
"""


@pytest.fixture
def folder(tmp_path):
    """A folder for plugin files; modules loaded from it are unloaded after the test."""
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(folder, name, text):
    (folder / name).write_text(text)


def found(name, folder):
    return Registry().find(name, folder)


# Where plugins are found


def test_a_plugin_is_found_by_its_entry_point(tmp_path):
    assert found("NodeName", tmp_path) is NodeName
    assert "NodeName" in Registry().known()


def test_a_class_passed_to_the_registry_overrides_an_entry_point(tmp_path):
    class Mine:
        name = "Mine"

    assert Registry({"NodeName": Mine}).find("NodeName", tmp_path) is Mine


def test_a_class_is_found_in_an_installed_module(tmp_path):
    assert found("moorage.plugins.node_name:NodeName", tmp_path) is NodeName


@pytest.mark.parametrize("name", ["quiet.py:Quiet", "quiet:Quiet"], ids=["path", "module"])
def test_a_class_is_found_in_a_file_next_to_the_configuration(folder, name):
    write(folder, "quiet.py", PLUGIN)
    cls = found(name, folder)
    assert cls().score(None, None, None) == 7
    assert found(name, folder) is cls


def test_a_class_is_found_in_a_subfolder_of_the_configurations_folder(folder):
    (folder / "ours").mkdir()
    write(folder / "ours", "quiet.py", PLUGIN)
    assert found("ours/quiet.py:Quiet", folder).name == "Quiet"
    assert found("ours.quiet:Quiet", folder).name == "Quiet"


def test_a_plugin_loaded_from_a_file_can_be_pickled(folder):
    write(folder, "quiet.py", PLUGIN)
    made = registry.make("quiet.py:Quiet", found("quiet.py:Quiet", folder), None)
    assert type(pickle.loads(pickle.dumps(made))) is type(made)


@pytest.mark.parametrize("name", ["json", "statistics", "moorage"])
def test_a_file_with_the_name_of_a_module_does_not_replace_that_module(folder, name):
    write(folder, f"{name}.py", PLUGIN)
    before = sys.modules.get(name)
    cls = found(f"{name}.py:Quiet", folder)
    assert cls.name == "Quiet"
    assert sys.modules.get(name) is before
    assert type(pickle.loads(pickle.dumps(cls()))) is cls


def test_two_files_with_the_same_name_are_loaded_separately(folder):
    for place in ("one", "two"):
        (folder / place).mkdir()
        write(folder / place, "quiet.py", PLUGIN.replace("7", "1" if place == "one" else "2"))
    one, two = (found(f"{place}/quiet.py:Quiet", folder) for place in ("one", "two"))
    assert (one().score(None, None, None), two().score(None, None, None)) == (1, 2)
    assert [type(pickle.loads(pickle.dumps(cls()))) is cls for cls in (one, two)] == [True, True]


def test_an_unknown_plugin_name_is_an_error(tmp_path):
    assert found("Unheard", tmp_path) is None


# Plugins that cannot be loaded


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        pytest.param(
            "quiet.py:Loud",
            PLUGIN,
            'plugin "quiet.py:Loud": quiet.py has no class Loud',
            id="class",
        ),
        pytest.param(
            "quiet.py:mp",
            PLUGIN,
            'plugin "quiet.py:mp": quiet.py has no class mp',
            id="not a class",
        ),
        pytest.param(
            "quiet.py:Quiet",
            "1 / 0",
            'plugin "quiet.py:Quiet": {folder}/quiet.py: division by zero',
            id="a file that raises",
        ),
        pytest.param(
            "quiet.py:Quiet",
            "class :",
            'plugin "quiet.py:Quiet": {folder}/quiet.py: invalid syntax (quiet.py, line 1)',
            id="a file with a syntax error",
        ),
        pytest.param(
            "quiet.py:Quiet",
            "raise ValueError('one\\ntwo')",
            'plugin "quiet.py:Quiet": {folder}/quiet.py: one two',
            id="an error message of several lines",
        ),
        pytest.param(
            "quiet.py:Quiet",
            "import sys; sys.exit('bye')",
            """plugin "quiet.py:Quiet": {folder}/quiet.py: called sys.exit('bye')""",
            id="a file that calls sys.exit",
        ),
        pytest.param(
            "quiet.py",
            f"{PLUGIN}\n\nclass Loud(Quiet): ...",
            'plugin "quiet.py": write quiet.py:Quiet or quiet.py:Loud',
            id="a file name without a class name",
        ),
        pytest.param(
            "quiet.py",
            "import os",
            'plugin "quiet.py": write quiet.py:Class; the file has no class yet',
            id="a file without that class",
        ),
        pytest.param(
            "quiet.py",
            "class :",
            'plugin "quiet.py": write quiet.py:Class',
            id="a file name without a class name, not Python",
        ),
        pytest.param(
            "unheard.of:Quiet",
            PLUGIN,
            """plugin "unheard.of:Quiet": unheard.of: No module named 'unheard'""",
            id="no such module",
        ),
        pytest.param(
            "unheard.py:Quiet",
            PLUGIN,
            'plugin "unheard.py:Quiet": {folder}/unheard.py: no such file',
            id="no such file",
        ),
    ],
)
def test_a_path_that_cannot_be_loaded_is_an_error(folder, name, text, problem):
    write(folder, "quiet.py", text)
    for _ in range(2):  # The second attempt must not find a partly loaded module.
        with pytest.raises(ConfigError) as raised:
            found(name, folder)
        assert raised.value.problems == [problem.format(folder=folder)]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param("moorage_unheard:Plugin", "No module named 'moorage_unheard'", id="module"),
        pytest.param("moorage.plugins.node_name:Missing", "has no attribute 'Missing'", id="class"),
    ],
)
def test_an_entry_point_that_cannot_be_loaded_is_an_error(monkeypatch, tmp_path, value, message):
    entry = EntryPoint("Broken", value, registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry])
    with pytest.raises(ConfigError) as raised:
        found("Broken", tmp_path)
    (problem,) = raised.value.problems
    assert problem.startswith(f'plugin "Broken": {value}: ')
    assert message in problem


# Plugins that cannot be built


class Plain:
    name = "Plain"

    def filter(self, state, pod, node): ...


class Parametrized(Plain):
    def __init__(self, *, at_least, weight_factor=1):
        if at_least < 0:
            raise ValueError(f"atLeast: must not be negative, is {at_least}")
        self.given = (at_least, weight_factor)


class Nameless(Plain):
    name = ""


class Numbered(Plain):
    name = 7


class Idle:
    name = "Idle"


class FewArguments(Plain):
    def filter(self, pod, node): ...


class ManyArguments(Plain):
    def score(self, state, pod, node, extra): ...


class OnlyFilterAll:
    name = "OnlyFilterAll"

    def filter_all(self, state, pod, table): ...


class Misspelt:
    name = "Misspelt"

    def filters(self, state, pod, node): ...


class MisspeltBeside(Plain):
    def filter(self, state, pod, node): ...

    def scores(self, state, pod, node): ...


class Helper(Plain):
    """Methods with similar names, but other parameters, and one beside the method itself."""

    def filter(self, state, pod, node): ...

    def filters(self, state, pod, node): ...

    def scores(self, nodes): ...

    reserved = ()


class CamelCase(Plain):
    def preFilter(self, state, pod): ...


class AsyncPermit(Plain):
    async def permit(self, state, pod, node): ...


class Reader:
    name = "Reader"
    reads_kinds = ("StorageClass", "Quota")

    def filter(self, state, pod, node):
        return None


class TextDepends(Plain):
    depends = "NODE"


class EmptyError(Plain):
    def __init__(self):
        raise KeyError


class Exiting(Plain):
    def __init__(self):
        raise SystemExit(0)


def located(text, cls):
    """A text, followed by the location of the constructor's first line."""
    return f"{text} (test_registry.py:{cls.__init__.__code__.co_firstlineno + 1})"


LEFT = located("called sys.exit(0)", Exiting)
WORDLESS = located("KeyError", EmptyError)


@pytest.mark.parametrize(
    ("cls", "args", "problem"),
    [
        pytest.param(
            Parametrized,
            {"atLeast": 1, "atMost": 2},
            "got an unexpected keyword argument 'at_most'",
            id="an unknown argument",
        ),
        pytest.param(
            Parametrized,
            {"atLeast": -1},
            "atLeast: must not be negative, is -1",
            id="an invalid argument",
        ),
        pytest.param(EmptyError, None, WORDLESS, id="an exception without a message"),
        pytest.param(
            Exiting,
            None,
            LEFT,
            id="a constructor that calls sys.exit",
        ),
        pytest.param(Nameless, None, "it needs a class attribute `name`", id="no name"),
        pytest.param(
            Numbered, None, "it needs a class attribute `name`", id="a name that is not a string"
        ),
        pytest.param(
            Idle, None, "it has no method of any extension point", id="no extension point"
        ),
        pytest.param(
            Misspelt,
            None,
            "filters is no extension point, so it is never called; write filter",
            id="a misspelt extension point",
        ),
        pytest.param(
            MisspeltBeside,
            None,
            "scores is no extension point, so it is never called; write score",
            id="a misspelt extension point beside a correct one",
        ),
        pytest.param(
            CamelCase,
            None,
            "preFilter is no extension point, so it is never called; write pre_filter",
            id="a method in Go's spelling",
        ),
        pytest.param(
            AsyncPermit, None, "permit must not be async: nobody awaits it", id="an async method"
        ),
        pytest.param(
            Reader, None, "reads_kinds: Quota: no such kind is watched", id="reads an unknown kind"
        ),
        pytest.param(
            TextDepends,
            None,
            "depends has to be one of mp.Depends, is 'NODE'",
            id="depends is a string",
        ),
        pytest.param(
            FewArguments,
            None,
            "filter has to take 3 argument(s) besides self",
            id="too few parameters",
        ),
        pytest.param(
            ManyArguments,
            None,
            "score has to take 3 argument(s) besides self",
            id="too many parameters",
        ),
        pytest.param(
            OnlyFilterAll,
            None,
            "filter_all needs its per-node twin `filter`, which explains and what-ifs use",
            id="a whole-cluster form without a per-node form",
        ),
    ],
)
def test_an_invalid_plugin_is_refused_with_one_line(cls, args, problem):
    with pytest.raises(ConfigError) as raised:
        registry.make("Given", cls, args)
    assert raised.value.problems == [f'initializing plugin "Given": {problem}']


def test_helpers_may_have_similar_names():
    assert registry.make("Helper", Helper, None).name == "Plain"


def test_a_missing_argument_is_an_error():
    with pytest.raises(ConfigError, match=r'plugin "Given": missing a required .*at_least'):
        registry.make("Given", Parametrized, None)


@pytest.mark.parametrize(
    "args",
    [
        pytest.param({"atLeast": 3, "weightFactor": 2}, id="as Kubernetes spells them"),
        pytest.param({"at_least": 3, "weight_factor": 2}, id="as Python spells them"),
    ],
)
def test_arguments_are_matched_by_name_in_either_spelling(args):
    assert registry.make("Parametrized", Parametrized, args).given == (3, 2)


def test_files_that_are_not_installed_have_no_plugins(monkeypatch):
    monkeypatch.setattr(registry, "entry_points", lambda group: [])
    with pytest.raises(ConfigError, match=r"not installed; run `pip install \.`"):
        Registry()
