"""Golden cases recorded from kube-scheduler: every status, score and pick equal, or it is a bug."""

from typing import Any

import pytest

from moorage import explain

from .cases import cases, comparable, errors, without_cel


@pytest.mark.parametrize(("case", "want"), cases())
def test_explain_agrees(case: dict[str, Any], want: dict[str, Any]) -> None:
    pod = f"{case['pod']['namespace']}/{case['pod']['name']}"
    got = explain(case["objects"], pod, config=case.get("config")).to_dict()
    nominated_only = want.get("nominatedOnly", False)
    assert comparable(got, nominated_only=nominated_only) == comparable(
        want, nominated_only=nominated_only
    )
    if "errorAnyOf" in want:
        assert without_cel(got["error"]) in errors(want)
    freed = want.get("deallocatedAnyOf", want.get("deletedAnyOf", [None]))
    assert got.get("deallocated") in freed
    if want.get("best"):
        assert got["picked"] in want["best"]
    assert (got.get("nominated") is None) == ("nominatedAnyOf" not in want)
    assert got.get("nominated") in [None, *want.get("nominatedAnyOf", [])]
