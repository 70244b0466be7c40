"""IP addresses, CIDR blocks and URLs."""

import ipaddress
import re
from dataclasses import dataclass
from typing import Any

from moorage.cel.types import CLASSES, overload, traversal
from moorage.cel.values import CelRuntimeError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class IPValue:
    """An IP address."""

    address: Address

    @classmethod
    def parse(cls, text: str) -> "IPValue":
        """Read an address; raises CelRuntimeError."""
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            raise CelRuntimeError(f"IP Address {text[:60]!r} parse error") from None
        if isinstance(address, ipaddress.IPv6Address):
            if address.scope_id is not None:
                raise CelRuntimeError(f"IP address {text[:60]!r} with zone value is not allowed")
            if address.ipv4_mapped is not None:
                raise CelRuntimeError(f"IPv4-mapped IPv6 address {text[:60]!r} is not allowed")
        return cls(address)


@dataclass(frozen=True, slots=True)
class CIDRValue:
    """An address with the length of its prefix."""

    address: Address
    length: int

    @classmethod
    def parse(cls, text: str) -> "CIDRValue":
        """Read a CIDR block; raises CelRuntimeError."""
        address, _, length = text.partition("/")
        if not re.fullmatch(r"0|[1-9][0-9]{0,2}", length, re.ASCII):
            raise CelRuntimeError(f"network address parse error: {text[:60]!r}")
        ip = IPValue.parse(address).address
        if int(length) > ip.max_prefixlen:
            raise CelRuntimeError(f"network address parse error: {text[:60]!r}")
        return cls(ip, int(length))

    def contains(self, address: Address, length: int) -> bool:
        """Whether the block contains another one."""
        shift = self.address.max_prefixlen - self.length
        return (
            address.version == self.address.version
            and self.length <= length
            and int(address) >> shift == int(self.address) >> shift
        )


@dataclass(frozen=True, slots=True)
class URLValue:
    """A URL in its parts, which stay escaped."""

    scheme: str
    host: str
    path: str
    query: str


CLASSES.update({"net.IP": IPValue, "net.CIDR": CIDRValue, "kubernetes.URL": URLValue})


@overload("ip(string) -> ip", cost=traversal())
def ip(text: str) -> IPValue:
    return IPValue.parse(text)


@overload("isIP(string) -> bool", cost=traversal())
def is_ip(text: str) -> bool:
    return _parses(IPValue.parse, text)


@overload("ip::isCanonical(string) -> bool", cost=traversal(2))
def is_canonical(text: str) -> bool:
    return str(IPValue.parse(text).address) == text


@overload("string(ip) -> string")
def ip_to_string(value: IPValue) -> str:
    return str(value.address)


@overload("ip.family() -> int")
def family(value: IPValue) -> int:
    return value.address.version


@overload("ip.isUnspecified() -> bool")
def is_unspecified(value: IPValue) -> bool:
    return value.address.is_unspecified


@overload("ip.isLoopback() -> bool")
def is_loopback(value: IPValue) -> bool:
    return value.address.is_loopback


@overload("ip.isLinkLocalMulticast() -> bool")
def is_link_local_multicast(value: IPValue) -> bool:
    blocks = ("224.0.0.0/24", "ff02::/16")
    return any(CIDRValue.parse(block).contains(value.address, 128) for block in blocks)


@overload("ip.isLinkLocalUnicast() -> bool")
def is_link_local_unicast(value: IPValue) -> bool:
    return value.address.is_link_local


@overload("ip.isGlobalUnicast() -> bool")
def is_global_unicast(value: IPValue) -> bool:
    a = value.address
    special = a.is_unspecified or a.is_loopback or a.is_multicast or a.is_link_local
    return not special and str(a) != "255.255.255.255"


@overload("cidr(string) -> cidr", cost=traversal())
def cidr(text: str) -> CIDRValue:
    return CIDRValue.parse(text)


