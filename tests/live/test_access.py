"""The permissions of the scheduler, by its roles, and the requests that it sends."""

from pathlib import Path

import pytest
import yaml
from world import until

from moorage import plugin as mp
from moorage.api import config
from moorage.api.kinds import ADMISSION, KINDS
from moorage.live import access, kinds, start
from moorage.plugins.fair_share import FairShare

ROOT = Path(__file__).parents[2]
LEASE = {"resourceName": "mine", "resourceNamespace": "here"}


def allowed(roles):
    """(group, resource, verb) of all rules."""
    return {
        (group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule.get("apiGroups", ())
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.fixture(scope="module")
def deployed():
    return list(yaml.safe_load_all((ROOT / "deploy/base/roles.yaml").read_text()))


def test_all_requests_are_allowed(world, deployed):
    """A scheduler that binds, rejects, preempts, authorizes requests, and stops."""
    world.create_node("node-0", cpu="1")
    world.inject_faults()
    scheduler = world.run()
    world.create_pod("low", cpu="1")
    until(lambda: "low" in world.bound())
    high = {"metadata": {"name": "high"}, "value": 100}
    world.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", high)
    world.create_pod("high", cpu="1", priorityClassName="high")
    until(lambda: "low" not in world.pods() or "high" in world.bound())
    world.create_pod("never", cpu="99")
    until(lambda: world.reasons().get("never"))
    until(lambda: len(world.events()) >= 3)
    assert scheduler.stop() == 0
    seen = {tuple(each) for each in world.call("GET", "/seen", base=world.proxies[""])}
    assert ("", "pods/binding", "create") in seen
    assert ("", "pods", "delete") in seen
    assert seen - allowed(deployed) == set()


def test_the_roles_allow_nothing_else(deployed):
    configuration = config.load(ROOT / "deploy/base/config.yaml")
    made = access.roles(configuration, start.plugins(configuration), "moorage")
    assert deployed == made, "run `make roles`"


def test_the_shadow_may_only_read():
    configuration = config.load(ROOT / "deploy/shadow/config.yaml")
    made = access.read_only(start.plugins(configuration), "moorage-shadow")
    deployed = list(yaml.safe_load_all((ROOT / "deploy/shadow/roles.yaml").read_text()))
    assert deployed == made, "run `make roles`"
    assert {verb for _, _, verb in allowed(deployed)} == {"get", "list", "watch"}
    assert [role["kind"] for role in deployed] == ["ClusterRole"]


def test_kinds_that_no_plugin_reads_need_no_permission():
    few = {"multiPoint": {"disabled": [{"name": "PodTopologySpread"}]}}
    plain = {"apiVersion": config.API_VERSION, "kind": config.KIND, "profiles": [{"plugins": few}]}
    configuration = config.load(plain)
    made = access.roles(configuration, start.plugins(configuration), "x")
    assert ("", "pods", "list") in allowed(made)
    assert ("apps", "replicasets", "list") not in allowed(made)


class Declaring:
    """A user's plugin that states what it reads and writes."""

    name = "Declaring"
    reads_kinds = ("StorageClass",)
    permissions = (mp.Permission("example.com", "quotas/status", ("patch",)),)


class Silent:
    """A user's plugin that states nothing."""

    name = "Silent"


def test_a_plugin_that_declares_its_access_gets_just_that():
    without, made = (
        allowed([{"rules": access.rules(access.cluster(plugins))}])
        for plugins in ({}, {"Declaring": Declaring})
    )
    assert made - without == {
        ("storage.k8s.io", "storageclasses", "list"),
        ("storage.k8s.io", "storageclasses", "watch"),
        ("example.com", "quotas/status", "patch"),
    }


def test_queues_are_watched_for_fair_shares_only():
    found = {kind.name for kind, _ in kinds.watched({"FairShare": FairShare})}
    assert found == {"Node", "Pod", *FairShare.reads_kinds}
    assert found >= set(kinds.CUSTOM)
    assert not found - {"Node", "Pod"} & {kind.name for kind, _ in kinds.watched({})}


def test_a_plugin_that_declares_nothing_gets_every_kind():
    found = kinds.watched({"Declaring": Declaring, "Silent": Silent})
    readers = {kind.name: names for kind, names in found}
    unasked = {*kinds.GATED, *kinds.CUSTOM, *ADMISSION}
    assert readers.keys() == KINDS.keys() - unasked
    assert readers["StorageClass"] == ("Declaring", "Silent")
    assert readers["PriorityClass"] == ("Silent",)


def test_pod_groups_need_permissions_only_with_their_gate():
    plain = {"apiVersion": config.API_VERSION, "kind": config.KIND}
    off = config.load(plain)
    on = config.load({**plain, "featureGates": {"GenericWorkload": True}})
    without, made = (allowed(access.roles(each, start.plugins(each), "x")) for each in (off, on))
    assert made - without == {
        ("scheduling.k8s.io", "podgroups", "list"),
        ("scheduling.k8s.io", "podgroups", "watch"),
        ("scheduling.k8s.io", "podgroups/status", "patch"),
    }


@pytest.mark.parametrize(
    ("election", "names"),
    [
        pytest.param(LEASE, [None, ["mine"]], id="its own lease only"),
        pytest.param({"leaderElect": False}, None, id="no election, no role for it"),
    ],
)
def test_the_lease(election, names):
    plain = {"apiVersion": config.API_VERSION, "kind": config.KIND, "leaderElection": election}
    configuration = config.load(plain)
    _, *roles = access.roles(configuration, {}, "x")
    if names is None:
        assert roles == []
    else:
        assert roles[0]["metadata"] == {"name": "x-leader", "namespace": "here"}
        assert [rule.get("resourceNames") for rule in roles[0]["rules"]] == names
