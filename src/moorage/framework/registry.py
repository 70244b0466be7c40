"""From a plugin's name to the plugin: entry points, `module:Class`, or `path/to/file.py:Class`.

The built-in plugins are entry points of the group `moorage.plugins`, too. A plugin is constructed
with its arguments by name, and rejected at start-up if it violates the contract: no name, no method
of any extension point, or a method with wrong parameters.
"""

import difflib
import importlib
import importlib.util
import inspect
import re
from collections.abc import Callable, Hashable
from functools import cache, partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, cast

from msgspec import Struct, structs

from moorage.api.config import python_files
from moorage.api.kinds import KINDS
from moorage.errors import ConfigError, MoorageError, PluginError, shown
from moorage.framework import invoke
from moorage.framework.points import METHODS, POINTS, Depends, Permission

GROUP = "moorage.plugins"
NOT_INSTALLED = (
    "no plugin is registered, because Moorage runs from files that are not installed; "
    "run `pip install .`, or `pip install --editable .`, in the checkout"
)


class Registry:
    """All plugins that can be named."""

    def __init__(self, plugins: dict[str, type[Any]] | None = None) -> None:
        self._classes = dict(plugins or {})
        self._entry_points = {entry.name: entry for entry in entry_points(group=GROUP)}
        if not self._entry_points:
            raise ConfigError([NOT_INSTALLED])

    def known(self) -> set[str]:
        """The names that are registered; paths are resolved when they are named."""
        return set(self._classes) | set(self._entry_points)

    def is_builtin(self, name: str) -> bool:
        """Whether a name is that of a plugin of this package, so that no other code runs."""
        entry = self._entry_points.get(name)
        return entry is not None and entry.value.startswith("moorage.plugins.")

    def find(self, name: str, base_dir: Path) -> type[Any] | None:
        """The class of that name, or None."""
        if name in self._classes:
            return self._classes[name]
        if name in self._entry_points:
            entry = self._entry_points[name]
            found: type[Any] = _run(name, f'plugin "{name}": {entry.value}: ', entry.load)
        elif ":" in name:
            found = _from_path(name, base_dir)
        elif name.endswith(".py"):
            raise ConfigError([f'plugin "{name}": {python_files.class_advice(name, base_dir)}'])
        else:
            return None
        self._classes[name] = found
        return found


def make(name: str, cls: type[Any], args: Any) -> Any:
    """A plugin with its arguments, checked."""
    given = _by_name(cls, args)
    prefix = f'initializing plugin "{name}": '
    _run(name, prefix, inspect.signature(cls).bind, **given)
    # ValueError is the usual way to reject an argument, so it is no bug to be located.
    plugin = _run(name, prefix, cls, deliberate=(MoorageError, ValueError), **given)
    problem = _run(name, prefix, _problem, plugin)
    if problem:
        raise ConfigError([prefix + problem])
    return plugin


def _run(
    name: str,
    prefix: str,
    call: Callable[..., Any],
    *args: Any,
    deliberate: tuple[type[BaseException], ...] = (BaseException,),
    **named: Any,
) -> Any:
    """Run code of a plugin at start-up; an exception is an error of the configuration."""
    try:
        return invoke.guard(name, prefix, partial(call, **named), *args, deliberate=deliberate)
    except PluginError as failure:
        raise ConfigError([str(failure)]) from failure


def _by_name(cls: type[Any], args: Any) -> dict[str, Any]:
    if args is None:
        return {}
    if isinstance(args, Struct):
        return structs.asdict(args)
    takes = inspect.signature(cls).parameters
    snake = {key: re.sub(r"(?<!^)(?=[A-Z])", "_", key).lower() for key in args}
    return {key if key in takes else snake[key]: value for key, value in dict(args).items()}


