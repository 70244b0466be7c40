"""Python files that a configuration names, as `path/to/file.py:Class`."""

import ast
import importlib.util
import sys
import zlib
from pathlib import Path
from typing import Any


def class_advice(name: str, base_dir: Path) -> str:
    """What to write instead of a file name without a class."""
    try:
        tree = ast.parse((base_dir / name).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return f"write {name}:Class"  # Loading it then reports what is wrong with the file.
    classes = [each.name for each in tree.body if isinstance(each, ast.ClassDef)]
    if not classes:
        return f"write {name}:Class; the file has no class yet"
    return f"write {' or '.join(f'{name}:{each}' for each in classes)}"


def load(file: Path) -> Any:
    """A file as a module."""
    # Registered in sys.modules, so that its objects can be pickled.
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
    """The file's own name, unless another module has it: a file must not replace `random`."""
    if path.stem in sys.modules:
        owner = getattr(sys.modules[path.stem], "__file__", None)
    else:
        spec = importlib.util.find_spec(path.stem)
        owner = str(path) if spec is None else spec.origin
    is_free = owner == str(path)
    return path.stem if is_free else f"{path.stem}_{zlib.crc32(str(path).encode()):08x}"
