"""Reviews of access and tokens of service accounts: answered, never stored."""

import pytest

AUTHENTICATION = "/apis/authentication.k8s.io/v1"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


@pytest.mark.parametrize(
    "path",
    [
        "selfsubjectaccessreviews",
        "subjectaccessreviews",
        "namespaces/default/localsubjectaccessreviews",
    ],
)
def test_every_access_is_allowed(server, path):
    spec = {"resourceAttributes": {"verb": "get", "resource": "pods"}}
    answer = server.post(f"{AUTHORIZATION}/{path}", {"spec": spec})
    assert (answer.status, answer.json["status"]) == (201, {"allowed": True})
    assert answer.json["spec"] == spec


def test_rules_are_everything(server):
    spec = {"namespace": "default"}
    answer = server.post(f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": spec})
    assert answer.json["status"]["resourceRules"][0]["resources"] == ["*"]


def test_who_am_i(server):
    answer = server.post(f"{AUTHENTICATION}/selfsubjectreviews", {})
    assert "system:masters" in answer.json["status"]["userInfo"]["groups"]


def test_reviews_are_not_listed(server):
    assert server.get(f"{AUTHORIZATION}/subjectaccessreviews").status == 405


def test_token_is_accepted_until_it_expires(server):
    server.post(ACCOUNTS, {"metadata": {"name": "robot"}})
    request = {"spec": {"expirationSeconds": 600}}
    answer = server.post(f"{ACCOUNTS}/robot/token", request)
    assert (answer.status, answer.json["kind"]) == (201, "TokenRequest")
    token = answer.json["status"]["token"]
    review = server.post(f"{AUTHENTICATION}/tokenreviews", {"spec": {"token": token}}).json
    assert review["status"]["user"]["username"] == "system:serviceaccount:default:robot"
    server.now += 601
    review = server.post(f"{AUTHENTICATION}/tokenreviews", {"spec": {"token": token}}).json
    assert "authenticated" not in review["status"]


@pytest.mark.parametrize("token", ["", "a.b.c", "x"])
def test_other_tokens_are_not(server, token):
    review = server.post(f"{AUTHENTICATION}/tokenreviews", {"spec": {"token": token}}).json
    assert review["status"]["error"] == "invalid bearer token"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        pytest.param(f"{ACCOUNTS}/none/token", {}, 404, id="of no account"),
        pytest.param(
            f"{ACCOUNTS}/robot/token", {"spec": {"expirationSeconds": 5}}, 422, id="too short"
        ),
        pytest.param(f"{ACCOUNTS}/robot/token", [], 400, id="a list"),
    ],
)
def test_refused_tokens(server, path, body, status):
    server.post(ACCOUNTS, {"metadata": {"name": "robot"}})
    assert server.post(path, body).status == status
