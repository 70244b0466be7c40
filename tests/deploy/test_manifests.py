"""The manifests fit the code, and each other: flags, ports, probes, roles, names, versions."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from moorage.api import config
from moorage.api.config import durations
from moorage.cli.run import run
from moorage.live import access, server, start
from moorage.live import run as live
from moorage.version import __version__

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
FOLDERS = sorted(path.parent for path in DEPLOY.glob("*/kustomization.yaml"))


def load(path):
    return list(yaml.safe_load_all(path.read_text()))


def objects(folder):
    """The objects that a kustomization lists itself."""
    (kustomization,) = load(folder / "kustomization.yaml")
    files = [name for name in kustomization["resources"] if name.endswith(".yaml")]
    return [obj for name in files for obj in load(folder / name)]


EVERYTHING = {(o["kind"], o["metadata"]["name"]): o for f in FOLDERS for o in objects(f)}
DEPLOYMENT = EVERYTHING["Deployment", "moorage"]
POD = DEPLOYMENT["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
SHADOW = EVERYTHING["Deployment", "moorage-shadow"]
SHADOW_POD = SHADOW["spec"]["template"]["spec"]
(SHADOW_CONTAINER,) = SHADOW_POD["containers"]
BOTH = pytest.mark.parametrize(
    "container",
    [pytest.param(CONTAINER, id="scheduler"), pytest.param(SHADOW_CONTAINER, id="shadow")],
)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_file_belongs_to_a_kustomization(folder):
    (kustomization,) = load(folder / "kustomization.yaml")
    generated = kustomization.get("configMapGenerator", [])
    used = {name for each in generated for name in each["files"]}
    used |= {name for name in kustomization["resources"] if name.endswith(".yaml")}
    assert {path.name for path in folder.iterdir()} == {*used, "kustomization.yaml"}
    others = [name for name in kustomization["resources"] if not name.endswith(".yaml")]
    assert all((folder / name / "kustomization.yaml").is_file() for name in others)


@pytest.mark.parametrize("folder", ["base", "as-default", "shadow"])
def test_the_configuration_loads(folder):
    loaded = config.load(DEPLOY / folder / "config.yaml")
    assert loaded.leader_election.leader_elect


@BOTH
def test_flags_are_those_of_the_command(container):
    known = {name for option in run.params for name in option.opts}
    command, *flags = container["args"]
    assert command == run.name
    assert [flag for flag in flags if flag.partition("=")[0] not in known] == []


@BOTH
def test_the_port_is_the_servers(container):
    (port,) = container["ports"]
    assert port["containerPort"] == server.SECURE_PORT
    assert f"--secure-port={server.SECURE_PORT}" in container["args"]


@pytest.mark.parametrize(
    ("probe", "path"),
    [
        pytest.param("startupProbe", "/livez", id="startup"),
        pytest.param("livenessProbe", "/livez", id="liveness"),
        pytest.param("readinessProbe", "/readyz", id="readiness"),
    ],
)
@BOTH
def test_probes_ask_for_paths_that_are_there(container, probe, path):
    asked = container[probe]["httpGet"]
    assert asked == {"path": path, "port": container["ports"][0]["name"], "scheme": "HTTPS"}
    assert path in server.HEALTH_PATHS


def test_two_replicas_that_are_not_root_and_can_write_nowhere():
    assert DEPLOYMENT["spec"]["replicas"] == 2
    assert POD["securityContext"]["runAsNonRoot"]
    own = CONTAINER["securityContext"]
    assert own["readOnlyRootFilesystem"]
    assert not own["allowPrivilegeEscalation"]
    assert own["capabilities"] == {"drop": ["ALL"]}


def test_it_may_write_what_is_outstanding_before_it_is_killed():
    (grace,) = (option.default for option in run.params if option.name == "grace_seconds")
    assert not any(flag.startswith("--grace-period") for flag in CONTAINER["args"])
    needed = durations.parse(grace) + start.END_SECONDS
    assert POD["terminationGracePeriodSeconds"] > needed
    assert durations.parse(grace) == live.GRACE_SECONDS


def test_the_shadow_takes_no_lease_and_has_the_same_rights_on_its_node():
    assert SHADOW["spec"]["replicas"] == 1
    assert "--shadow" in SHADOW_CONTAINER["args"]
    assert SHADOW_POD["securityContext"] == POD["securityContext"]
    assert SHADOW_CONTAINER["securityContext"] == CONTAINER["securityContext"]
    assert SHADOW_POD["serviceAccountName"] == "moorage-shadow"
    labels = SHADOW["spec"]["template"]["metadata"]["labels"]
    assert SHADOW["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_the_shadow_serves_metrics_without_a_review():
    flag = "--authorization-always-allow-paths="
    (paths,) = (arg.removeprefix(flag) for arg in SHADOW_CONTAINER["args"] if arg.startswith(flag))
    assert {*server.HEALTH_PATHS, "/metrics"} == set(paths.split(","))


def test_labels_meet_their_selectors():
    labels = DEPLOYMENT["spec"]["template"]["metadata"]["labels"]
    selectors = [
        DEPLOYMENT["spec"]["selector"],
        EVERYTHING["PodDisruptionBudget", "moorage"]["spec"]["selector"],
        EVERYTHING["PodMonitor", "moorage"]["spec"]["selector"],
    ]
    assert all(selector["matchLabels"].items() <= labels.items() for selector in selectors)


@pytest.mark.parametrize(
    ("pod", "folder"),
    [pytest.param(POD, "base", id="scheduler"), pytest.param(SHADOW_POD, "shadow", id="shadow")],
)
def test_the_configuration_is_mounted_where_the_flag_says(pod, folder):
    (container,) = pod["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert f"--config={mounts['config']}/config.yaml" in container["args"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    (kustomization,) = load(DEPLOY / folder / "kustomization.yaml")
    (generated,) = kustomization["configMapGenerator"]
    assert volumes["config"]["configMap"]["name"] == generated["name"]
    assert set(mounts) == set(volumes)


def test_bindings_join_roles_and_accounts_that_are_there():
    bindings = [o for (kind, _), o in EVERYTHING.items() if kind.endswith("RoleBinding")]
    assert len(bindings) == 5
    for binding in bindings:
        role = EVERYTHING[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
        if binding["kind"] == "RoleBinding":
            assert role["metadata"]["namespace"] == binding["metadata"]["namespace"]
        (subject,) = binding["subjects"]
        account = EVERYTHING["ServiceAccount", subject["name"]]
        assert account["metadata"]["namespace"] == subject["namespace"]
    assert POD["serviceAccountName"] == "moorage"


def test_as_default_it_may_have_the_lease_that_it_asks_for():
    configuration = config.load(DEPLOY / "as-default/config.yaml")
    role = EVERYTHING["Role", "moorage-kube-scheduler-lease"]
    election = configuration.leader_election
    assert role["metadata"]["namespace"] == election.resource_namespace
    assert role["rules"] == access.rules(access.lease(configuration))


def test_who_scrapes_may_read_what_it_scrapes():
    (endpoint,) = EVERYTHING["PodMonitor", "moorage"]["spec"]["podMetricsEndpoints"]
    (rule,) = EVERYTHING["ClusterRole", "moorage-metrics"]["rules"]
    assert endpoint["path"] in rule["nonResourceURLs"]
    assert set(rule["nonResourceURLs"]) <= set(server.PATHS)
    assert endpoint["port"] == CONTAINER["ports"][0]["name"]
    secret = endpoint["authorization"]["credentials"]["name"]
    assert EVERYTHING["Secret", secret]["type"] == "kubernetes.io/service-account-token"


@pytest.mark.parametrize("folder", ["base", "shadow"])
def test_the_image_is_of_this_version(folder):
    (kustomization,) = load(DEPLOY / folder / "kustomization.yaml")
    assert kustomization["images"] == [{"name": CONTAINER["image"], "newTag": __version__}]


# Dockerfile

DOCKERFILE = (ROOT / "Dockerfile").read_text()


def test_what_is_copied_is_there_and_not_ignored():
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    names = [name for line in copied for name in line.split()]
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line[0] == "!"}
    assert set(names) == kept
    assert all((ROOT / name).exists() for name in names)


def test_the_build_needs_nothing_else():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {project["readme"], *project["license-files"]} <= set(DOCKERFILE.split())
    # The image installs no extra.
    assert any(name.startswith("aiohttp") for name in project["dependencies"])
    assert "moorage" in project["scripts"]


def test_image_and_manifest_agree():
    assert f"EXPOSE {server.SECURE_PORT}" in DOCKERFILE
    user = POD["securityContext"]
    assert f"USER {user['runAsUser']}:{user['runAsGroup']}" in DOCKERFILE
    assert 'ENTRYPOINT ["moorage"]' in DOCKERFILE
