"""Credentials: the token and the client certificate of requests, cached while they are valid.

token              used as it is
token file         read again every minute and after a 401, because tokens are rotated
certificate files  likewise: client certificate, key and authority
exec plugin        run at the start, when its credentials expire, and after a 401
"""

import asyncio
import base64
import json
import math
import os
import ssl
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from moorage.errors import KubeconfigError
from moorage.live import clock as clocks
from moorage.live import logs, tls
from moorage.live.clock import Clock
from moorage.live.connection import Connection, ExecPlugin

REREAD_SECONDS = 60.0
RETRY_SECONDS = 5.0
EXEC_SECONDS = 60.0
# Credentials are replaced this long before they expire, so that no request has expired ones.
MARGIN_SECONDS = 10.0


class _ExecStatus(Struct, frozen=True, rename="camel"):
    token: str = ""
    expiration_timestamp: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""


class _ExecCredential(Struct, frozen=True, rename="camel"):
    kind: str = ""
    status: _ExecStatus | None = None


class Credentials:
    """The authorization header and the SSL context for each request."""

    def __init__(self, connection: Connection, clock: Clock = clocks.SYSTEM) -> None:
        self._connection = connection
        self._clock = clock
        identity = connection.identity
        self._is_secure = connection.server.startswith("https:")
        self._log = logs.named("credentials")
        # Certificate, key and authority of the context.
        self._material = (identity.certificate, identity.key, connection.trust.authority)
        self.ssl: ssl.SSLContext | None = None
        if self._is_secure:
            self.ssl = self._context(identity.certificate, identity.key)
        self._headers = _authorization(identity.token, identity.username, identity.password)
        # Files are read again after some seconds, whatever happens to the time of day. An exec
        # plugin states until when its credentials are valid.
        self._reread_at = -math.inf
        self._expires_at = math.inf
        self._running: asyncio.Task[None] | None = None

    def cached_headers(self) -> dict[str, str] | None:
        """The headers for a request that is sent now; None if they have to be refreshed."""
        return self._headers if self._is_valid() else None

    async def headers(self) -> dict[str, str]:
        """The headers for a request that is sent now, refreshed if necessary."""
        if not self._is_valid():
            await self._refresh()
        return self._headers

    def _is_valid(self) -> bool:
        clock = self._clock
        return clock.monotonic() < self._reread_at and clock.wall() < self._expires_at

    def invalidate(self) -> None:
        """Refresh before the next request, after a 401."""
        self._reread_at = -math.inf

    @property
    def can_change(self) -> bool:
        """Whether a refresh can help."""
        identity = self._connection.identity
        has_token_file = identity.token_file is not None
        return identity.exec_plugin is not None or has_token_file or self._has_files

    async def _refresh(self) -> None:
        identity = self._connection.identity
        if identity.exec_plugin is not None:
            if self._running is None:  # Concurrent requests wait for the same run.
                self._running = asyncio.ensure_future(self._run_plugin(identity.exec_plugin))
                self._running.add_done_callback(self._finished)
            await asyncio.shield(self._running)
            return
        if identity.token_file is not None and not identity.token:
            token = _authorization(_token(identity.token_file))
            if token != self._headers:  # Encoded headers are cached by identity.
                self._headers = token
        has_files = identity.token_file is not None or self._has_files
        self._reread_at = self._clock.monotonic() + REREAD_SECONDS if has_files else math.inf
        if self._has_files:
            self._read_certificates()

    @property
    def _has_files(self) -> bool:
        identity, trust = self._connection.identity, self._connection.trust
        files = (identity.certificate_file, identity.key_file, trust.authority_file)
        return self._is_secure and any(file is not None for file in files)

    def _read_certificates(self) -> None:
        """Use the certificates that are in the files now; others are kept if these are invalid."""
        identity, trust = self._connection.identity, self._connection.trust
        files = (identity.certificate_file, identity.key_file, trust.authority_file)
        try:
            found = tuple(
                old if file is None else file.read_bytes()
                for file, old in zip(files, self._material, strict=True)
            )
            if found == self._material:
                return
            certificate, key, authority = found
            trust = structs.replace(trust, authority=authority)
            self.ssl = tls.client_context(trust, certificate, key, self._connection.source)
        except (OSError, KubeconfigError) as error:
            # Perhaps only one of two files was replaced so far.
            self._log.warning("certificates cannot be read again; the old ones stay", why=error)
            self._reread_at = self._clock.monotonic() + RETRY_SECONDS
            return
        self._material = (certificate, key, authority)
        self._log.info("certificates read again")

    def _finished(self, _: asyncio.Task[None]) -> None:
        self._running = None

    async def _run_plugin(self, plugin: ExecPlugin) -> None:
        status = await _run(plugin, self._connection)
        if status.client_certificate_data and self._is_secure:
            certificate = status.client_certificate_data.encode()
            self.ssl = self._context(certificate, status.client_key_data.encode())
        self._headers = _authorization(status.token)
        self._expires_at = _expires_at(status.expiration_timestamp, plugin) - MARGIN_SECONDS
        self._reread_at = math.inf

    def _context(self, certificate: bytes, key: bytes) -> ssl.SSLContext:
        return tls.client_context(self._connection.trust, certificate, key, self._connection.source)


