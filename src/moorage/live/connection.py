"""Connection: the address of a cluster, how to verify it, and our credentials. Plain data."""

from pathlib import Path

from msgspec import Struct


class ServerTrust(Struct, frozen=True, kw_only=True):
    """How to verify a server; without an authority the system's are trusted."""

    authority: bytes = b""
    authority_file: Path | None = None  # Read again while the client runs.
    insecure: bool = False
    server_name: str = ""


class ExecPlugin(Struct, frozen=True, kw_only=True):
    """A command that prints credentials; `source` says where it is configured."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}  # A Struct copies it for every instance.
    install_hint: str = ""
    provide_cluster_info: bool = False
    source: str = ""


class Identity(Struct, frozen=True, kw_only=True):
    """The credentials of a client: any of these, or none."""

    token: str = ""
    token_file: Path | None = None
    certificate: bytes = b""
    key: bytes = b""
    # Files of certificate and key, which are read again while the client runs.
    certificate_file: Path | None = None
    key_file: Path | None = None
    username: str = ""
    password: str = ""
    exec_plugin: ExecPlugin | None = None


class Connection(Struct, frozen=True, kw_only=True):
    """All that is needed to connect to a cluster; `source` is the file that it was read from."""

    server: str
    trust: ServerTrust = ServerTrust()
    identity: Identity = Identity()
    namespace: str = "default"
    proxy: str = ""
    source: str = ""
