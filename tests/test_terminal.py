"""Control characters are shown, not sent."""

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