def _from_path(name: str, base_dir: Path) -> type[Any]:
    """A class from a file next to the configuration, or from an importable module."""
    where, _, attribute = name.rpartition(":")
    file = base_dir / (where if where.endswith(".py") else f"{where.replace('.', '/')}.py")
    if file.is_file():
        module = _run(name, f'plugin "{name}": {file}: ', python_files.load, file)
    elif where.endswith(".py"):
        raise ConfigError([f'plugin "{name}": {file}: no such file'])
    else:
        module = _run(name, f'plugin "{name}": {where}: ', importlib.import_module, where)
    found = getattr(module, attribute, None)
    if not isinstance(found, type):
        raise ConfigError([f'plugin "{name}": {where} has no class {attribute}'])
    return found


def _problem(plugin: Any) -> str:
    """How a plugin violates the contract; empty if it does not."""
    if not isinstance(getattr(plugin, "name", None), str) or not plugin.name:
        return "it needs a class attribute `name`"
    # Classes are hashable, but the type checker does not know it.
    cls = cast(Hashable, type(plugin))
    if (found := misspelt(cls)) is not None:
        return f"{found[0]} is no extension point, so it is never called; write {found[1]}"
    if not any(hasattr(plugin, method) for methods in POINTS.values() for method in methods):
        return "it has no method of any extension point"
    depends = getattr(plugin, "depends", Depends.ANYTHING)
    if not isinstance(depends, Depends):
        return f"depends has to be one of mp.Depends, is {shown(depends)}"
    if unknown := set(getattr(plugin, "reads_kinds", ())) - KINDS.keys():
        return f"reads_kinds: {', '.join(map(str, sorted(unknown)))}: no such kind is watched"
    for method in METHODS.values():
        if method.twin and hasattr(plugin, method.name) and not hasattr(plugin, method.twin):
            twin = f"its per-node twin `{method.twin}`, which explains and what-ifs use"
            return f"{method.name} needs {twin}"
    if (normalizer := getattr(plugin, "normalizer", None)) is not None:
        for part in ("summarize", "apply"):
            if not callable(getattr(normalizer, part, None)):
                return f"normalizer needs a method {part}"
    for each in getattr(plugin, "permissions", ()):
        if not isinstance(each, Permission):
            return f"permissions: has to be an mp.Permission, is {shown(each)}"
    return _signature_problem(cls)


@cache
def misspelt(cls: Any) -> tuple[str, str] | None:
    """A method that would never be called, because its name is a misspelt one of the contract.

    And the one that is meant; None if there is no such method.
    """
    own = [name for name in dir(cls) if not name.startswith("_") and name not in METHODS]
    points = {_letters(method): method for method in METHODS}
    is_alone = not any(hasattr(cls, method) for method in METHODS)
    # Beside methods of the contract it may be a helper whose name is similar by chance.
    cutoff = 0.6 if is_alone else CLOSE
    for name in own:
        if (same := points.get(_letters(name))) is not None:
            return name, same
        for close in difflib.get_close_matches(name.lower(), METHODS, n=1, cutoff=cutoff):
            if is_alone or (not hasattr(cls, close) and _takes_arguments_of(cls, name, close)):
                return name, close
    return None


# As of difflib: `scores` and `score` have 0.9, `normalize` and `normalize_score` 0.75.
CLOSE = 0.75


def _letters(name: str) -> str:
    return name.replace("_", "").lower().replace("normalise", "normalize")


def _takes_arguments_of(cls: Any, name: str, method: str) -> bool:
    """Whether an attribute is a method with as many parameters as one of the contract."""
    function = getattr(cls, name)
    if not inspect.isfunction(function):
        return False
    own = list(inspect.signature(function).parameters.values())[1:]
    required = [each for each in own if each.default is inspect.Parameter.empty]
    return len(required) == len(METHODS[method].arguments)


@cache
def _signature_problem(cls: Any) -> str:
    """The first method with wrong parameters; cached per class."""
    for method, known in METHODS.items():
        count = len(known.arguments)
        function = getattr(cls, method, None)
        if inspect.iscoroutinefunction(function):
            return f"{method} must not be async: nobody awaits it"
        if function is None:
            continue
        bound = isinstance(inspect.getattr_static(cls, method), staticmethod | classmethod)
        try:
            inspect.signature(function).bind(*[None] * (count if bound else count + 1))
        except TypeError:
            return f"{method} has to take {count} argument(s) besides self"
    return ""
