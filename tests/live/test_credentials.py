"""Tokens that are rotated, plugins that run no more often than necessary."""

import asyncio
import json
import stat

import pytest

from moorage.errors import KubeconfigError
from moorage.live import tls
from moorage.live.clock import Clock
from moorage.live.connection import Connection, ExecPlugin, Identity
from moorage.live.credentials import REREAD_SECONDS, RETRY_SECONDS, Credentials

VERSION = "client.authentication.k8s.io/v1"


class FakeClock(Clock):
    now = 1_000_000.0

    def wall(self):
        return self.now

    monotonic = wall


def credentials(identity, clock=None):
    connection = Connection(server="http://localhost", identity=identity)
    return Credentials(connection, clock or FakeClock())


def token(made):
    return asyncio.run(made.headers()).get("Authorization", "").removeprefix("Bearer ")


def plugin(tmp_path, script):
    path = tmp_path / "plugin"
    path.write_text(f"#!/bin/sh\necho run >> {tmp_path}/runs\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return Identity(exec_plugin=ExecPlugin(command=str(path), api_version=VERSION, source="config"))


def answer(**status):
    return f"echo '{json.dumps({'kind': 'ExecCredential', 'status': status})}'"


def runs(tmp_path):
    return (tmp_path / "runs").read_text().count("run")


def test_no_credentials():
    assert asyncio.run(credentials(Identity()).headers()) == {}


def test_name_and_password():
    headers = asyncio.run(credentials(Identity(username="me", password="pw")).headers())
    assert headers == {"Authorization": "Basic bWU6cHc="}


@pytest.fixture
def certificate_files(tmp_path):
    """Files of a certificate and its key, and a function that renews them."""
    files = tmp_path / "client.crt", tmp_path / "client.key"

    def renew(*which):
        for file, content in zip(files, tls.self_signed(), strict=True):
            if not which or file.suffix in which:
                file.write_bytes(content)

    renew()
    return *files, renew


def with_files(certificate, key, clock):
    identity = Identity(
        certificate=certificate.read_bytes(),
        key=key.read_bytes(),
        certificate_file=certificate,
        key_file=key,
    )
    connection = Connection(server="https://localhost", identity=identity)
    return Credentials(connection, clock)


def test_certificate_files_are_read_again(certificate_files):
    certificate, key, renew = certificate_files
    clock = FakeClock()
    made = with_files(certificate, key, clock)
    first = made.ssl
    asyncio.run(made.headers())
    renew()
    asyncio.run(made.headers())
    assert made.ssl is first  # Not before a minute has passed.
    clock.now += REREAD_SECONDS
    asyncio.run(made.headers())
    second = made.ssl
    assert second is not first
    renew()
    made.invalidate()  # After a 401.
    asyncio.run(made.headers())
    assert made.ssl not in (first, second)


def test_half_a_renewal_keeps_the_old_certificate(certificate_files):
    certificate, key, renew = certificate_files
    clock = FakeClock()
    made = with_files(certificate, key, clock)
    first = made.ssl
    renew(".crt")
    asyncio.run(made.headers())
    assert made.ssl is first
    clock.now += RETRY_SECONDS
    renew()
    asyncio.run(made.headers())
    assert made.ssl is not first


def test_unchanged_files_keep_the_context(certificate_files):
    certificate, key, _ = certificate_files
    clock = FakeClock()
    made = with_files(certificate, key, clock)
    first = made.ssl
    for _ in range(3):
        clock.now += REREAD_SECONDS
        asyncio.run(made.headers())
    assert made.ssl is first


def test_token_file_is_read_again(tmp_path):
    file, clock = tmp_path / "token", FakeClock()
    file.write_text("first\n")
    made = credentials(Identity(token_file=file), clock)
    assert token(made) == "first"
    file.write_text("second")
    assert token(made) == "first"
    clock.now += REREAD_SECONDS
    assert token(made) == "second"


def test_token_file_is_read_again_although_the_time_of_day_goes_back(tmp_path):
    file, clock = tmp_path / "token", FakeClock()
    clock.wall = lambda: 0.0
    file.write_text("first")
    made = credentials(Identity(token_file=file), clock)
    clock.wall = lambda: -7200.0
    assert token(made) == "first"
    file.write_text("second")
    clock.now += REREAD_SECONDS
    assert token(made) == "second"


def test_refused_token_is_read_at_once(tmp_path):
    file = tmp_path / "token"
    file.write_text("first")
    made = credentials(Identity(token_file=file))
    assert token(made) == "first"
    file.write_text("second")
    made.invalidate()
    assert token(made) == "second"


def test_fixed_token_that_is_refused_stays_refused():
    assert not credentials(Identity(token="secret")).can_change


def test_plugin_runs_again_shortly_before_its_credentials_expire(tmp_path):
    clock = FakeClock()
    identity = plugin(tmp_path, answer(token="t", expirationTimestamp="1970-01-12T13:48:40Z"))
    made = credentials(identity, clock)
    assert token(made) == "t"  # good for two minutes
    clock.now += 100
    assert token(made) == "t"
    assert runs(tmp_path) == 1
    clock.now += 12
    assert token(made) == "t"
    assert runs(tmp_path) == 2


def test_plugin_without_expiration_runs_once_and_after_a_401(tmp_path):
    made = credentials(plugin(tmp_path, answer(token="t")))
    assert [token(made), token(made)] == ["t", "t"]
    assert runs(tmp_path) == 1
    made.invalidate()
    assert token(made) == "t"
    assert runs(tmp_path) == 2


def test_requests_at_once_share_one_run(tmp_path):
    made = credentials(plugin(tmp_path, answer(token="t")))

    async def several():
        return await asyncio.gather(*(made.headers() for _ in range(5)))

    assert len(asyncio.run(several())) == 5
    assert runs(tmp_path) == 1


def test_plugin_gets_the_exec_info(tmp_path):
    made = credentials(plugin(tmp_path, f'echo "$KUBERNETES_EXEC_INFO" > {tmp_path}/info; false'))
    with pytest.raises(KubeconfigError):
        token(made)
    info = json.loads((tmp_path / "info").read_text())
    assert info == {"kind": "ExecCredential", "apiVersion": VERSION, "spec": {"interactive": False}}


@pytest.mark.parametrize(
    ("script", "message"),
    [
        pytest.param("echo oh >&2; exit 3", r"ended with 3: oh", id="it fails"),
        pytest.param("echo hello", "did not print an ExecCredential", id="not JSON"),
        pytest.param(answer(), "neither a token nor a client certificate", id="nothing in it"),
        pytest.param(
            answer(clientCertificateData="x"), "do not go together", id="certificate without key"
        ),
        pytest.param(
            answer(token="t", expirationTimestamp="soon"), "is not a time", id="no real time"
        ),
    ],
)
def test_plugins_that_fail(tmp_path, script, message):
    with pytest.raises(KubeconfigError, match=message) as caught:
        token(credentials(plugin(tmp_path, script)))
    assert str(caught.value).startswith("config, exec")


def test_plugin_that_is_not_installed():
    absent = ExecPlugin(
        command="no-such", api_version=VERSION, source="c", install_hint="install it"
    )
    with pytest.raises(KubeconfigError, match=r"cannot run 'no-such': no such file.*; install it"):
        token(credentials(Identity(exec_plugin=absent)))


def test_empty_token_file(tmp_path):
    (tmp_path / "token").write_text("")
    with pytest.raises(KubeconfigError, match="token is empty"):
        token(credentials(Identity(token_file=tmp_path / "token")))
