"""The file that tells kubectl and other clients where the playground is, and how to get in."""

import base64
import contextlib
import os
from pathlib import Path

import yaml

from moorage.errors import InputError

NAME = "moorage"


def text(server: str, *, token: str = "", authority: bytes = b"") -> str:
    """A kubeconfig for one server; `authority` is the certificate by which it can be known."""
    cluster: dict[str, str] = {"server": server}
    if authority:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    context = {"cluster": NAME, "user": NAME, "namespace": "default"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": NAME, "user": {"token": token} if token else {}}],
        "contexts": [{"name": NAME, "context": context}],
        "current-context": NAME,
    }
    return yaml.safe_dump(config, sort_keys=False)


def write(path: Path, content: str) -> None:
    """Write the file for nobody else to read: it may hold a token."""
    target = path.resolve()  # A link stays one.
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        if path.exists() and not path.is_file():  # A pipe or a device is not to be replaced.
            path.write_text(content, encoding="utf-8")
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
        beside.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