def _authorization(token: str, username: str = "", password: str = "") -> dict[str, str]:
    if token:
        return {"Authorization": f"Bearer {token}"}
    if username:
        pair = base64.b64encode(f"{username}:{password}".encode()).decode()
        return {"Authorization": f"Basic {pair}"}
    return {}


def _token(path: Path) -> str:
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not text"
        raise KubeconfigError(f"{path}: the token cannot be read: {reason.lower()}") from None
    if not token:
        raise KubeconfigError(f"{path}: the token is empty")
    return token


async def _run(plugin: ExecPlugin, connection: Connection) -> _ExecStatus:
    at = f"{plugin.source}, exec"
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            env={**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": _info(plugin, connection)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        hint = f"; {plugin.install_hint}" if plugin.install_hint else ""
        reason = (error.strerror or str(error)).lower()
        raise KubeconfigError(f"{at}: cannot run {plugin.command!r}: {reason}{hint}") from None
    try:
        async with asyncio.timeout(EXEC_SECONDS):
            out, errors = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise KubeconfigError(
            f"{at}: {plugin.command!r} did not answer within {EXEC_SECONDS:.0f} s"
        ) from None
    if process.returncode:
        last = errors.decode(errors="replace").strip().splitlines()[-1:]
        why = f": {last[0]}" if last else ""
        raise KubeconfigError(f"{at}: {plugin.command!r} ended with {process.returncode}{why}")
    return _decode(out, plugin)


def _decode(out: bytes, plugin: ExecPlugin) -> _ExecStatus:
    at = f"{plugin.source}, exec: {plugin.command!r}"
    try:
        credential = msgspec.json.decode(out, type=_ExecCredential)
    except msgspec.MsgspecError:
        raise KubeconfigError(f"{at} did not print an ExecCredential as JSON") from None
    status = credential.status or _ExecStatus()
    if not status.token and not status.client_certificate_data:
        raise KubeconfigError(f"{at} gave neither a token nor a client certificate")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise KubeconfigError(f"{at} gave a certificate and a key that do not go together")
    return status


def _info(plugin: ExecPlugin, connection: Connection) -> str:
    spec: dict[str, Any] = {"interactive": False}
    if plugin.provide_cluster_info:
        authority = base64.b64encode(connection.trust.authority).decode()
        spec["cluster"] = {
            "server": connection.server,
            "certificate-authority-data": authority,
            "insecure-skip-tls-verify": connection.trust.insecure,
            "tls-server-name": connection.trust.server_name,
            "proxy-url": connection.proxy,
        }
    return json.dumps({"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec})


def _expires_at(text: str, plugin: ExecPlugin) -> float:
    """When a plugin's credentials expire; without a time, when the server refuses them."""
    if not text:
        return math.inf
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise KubeconfigError(
            f"{plugin.source}, exec: {plugin.command!r} gave the expirationTimestamp {text!r}, "
            "which is not a time"
        ) from None
