"""Connection: a server, what we trust it by, and who we are to it. Plain data."""

from pathlib import Path

from msgspec import Struct


class ServerTrust(Struct, frozen=True, kw_only=True):
    """How a server proves that it is the one; without an authority the system's are asked."""

    authority: bytes = b""
    insecure: bool = False
    server_name: str = ""


class ExecPlugin(Struct, frozen=True, kw_only=True):
    """A command that hands out credentials; `at` says where it was configured."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}  # a Struct copies it for every instance
    install_hint: str = ""
    provide_cluster_info: bool = False
    at: str = ""


class Identity(Struct, frozen=True, kw_only=True):
    """How we prove who we are: any of these, or none."""

    token: str = ""
    token_file: Path | None = None
    certificate: bytes = b""
    key: bytes = b""
    username: str = ""
    password: str = ""
    exec_plugin: ExecPlugin | None = None


class Connection(Struct, frozen=True, kw_only=True):
    """All that is needed to speak to a cluster; `source` is where it was read."""

    server: str
    trust: ServerTrust = ServerTrust()
    identity: Identity = Identity()
    namespace: str = "default"
    proxy: str = ""
    source: str = ""
