"""What programs get: one JSON or YAML document, in the order in which it was put together."""

import json
from typing import Any

import click

from moorage import terminal

# Where `inputs` keeps the warnings about what was read, and workloads whose pods are missing.
WARNINGS = "moorage.warnings"
UNREAD = "moorage.unread"


def write(plain: dict[str, Any], output: str) -> None:
    """Print a document as `json` or `yaml`, with the warnings that standard error has."""
    meta = click.get_current_context().meta
    if unread := meta.get(UNREAD):
        plain = {**plain, "unreadWorkloads": [each.to_dict() for each in unread]}
    if warnings := meta.get(WARNINGS):
        plain = {**plain, "warnings": warnings}
    click.echo(as_yaml(plain) if output == "yaml" else as_json(plain), nl=False)


def as_json(plain: dict[str, Any]) -> str:
    """Plain data as JSON."""
    return terminal.visible(json.dumps(plain, indent=2, ensure_ascii=False)) + "\n"


def as_yaml(plain: dict[str, Any]) -> str:
    """Plain data as YAML."""
    from moorage.api import documents

    return documents.as_yaml(plain, width=100)
