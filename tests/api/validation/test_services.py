"""Secrets: content that only an attacker writes."""

import base64

from moorage.api.validation import services


def test_a_very_deep_docker_configuration_is_invalid():
    content = base64.b64encode(b"[" * 100_000).decode()
    secret = {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": content}}
    (problem,) = services.validate_secret(secret)
    assert "exceeded max depth" in str(problem)
