"""Text from objects for terminals and logs; imports nothing heavy, because errors use it."""

import re

# All but tab and line feed; DEL and C1; characters that change the direction of text or end a line.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """Control characters as JSON writes them (\\u001b): a terminal must not obey an object."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
