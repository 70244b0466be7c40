"""From a plugin's name to the plugin: entry points, `module:Class`, or `path/to/file.py:Class`.

Ours are entry points of the group `moorage.plugins` like anybody's. A plugin is made by calling
its class with its arguments by name, and refused at start-up if it cannot work: no name, no
method of any extension point, or a method that takes other arguments than it will be called with.
"""

import ast
import difflib
import importlib
import importlib.util
import inspect
import re
import sys
import zlib
from collections.abc import Hashable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, cast

from msgspec import Struct, structs

from moorage.api.kinds import KINDS
from moorage.errors import PLUGIN_EXCEPTIONS, ConfigError
from moorage.framework import calls
from moorage.framework.points import METHODS, Depends

GROUP = "moorage.plugins"

# How many arguments each method is called with, without self.
ARGUMENTS = {
    "pre_enqueue": 1,
    "queue_sort": 2,
    "pre_filter": 2,
    "add_pod": 4,
    "remove_pod": 4,
    "filter": 3,
    "filter_all": 3,
    "post_filter": 3,
    "pre_score": 3,
    "score": 3,
    "score_all": 3,
    "normalize_score": 3,
    "reserve": 3,
    "unreserve": 3,
    "permit": 3,
    "pre_bind": 3,
    "pre_bind_next": 3,
    "pre_bind_pre_flight": 3,
    "bind": 3,
    "post_bind": 3,
    "events_to_register": 0,
    "explain_rejection": 1,
    "reads": 1,
}


class Registry:
    """All plugins that can be named."""

    def __init__(self, plugins: dict[str, type[Any]] | None = None) -> None:
        self._classes: dict[str, type[Any]] = dict(plugins or {})
        self._entry_points: dict[str, EntryPoint] = {
            entry.name: entry for entry in entry_points(group=GROUP)
        }

    def known(self) -> set[str]:
        """The names that are registered; paths are resolved when they are named."""
        return set(self._classes) | set(self._entry_points)

    def find(self, name: str, base_dir: Path) -> type[Any] | None:
        """The class of that name, or None."""
        if name in self._classes:
            return self._classes[name]
        if name in self._entry_points:
            found = _from_entry_point(name, self._entry_points[name])
        elif ":" in name:
            found = _from_path(name, base_dir)
        elif name.endswith(".py"):
            raise ConfigError([f'plugin "{name}": {_which_class(name, base_dir)}'])
        else:
            return None
        self._classes[name] = found
        return found  # type: ignore[no-any-return]


def make(name: str, cls: type[Any], args: Any) -> Any:
    """A plugin with its arguments, checked."""
    given = _by_name(cls, args)
    try:
        inspect.signature(cls).bind(**given)
        plugin = cls(**given)
    except PLUGIN_EXCEPTIONS as trouble:  # A constructor may raise anything; say whose it was.
        text = calls.describe(trouble)
        raise ConfigError([f'initializing plugin "{name}": {text}']) from trouble
    problem = _problem(plugin)
    if problem:
        raise ConfigError([f'initializing plugin "{name}": {problem}'])
    return plugin


def _by_name(cls: type[Any], args: Any) -> dict[str, Any]:
    if args is None:
        return {}
    if isinstance(args, Struct):
        return structs.asdict(args)
    takes = inspect.signature(cls).parameters
    return {key if key in takes else _snake(key): value for key, value in dict(args).items()}


