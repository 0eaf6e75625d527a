"""Which TCP connections there are to a port, as Linux has it in /proc/net: gRPC's library tells of no end of one."""

from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Final

_ESTABLISHED: Final = "01"
_TABLES: Final = ("/proc/self/net/tcp", "/proc/self/net/tcp6")


def connected(port: int) -> Collection[tuple[str, int]] | None:
    """Return host and port of those connected to a port of this machine; None where the system does not tell."""
    found: set[tuple[str, int]] = set()
    for path in _TABLES:
        try:
            lines = Path(path).read_text(encoding="ascii").splitlines()[1:]
        except FileNotFoundError:
            if path == _TABLES[0]:
                return None
            continue  # a machine without IPv6
        for line in lines:
            _, local, remote, state = line.split(maxsplit=4)[:4]
            if state == _ESTABLISHED and int(local.rpartition(":")[2], 16) == port:
                found.add(_address(remote))
    return found


def _address(text: str) -> tuple[str, int]:
    """Read an address as the kernel writes it: words of four bytes in the machine's order, here little-endian."""
    words, _, port = text.partition(":")
    raw = b"".join(bytes.fromhex(words[at : at + 8])[::-1] for at in range(0, len(words), 8))
    if len(raw) == 4:
        return str(IPv4Address(raw)), int(port, 16)
    address = IPv6Address(raw)
    return str(address.ipv4_mapped or address), int(port, 16)
