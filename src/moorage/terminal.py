"""What a terminal can show; imports nothing heavy, because errors use it."""

import os
import re
from typing import TextIO

# All but tab and line feed; DEL and C1; characters that change the direction of text or end a line.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """Control characters as JSON writes them (\\u001b): a terminal must not obey an object."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def can_draw(stream: TextIO) -> bool:
    """Whether a stream is a terminal that obeys control sequences: colours, lines drawn again.

    TERM says what it obeys. It is "dumb" in editors and in some CI; without it nothing is known,
    except on Windows, where it is seldom set.
    """
    unset = "" if os.name == "posix" else "windows"
    return stream.isatty() and os.environ.get("TERM", unset).lower() not in ("", "dumb", "unknown")
