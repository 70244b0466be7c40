"""YAML documents as plain data, with the scalars that Kubernetes knows."""

import re
from collections.abc import Iterator
from typing import Any

import yaml

from moorage.errors import ManifestError


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # either
    """YAML as Kubernetes reads it: times stay text, 1e3 is a number, 1:30 is not."""

    yaml_implicit_resolvers: dict[str, Any] = {}

    def construct_document(self, node: yaml.Node) -> Any:
        """As ever, but two objects that ran together are no object: one of them would be lost."""
        seen: set[str] = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            name = str(key.value)
            if name in seen and name in ("apiVersion", "kind"):
                problem = f"{name} stands there twice; is a line with --- missing above it?"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            seen.add(name)
        return super().construct_document(node)


for _tag, _pattern, _first in (
    ("bool", r"(?i:true|false|yes|no|on|off)", "yYnNtTfFoO"),
    ("int", r"[-+]?(?:0|[1-9][0-9_]*|0[0-7_]+|0o[0-7]+|0x[0-9a-fA-F_]+|0b[01_]+)", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+0123456789.",
    ),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}",
        re.compile(f"^(?:{_pattern})$"),
        [letter.replace("\0", "") for letter in _first],
    )


def documents(source: str, text: str) -> Iterator[Any]:
    """Each document in turn; None where there is nothing between two separators."""
    documents = yaml.load_all(text, _Loader)
    while True:
        try:
            document = next(documents)
        except StopIteration:
            return
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = "" if mark is None else f", line {mark.line + 1}"
            problem = getattr(error, "problem", None) or getattr(error, "reason", error)
            raise ManifestError(f"{source}{line}: is not YAML: {problem}") from None
        except (ValueError, LookupError, AttributeError, TypeError) as error:
            # PyYAML stumbles like this over values that do not fit an explicit tag: `!!int x`.
            raise ManifestError(f"{source}: a tag does not fit its value: {error}") from None
        yield document
