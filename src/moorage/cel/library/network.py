"""IP addresses, CIDR blocks and URLs."""

import ipaddress
import re
from dataclasses import dataclass

from moorage.cel.types import CLASSES, define, double_traversal, overload, traversal
from moorage.cel.values import CelRuntimeError, parses

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


_LINK_LOCAL_MULTICAST = (CIDRValue.parse("224.0.0.0/24"), CIDRValue.parse("ff02::/16"))


def _is_global_unicast(value: IPValue) -> bool:
    a = value.address
    special = a.is_unspecified or a.is_loopback or a.is_multicast or a.is_link_local
    return not special and str(a) != "255.255.255.255"


def _contains_ip(value: CIDRValue, other: IPValue | str) -> bool:
    address = (IPValue.parse(other) if isinstance(other, str) else other).address
    return value.contains(address, address.max_prefixlen)


def _contains_cidr(value: CIDRValue, other: CIDRValue | str) -> bool:
    block = CIDRValue.parse(other) if isinstance(other, str) else other
    return value.contains(block.address, block.length)


def _masked(value: CIDRValue) -> CIDRValue:
    shift = value.address.max_prefixlen - value.length
    return CIDRValue(type(value.address)(int(value.address) >> shift << shift), value.length)


define("ip(string) -> ip", run=IPValue.parse, cost=traversal)
define("isIP(string) -> bool", run=lambda text: parses(IPValue.parse, text), cost=traversal)
define(
    "ip::isCanonical(string) -> bool",
    run=lambda text: str(IPValue.parse(text).address) == text,
    cost=double_traversal,
)
define("string(ip) -> string", run=lambda ip: str(ip.address))
define("ip.family() -> int", run=lambda ip: ip.address.version)
define("ip.isUnspecified() -> bool", run=lambda ip: ip.address.is_unspecified)
define("ip.isLoopback() -> bool", run=lambda ip: ip.address.is_loopback)
define(
    "ip.isLinkLocalMulticast() -> bool",
    run=lambda ip: any(block.contains(ip.address, 128) for block in _LINK_LOCAL_MULTICAST),
)
define("ip.isLinkLocalUnicast() -> bool", run=lambda ip: ip.address.is_link_local)
define("ip.isGlobalUnicast() -> bool", run=_is_global_unicast)
define("cidr(string) -> cidr", run=CIDRValue.parse, cost=traversal)
define("isCIDR(string) -> bool", run=lambda text: parses(CIDRValue.parse, text), cost=traversal)
define("string(cidr) -> string", run=lambda cidr: f"{cidr.address}/{cidr.length}")
for _other in ("ip", "string"):
    define(f"cidr.containsIP({_other}) -> bool", run=_contains_ip)
for _other in ("cidr", "string"):
    define(f"cidr.containsCIDR({_other}) -> bool", run=_contains_cidr)
define("cidr.ip() -> ip", run=lambda cidr: IPValue(cidr.address))
define("cidr.masked() -> cidr", run=_masked)
define("cidr.prefixLength() -> int", run=lambda cidr: cidr.length)


_URL = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?([^?]*)(?:\?(.*))?", re.DOTALL)
_HOST = re.compile(r"(?:\[[^\]]*\]|[^:\[\] ]*)(?::[0-9]*)?")
_ESCAPE = re.compile(rb"%([0-9a-fA-F]{2})")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_ENCODED_PATH = re.compile(r"[A-Za-z0-9\-_.~$&+,/:;=@!'()*\[\]%]*")
_PATH_SIGNS = frozenset(b"-_.~$&+,/:;=@")


@overload("url(string) -> url", cost=traversal)
def url(text: str) -> URLValue:
    """Read a URL or an absolute path; raises CelRuntimeError."""
    match = _URL.fullmatch(text)
    scheme, path, query = match.groups(default="") if match else ("", "", "")
    host = ""
    if scheme and path.startswith("//"):
        host, slash, path = path[2:].partition("/")
        host, path = host.rpartition("@")[2], slash + path
    control = any(sign < " " or sign == "\x7f" for sign in text)
    relative = not scheme and not path.startswith("/")
    if control or relative or _BAD_ESCAPE.search(host + path) or not _HOST.fullmatch(host):
        raise CelRuntimeError(f'URL parse error during conversion from string: "{text[:80]}"')
    return URLValue(scheme.lower(), host, path if path.startswith("/") else "", query)


def _escaped_path(value: URLValue) -> str:
    if _ENCODED_PATH.fullmatch(value.path):
        return value.path
    return "".join(
        chr(byte) if (chr(byte).isalnum() and byte < 128) or byte in _PATH_SIGNS else f"%{byte:02X}"
        for byte in _unescaped_bytes(value.path)
    )


def _hostname(value: URLValue) -> str:
    if value.host.startswith("["):
        return value.host[1:].partition("]")[0]
    return value.host.partition(":")[0]


def _query(value: URLValue) -> dict[str, list[str]]:
    result: dict[str, list[str]] = {}
    for pair in value.query.split("&"):
        name, _, item = pair.partition("=")
        if pair and ";" not in pair and not _BAD_ESCAPE.search(pair):
            result.setdefault(_unescaped(name), []).append(_unescaped(item))
    return result


def _unescaped(text: str) -> str:
    return _unescaped_bytes(text.replace("+", " ")).decode(errors="replace")


def _unescaped_bytes(text: str) -> bytes:
    return _ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), text.encode())


define("isURL(string) -> bool", run=lambda text: parses(url, text), cost=traversal)
define("url.getScheme() -> string", run=lambda value: value.scheme)
define("url.getHost() -> string", run=lambda value: value.host)
define("url.getHostname() -> string", run=_hostname)
define(
    "url.getPort() -> string",
    run=lambda value: value.host.rpartition("]")[2].partition(":")[2],
)
define("url.getEscapedPath() -> string", run=_escaped_path)
define("url.getQuery() -> map<string, list<string>>", run=_query)