def _snake(key: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", key).lower()


def _from_entry_point(name: str, entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except PLUGIN_EXCEPTIONS as trouble:  # Importing runs plugin code.
        problem = f'plugin "{name}": {entry.value}: {calls.describe(trouble)}'
        raise ConfigError([problem]) from trouble


def _from_path(name: str, base_dir: Path) -> type[Any]:
    """A class from a file beside the configuration, or from an importable module."""
    where, _, attribute = name.rpartition(":")
    file = base_dir / (where if where.endswith(".py") else f"{where.replace('.', '/')}.py")
    if where.endswith(".py") and not file.is_file():
        raise ConfigError([f'plugin "{name}": {file}: no such file'])
    try:
        module = _load_file(file) if file.is_file() else importlib.import_module(where)
    except PLUGIN_EXCEPTIONS as trouble:  # As above.
        text = calls.describe(trouble)
        problem = f'plugin "{name}": {file if file.is_file() else where}: {text}'
        raise ConfigError([problem]) from trouble
    found = getattr(module, attribute, None)
    if not isinstance(found, type):
        raise ConfigError([f'plugin "{name}": {where} has no class {attribute}'])
    return found


def _which_class(name: str, base_dir: Path) -> str:
    """What to write for a file whose class is not said."""
    try:
        tree = ast.parse((base_dir / name).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return f"write {name}:Class"  # What is wrong with the file is said once that is written.
    classes = [each.name for each in tree.body if isinstance(each, ast.ClassDef)]
    if not classes:
        return f"write {name}:Class; the file has no class yet"
    return f"write {' or '.join(f'{name}:{each}' for each in classes)}"


def _load_file(file: Path) -> Any:
    # Under a name among the modules, so that what it makes can be pickled and unpickled.
    path = file.resolve()
    name = _module_name(path)
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _module_name(path: Path) -> str:
    """The file's own name, unless a module has it already: nobody wants to replace `random`."""
    if path.stem in sys.modules:
        owner = getattr(sys.modules[path.stem], "__file__", None)
    else:
        spec = importlib.util.find_spec(path.stem)
        owner = str(path) if spec is None else spec.origin
    is_free = owner == str(path)
    return path.stem if is_free else f"{path.stem}_{zlib.crc32(str(path).encode()):08x}"


def _problem(plugin: Any) -> str:
    """What is wrong with a plugin, in words; empty if nothing is."""
    if not isinstance(getattr(plugin, "name", None), str) or not plugin.name:
        return "it needs a class attribute `name`"
    if misspelt := _misspelt(cast(Hashable, type(plugin))):
        return misspelt
    if not any(hasattr(plugin, method) for methods in METHODS.values() for method in methods):
        return "it has no method of any extension point"
    depends = getattr(plugin, "depends", Depends.ANYTHING)
    if not isinstance(depends, Depends):
        return f"depends has to be one of mp.Depends, is {depends!r}"
    if unknown := set(getattr(plugin, "reads_kinds", ())) - KINDS.keys():
        return f"reads_kinds: {', '.join(map(str, sorted(unknown)))}: no such kind is watched"
    for twin in ("filter", "score"):
        if hasattr(plugin, f"{twin}_all") and not hasattr(plugin, twin):
            return f"{twin}_all needs its per-node twin `{twin}`, which explains and what-ifs use"
    # Classes are hashable; the type checker takes a metaclass' word for it only.
    return _signature_problem(cast(Hashable, type(plugin)))


@cache
def _misspelt(cls: Any) -> str:
    """A method that looks like an extension point and is none: it would never be called."""
    own = [name for name in dir(cls) if not name.startswith("_")]
    points = {_letters(method): [method] for method in ARGUMENTS}
    meant = {name: points.get(_letters(name), []) for name in own}
    if not any(hasattr(cls, method) for method in ARGUMENTS):
        meant = {name: difflib.get_close_matches(name.lower(), ARGUMENTS, n=1) for name in own}
    for name, methods in meant.items():
        for method in methods:
            if not hasattr(cls, method):
                return f"{name} is no extension point, and nobody calls it; write {method}"
    return ""


def _letters(name: str) -> str:
    return name.replace("_", "").lower().replace("normalise", "normalize")


@cache
def _signature_problem(cls: Any) -> str:
    """The first method that does not take what it will be called with; looked up once a class."""
    for method, count in ARGUMENTS.items():
        function = getattr(cls, method, None)
        if inspect.iscoroutinefunction(function):
            return f"{method} must not be async: nobody awaits it"
        if function is not None and not _takes(
            function, inspect.getattr_static(cls, method), count
        ):
            return f"{method} has to take {count} argument(s) besides self"
    return ""


def _takes(function: Any, declared: Any, count: int) -> bool:
    bound = isinstance(declared, staticmethod | classmethod)
    try:
        inspect.signature(function).bind(*[None] * (count if bound else count + 1))
    except TypeError:
        return False
    return True
