"""Logs: texts, levels and formats."""

import io
import json
import logging

import pytest

from moorage.live import logs


@pytest.fixture(autouse=True)
def _quiet_again():
    root = logging.getLogger(logs.ROOT)
    before = (list(root.handlers), root.level, root.propagate)
    yield
    root.handlers[:], root.propagate = before[0], before[2]
    root.setLevel(before[1])


def said(form, speak, verbosity=0):
    stream = io.StringIO()
    logs.configure(form, verbosity, stream)
    speak(logs.named("part"))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("speak", "letter", "rest"),
    [
        pytest.param(lambda log: log.info("bound", node="n1"), "I", 'bound node="n1"', id="info"),
        pytest.param(lambda log: log.warning("slow", s=1.5), "W", "slow s=1.5", id="warning"),
        pytest.param(lambda log: log.error("lost"), "E", "lost", id="error"),
        pytest.param(
            lambda log: log.info("a\nE1115 forged"), "I", "a E1115 forged", id="stays on one line"
        ),
        pytest.param(
            lambda log: log.info("\x1b[2J", pod="\x9b\x7f"),
            "I",
            '\\u001b[2J pod="\\u009b\\u007f"',
            id="control characters",
        ),
        pytest.param(
            lambda log: log.bound(kind="Pod").info("listed", n=1),
            "I",
            'listed kind="Pod" n=1',
            id="bound values",
        ),
        pytest.param(
            lambda log: log.info("odd", of=ValueError("x")), "I", 'odd of="x"', id="any value"
        ),
    ],
)
def test_text_format_is_klogs(speak, letter, rest):
    line = said(logs.TEXT, speak)
    assert line.startswith(letter)
    assert line.endswith(f"part] {rest}\n")
    assert line.count("\n") == 1


def test_json_has_the_keys_of_kubernetes_logs():
    line = json.loads(said(logs.JSON, lambda log: log.verbose(2, "seen", pod="a/b", msg="x"), 2))
    assert line.pop("ts") > 1e12
    assert line == {"v": 2, "caller": "part", "msg": "seen", "pod": "a/b", "msg_": "x"}


def test_json_has_the_level_of_warnings():
    assert json.loads(said(logs.JSON, lambda log: log.error("lost")))["level"] == "error"


@pytest.mark.parametrize(
    ("verbosity", "level", "logged"),
    [
        pytest.param(0, 1, False, id="off by default"),
        pytest.param(3, 3, True, id="at the verbosity"),
        pytest.param(3, 4, False, id="above the verbosity"),
        pytest.param(99, 10, True, id="beyond the maximum"),
    ],
)
def test_verbosity(verbosity, level, logged):
    assert bool(said(logs.TEXT, lambda log: log.verbose(level, "x"), verbosity)) == logged