@overload("isCIDR(string) -> bool", cost=traversal())
def is_cidr(text: str) -> bool:
    return _parses(CIDRValue.parse, text)


@overload("string(cidr) -> string")
def cidr_to_string(value: CIDRValue) -> str:
    return f"{value.address}/{value.length}"


@overload("cidr.containsIP(ip) -> bool", "cidr.containsIP(string) -> bool")
def contains_ip(value: CIDRValue, other: IPValue | str) -> bool:
    address = (IPValue.parse(other) if isinstance(other, str) else other).address
    return value.contains(address, address.max_prefixlen)


@overload("cidr.containsCIDR(cidr) -> bool", "cidr.containsCIDR(string) -> bool")
def contains_cidr(value: CIDRValue, other: CIDRValue | str) -> bool:
    block = CIDRValue.parse(other) if isinstance(other, str) else other
    return value.contains(block.address, block.length)


@overload("cidr.ip() -> ip")
def cidr_ip(value: CIDRValue) -> IPValue:
    return IPValue(value.address)


@overload("cidr.masked() -> cidr")
def masked(value: CIDRValue) -> CIDRValue:
    shift = value.address.max_prefixlen - value.length
    return CIDRValue(type(value.address)(int(value.address) >> shift << shift), value.length)


@overload("cidr.prefixLength() -> int")
def prefix_length(value: CIDRValue) -> int:
    return value.length


_URL = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.-]*):(?://([^/?#]*))?)?([^?#]*)(?:\?([^#]*))?", re.ASCII
)
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")


def _parse_url(text: str) -> URLValue:
    match = _URL.fullmatch(text)
    scheme, host, path, query = match.groups(default="") if match else ("", "", "", "")
    absolute = scheme or path.startswith("/")
    unusable = any(sign <= " " or sign == "\x7f" for sign in text)
    if not match or not absolute or unusable or _BAD_ESCAPE.search(host + path):
        raise CelRuntimeError(f'URL parse error during conversion from string: parse "{text[:80]}"')
    host = host.rpartition("@")[2]
    if not re.fullmatch(r"(?:\[[^\]]*\]|[^:\[\]]*)(?::[0-9]*)?", host):
        raise CelRuntimeError("URL parse error during conversion from string: invalid port")
    return URLValue(scheme.lower(), host, path, query)


@overload("url(string) -> url", cost=traversal())
def url(text: str) -> URLValue:
    return _parse_url(text)


@overload("isURL(string) -> bool", cost=traversal())
def is_url(text: str) -> bool:
    return _parses(_parse_url, text)


@overload("url.getScheme() -> string")
def scheme(value: URLValue) -> str:
    return value.scheme


@overload("url.getHost() -> string")
def host(value: URLValue) -> str:
    return value.host


@overload("url.getHostname() -> string")
def hostname(value: URLValue) -> str:
    if value.host.startswith("["):
        return value.host[1:].partition("]")[0]
    return value.host.partition(":")[0]


@overload("url.getPort() -> string")
def port(value: URLValue) -> str:
    return value.host.rpartition("]")[2].partition(":")[2]


@overload("url.getEscapedPath() -> string")
def escaped_path(value: URLValue) -> str:
    return value.path


@overload("url.getQuery() -> map<string, list<string>>")
def query(value: URLValue) -> dict[str, list[str]]:
    result: dict[str, list[str]] = {}
    for pair in value.query.split("&"):
        name, _, item = pair.partition("=")
        if pair and ";" not in pair and not _BAD_ESCAPE.search(pair):
            result.setdefault(_unescaped(name), []).append(_unescaped(item))
    return result


def _unescaped(text: str) -> str:
    raw = re.sub(
        rb"%([0-9a-fA-F]{2})",
        lambda match: bytes([int(match[1], 16)]),
        text.replace("+", " ").encode(errors="surrogatepass"),
    )
    return raw.decode(errors="replace")


def _parses(parse: Any, text: str) -> bool:
    try:
        parse(text)
    except CelRuntimeError:
        return False
    return True
