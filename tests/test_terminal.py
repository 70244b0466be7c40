"""Control characters are shown, not sent; only a terminal that draws gets those that draw."""

import io

import pytest

from moorage import terminal


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("plain \t text\n", "plain \t text\n", id="unchanged"),
        pytest.param("\x1b[2Jgone", "\\u001b[2Jgone", id="escape"),
        pytest.param("a\rb\x07\x00", "a\\u000db\\u0007\\u0000", id="C0"),
        pytest.param("\x7f\x9b31m", "\\u007f\\u009b31m", id="DEL and C1"),
        pytest.param("\u202eevil\u2028", "\\u202eevil\\u2028", id="direction and line"),
        pytest.param("é 日本 🚢", "é 日本 🚢", id="letters"),
    ],
)
def test_visible(text, said):
    assert terminal.visible(text) == said


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "term", "draws"),
    [
        pytest.param(Terminal, "xterm-256color", True, id="a terminal"),
        pytest.param(Terminal, "dumb", False, id="dumb"),
        pytest.param(Terminal, "unknown", False, id="unknown"),
        pytest.param(Terminal, "", False, id="empty"),
        pytest.param(Terminal, None, False, id="unset"),
        pytest.param(io.StringIO, "xterm-256color", False, id="a file"),
    ],
)
def test_can_draw(monkeypatch, stream, term, draws):
    monkeypatch.delenv("TERM", raising=False)
    if term is not None:
        monkeypatch.setenv("TERM", term)
    assert terminal.can_draw(stream()) is draws
