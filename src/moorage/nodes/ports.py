"""HostPorts: which rows use which host ports.

A set, not a count: if two pods of a node use the same port, removing one of them frees it, as in
kube-scheduler. An address of 0.0.0.0 conflicts with every address of that protocol and port.
"""

from collections.abc import Iterable, Set
from dataclasses import dataclass, field

from moorage.api.requests import ANY_IP
from moorage.nodes.usage import HostPort


@dataclass(slots=True)
class HostPorts:
    """Ports by row, and for every (protocol, port) the addresses in use and the rows using them."""

    _of_row: dict[int, set[HostPort]] = field(default_factory=dict)
    _rows: dict[tuple[str, int], dict[str, set[int]]] = field(default_factory=dict)

    def add(self, row: int, ports: Iterable[HostPort]) -> None:
        """Add the ports of a pod to a row."""
        for ip, protocol, port in ports:
            self._of_row.setdefault(row, set()).add((ip, protocol, port))
            self._rows.setdefault((protocol, port), {}).setdefault(ip, set()).add(row)

    def remove(self, row: int, ports: Iterable[HostPort]) -> None:
        """Remove the ports of a pod from a row."""
        for ip, protocol, port in ports:
            self._of_row.get(row, set()).discard((ip, protocol, port))
            self._rows.get((protocol, port), {}).get(ip, set()).discard(row)

    def holders(self, wanted: HostPort) -> Iterable[set[int]]:
        """Sets of rows with a port in conflict with a wanted one."""
        ip, protocol, port = wanted
        by_ip = self._rows.get((protocol, port), {})
        if ip == ANY_IP:
            return by_ip.values()
        return [by_ip[used] for used in (ANY_IP, ip) if used in by_ip]

    def of_row(self, row: int) -> Set[HostPort]:
        """The ports in use on a row."""
        return self._of_row.get(row, frozenset())


def conflict(wanted: Iterable[HostPort], used: Set[HostPort]) -> bool:
    """Whether any wanted port is taken among those in use."""
    for ip, protocol, port in wanted:
        if ip == ANY_IP and any(taken[1:] == (protocol, port) for taken in used):
            return True
        if (ip, protocol, port) in used or (ANY_IP, protocol, port) in used:
            return True
    return False
