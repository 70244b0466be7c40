"""Codes, statuses, and a status for every row at once."""

import numpy as np
import pytest

from moorage.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    Verdicts,
    error,
    only_nodes,
    pending,
    unresolvable,
    unschedulable,
    wait,
)

FULL = unschedulable("full")


def test_codes_have_kubernetes_numbers_and_names():
    assert [(int(code), code.label) for code in Code] == [
        (0, "Success"),
        (1, "Error"),
        (2, "Unschedulable"),
        (3, "UnschedulableAndUnresolvable"),
        (4, "Wait"),
        (5, "Skip"),
        (6, "Pending"),
    ]


@pytest.mark.parametrize(
    ("status", "success", "rejected"),
    [
        pytest.param(SUCCESS, True, False, id="success"),
        pytest.param(SKIP, False, False, id="skip"),
        pytest.param(wait(3), False, False, id="wait"),
        pytest.param(error("broken"), False, False, id="error"),
        pytest.param(unschedulable("no"), False, True, id="unschedulable"),
        pytest.param(unresolvable("no"), False, True, id="unresolvable"),
        pytest.param(pending("soon"), False, True, id="pending"),
    ],
)
def test_which_codes_are_rejections(status, success, rejected):
    assert (status.is_success, status.is_rejected) == (success, rejected)
    assert status.is_skip == (status is SKIP)


def test_reasons_are_joined_to_a_message():
    assert unschedulable("one", "two").message == "one, two"
    assert SUCCESS.message == ""


def test_by_returns_a_copy_with_the_plugin_name():
    signed = FULL.by("Fit")
    assert (signed.plugin, signed.code, signed.reasons) == ("Fit", FULL.code, FULL.reasons)
    assert FULL.plugin == ""
    assert signed.by("Fit") is signed
    assert wait(3).by("Permit").wait_seconds == 3


def test_equal_statuses_have_equal_hashes():
    assert unschedulable("full") == FULL
    assert len({unschedulable("full"), FULL, FULL.by("Fit")}) == 2


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["a", "b", "a"], id="a list"),
        pytest.param({"a", "b"}, id="a set"),
        pytest.param(frozenset("ab"), id="a frozen set"),
    ],
)
def test_only_nodes(names):
    assert only_nodes(names).names == {"a", "b"}


def test_verdicts_of_one_reason():
    verdicts = Verdicts(fits=np.array([True, False]), otherwise=FULL)
    assert verdicts.codes.tolist() == [0, 1]
    assert verdicts.status_of(1) is FULL


def test_verdicts_of_several_reasons():
    said = {1: FULL, 2: pending("soon")}
    verdicts = Verdicts(codes=np.array([0, 2, 1]), status_of=said.__getitem__)
    assert [verdicts.status_of(code) for code in verdicts.codes[1:]] == [said[2], FULL]


@pytest.mark.parametrize("fits", [[1, 0], [True, False]], ids=["numbers", "booleans"])
def test_a_mask_may_hold_numbers_or_booleans(fits):
    assert Verdicts(fits=np.array(fits), otherwise=FULL).codes.tolist() == [0, 1]


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.bool_, np.int64])
def test_codes_of_any_integer_type_are_accepted(dtype):
    verdicts = Verdicts(codes=np.array([0, 1], dtype=dtype), status_of=lambda code: FULL)
    assert verdicts.codes.dtype == np.int64


def test_verdicts_without_an_entry_for_each_row():
    verdicts = Verdicts(all_fit=3)
    assert (len(verdicts), verdicts.rejects) == (3, False)
    assert verdicts.codes.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"fits": np.array([True])}, id="a mask without a reason"),
        pytest.param({"codes": np.array([0])}, id="codes without reasons"),
    ],
)
def test_verdicts_need_a_mask_or_codes_with_their_reasons(given):
    with pytest.raises(TypeError, match="takes fits and otherwise, codes and status_of, or"):
        Verdicts(**given)
