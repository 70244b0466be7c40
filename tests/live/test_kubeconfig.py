"""Reading a connection from a kubeconfig, and every error in one."""

import base64
import json
import os

import pytest

from moorage.errors import KubeconfigError
from moorage.live import kubeconfig

PEM = b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
DATA = base64.b64encode(PEM).decode()
EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "get-token"}


def write(path, *, cluster=None, user=None, context=None, current="here", **more):
    entries = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current,
        "clusters": [{"name": "prod", "cluster": cluster or {"server": "https://10.0.0.1:6443/"}}],
        "users": [{"name": "me", "user": user or {}}],
        "contexts": [{"name": "here", "context": context or {"cluster": "prod", "user": "me"}}],
        **more,
    }
    path.write_text(json.dumps(entries))
    return path


def test_context(tmp_path):
    (tmp_path / "ca.crt").write_bytes(PEM)
    path = write(
        tmp_path / "config",
        cluster={
            "server": "https://10.0.0.1:6443/",
            "certificate-authority": "ca.crt",
            "tls-server-name": "kubernetes",
            "proxy-url": "http://proxy:3128",
        },
        user={"client-certificate-data": DATA, "client-key-data": DATA, "token": "secret"},
        context={"cluster": "prod", "user": "me", "namespace": "shop"},
    )
    found = kubeconfig.load([path])
    assert found.server == "https://10.0.0.1:6443"
    assert found.trust.authority == PEM
    assert found.trust.server_name == "kubernetes"
    assert found.proxy == "http://proxy:3128"
    assert found.namespace == "shop"
    assert (found.identity.certificate, found.identity.key) == (PEM, PEM)
    assert found.identity.token == "secret"


def test_insecure(tmp_path):
    cluster = {"server": "https://localhost", "insecure-skip-tls-verify": True}
    assert kubeconfig.load([write(tmp_path / "config", cluster=cluster)]).trust.insecure


def test_exec_plugin(tmp_path):
    env = [{"name": "REGION", "value": "north"}]
    plugin = {**EXEC, "command": "./get-token", "args": ["--now"], "env": env}
    found = kubeconfig.load([write(tmp_path / "config", user={"exec": plugin})])
    assert found.identity.exec_plugin.command == str(tmp_path / "get-token")
    assert found.identity.exec_plugin.args == ("--now",)
    assert found.identity.exec_plugin.env == {"REGION": "north"}


def test_another_context(tmp_path):
    contexts = [
        {"name": "here", "context": {"cluster": "gone", "user": "me"}},
        {"name": "there", "context": {"cluster": "prod", "user": "me"}},
    ]
    path = write(tmp_path / "config", contexts=contexts)
    assert kubeconfig.load([path], context="there").server == "https://10.0.0.1:6443"


def test_several_files_are_merged(tmp_path):
    first = write(tmp_path / "first", clusters=[], current="")
    second = write(tmp_path / "second", contexts=[], users=[])
    environment = {"KUBECONFIG": f"{first}{os.pathsep}{second}"}
    assert kubeconfig.find(environment=environment).server == "https://10.0.0.1:6443"


def test_from_within_a_pod(tmp_path):
    (tmp_path / "token").write_text("secret")
    (tmp_path / "ca.crt").write_bytes(PEM)
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    found = kubeconfig.find(environment=environment, service_account=tmp_path)
    assert found.server == "https://[fd00::1]:6443"
    assert found.identity.token_file == tmp_path / "token"


def test_no_configuration(tmp_path):
    with pytest.raises(KubeconfigError, match="no kubeconfig found"):
        kubeconfig.find(environment={"HOME": str(tmp_path)}, service_account=tmp_path)


FAULTS = [
    pytest.param(
        {"current": ""}, "not set; name a context with --context, as here$", id="no current context"
    ),
    pytest.param({"kind": "Node"}, 'is not a kubeconfig: its kind is "Node"', id="another kind"),
    pytest.param({"current": "far"}, "there is no context 'far'", id="unknown context"),
    pytest.param({"contexts": {"a": 1}}, "contexts: must be a list", id="contexts as a mapping"),
    pytest.param({"context": {"user": "me"}}, "cluster is missing", id="context without cluster"),
    pytest.param(
        {"context": {"cluster": "lost"}}, "there is no cluster 'lost'", id="unknown cluster"
    ),
    pytest.param(
        {"context": {"cluster": "prod", "user": "you"}}, "there is no user 'you'", id="unknown user"
    ),
    pytest.param({"cluster": {"server": ""}}, "server is missing", id="no server"),
    pytest.param(
        {"cluster": {"server": "10.0.0.1:6443"}}, "must be an http or https URL", id="no scheme"
    ),
    pytest.param(
        {"cluster": {"server": "https://a", "proxy-url": "socks5://b"}},
        "proxy-url: must be an http URL",
        id="proxy that is not supported",
    ),
    pytest.param(
        {"cluster": {"server": 5}}, "'prod', server: must be text, is 5", id="server as a number"
    ),
    pytest.param(
        {"cluster": {"server": "https://a", "certificate-authority": "ca.crt"}},
        "certificate-authority: .*ca.crt: no such file or directory",
        id="authority without a file",
    ),
    pytest.param(
        {"cluster": {"server": "https://a", "certificate-authority-data": "!!"}},
        "certificate-authority-data: is not base64",
        id="authority that is not base64",
    ),
    pytest.param(
        {"cluster": {"server": "https://a", "certificate-authority-data": "aGVsbG8="}},
        "certificate-authority-data: holds no PEM",
        id="authority that is not PEM",
    ),
    pytest.param({"user": {"client-certificate-data": DATA}}, "client-key is missing", id="no key"),
    pytest.param(
        {"user": {"client-key-data": DATA}}, "client-certificate is missing", id="no certificate"
    ),
    pytest.param(
        {"user": {"tokenFile": "nowhere"}}, "tokenFile: .*nowhere: no such file", id="no token file"
    ),
    pytest.param(
        {"user": {"exec": {"command": "x"}}}, "exec.apiVersion: must be", id="exec of no version"
    ),
    pytest.param(
        {"user": {"exec": {**EXEC, "command": ""}}}, "command is missing", id="exec of nothing"
    ),
    pytest.param(
        {"user": {"auth-provider": {"name": "gcp"}}}, "use an exec plugin", id="auth provider"
    ),
]


@pytest.mark.parametrize(("given", "message"), FAULTS)
def test_error_messages_are_one_line(tmp_path, given, message):
    path = write(tmp_path / "config", **given)
    with pytest.raises(KubeconfigError, match=message) as caught:
        kubeconfig.load([path])
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("{", "yaml: line", id="not YAML"),
        pytest.param("- a\n", "expected a mapping", id="a list"),
        pytest.param("", "expected a mapping", id="empty"),
        pytest.param('{"a":' * 100_000, "nested too deeply", id="very deep JSON"),
        pytest.param("[" * 100_000, "nested more than 100 levels", id="very deep YAML"),
    ],
)
def test_invalid_files(tmp_path, text, message):
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(KubeconfigError, match=message):
        kubeconfig.load([path])


def test_file_that_is_not_there(tmp_path):
    with pytest.raises(KubeconfigError, match="nowhere: no such file or directory"):
        kubeconfig.find(str(tmp_path / "nowhere"))
