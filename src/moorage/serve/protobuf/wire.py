"""The wire format of protobuf: tags, varints and lengths."""

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class WireError(Exception):
    """The bytes are truncated or not protobuf."""


def varint(number: int) -> bytes:
    """An encoded number; a negative one has 64 bits."""
    number &= 2**64 - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


# Most numbers and lengths are small.
SMALL = [varint(number) for number in range(4096)]


def size(length: int) -> bytes:
    """An encoded length."""
    return SMALL[length] if length < 4096 else varint(length)


def tag(number: int, wire: int) -> int:
    """What precedes the value of a field."""
    return number << 3 | wire


def field(number: int, value: bytes) -> bytes:
    """An encoded field of bytes, text or a message."""
    return varint(tag(number, BYTES)) + size(len(value)) + value


def read_varint(body: bytes, at: int) -> tuple[int, int]:
    """An unsigned number and the position after it; raises IndexError or WireError."""
    value = shift = 0
    while True:
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), at
        shift += 7
        if shift > 63:
            raise WireError


def signed(number: int) -> int:
    """An unsigned number of 64 bits as a signed one."""
    return number - 2**64 if number >= 2**63 else number


def fields(body: bytes) -> list[tuple[int, int | bytes]]:
    """The fields of a small message by number; raises IndexError or WireError."""
    found: list[tuple[int, int | bytes]] = []
    at = 0
    while at < len(body):
        key, at = read_varint(body, at)
        value: int | bytes
        match key & 7:
            case 0:
                value, at = read_varint(body, at)
            case 2:
                length, at = read_varint(body, at)
                value, at = body[at : at + length], at + length
            case 1 | 5 as wire:
                width = 8 if wire == FIXED64 else 4
                value, at = body[at : at + width], at + width
            case _:
                raise WireError
        if at > len(body):
            raise WireError
        found.append((key >> 3, value))
    return found


def numbers(body: bytes) -> dict[int, int]:
    """The number fields of a small message."""
    return {number: value for number, value in fields(body) if isinstance(value, int)}


def texts(body: bytes) -> dict[int, bytes]:
    """The fields of bytes of a small message; of several with one number the last."""
    return {number: value for number, value in fields(body) if isinstance(value, bytes)}
