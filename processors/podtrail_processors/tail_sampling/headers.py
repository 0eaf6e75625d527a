"""The headers that spans are held under: equal ones are one object, and each is counted once however many share it."""

from podtrail_processors.evidence.evidence import Header

_MOST_HEADERS = 4096
_MOST_BYTES = 2**22


class Headers:
    """Makes equal headers one object, so that a million traces of one process share one."""

    def __init__(self) -> None:
        self._known: dict[Header, Header] = {}
        self._known_bytes = 0
        self._holders: dict[Header, int] = {}

    def intern(self, resource: bytes, scope: bytes) -> Header:
        """Return the one header of this content."""
        header = Header(resource, scope)
        known = self._known.get(header)
        if known is not None:
            return known
        if len(self._known) >= _MOST_HEADERS or self._known_bytes > _MOST_BYTES:
            self._known.clear()
            self._known_bytes = 0
        self._known_bytes += len(resource) + len(scope)
        self._known[header] = header
        return header

    def hold(self, header: Header) -> int:
        """Note that something more is held under a header; return how many bytes that adds."""
        holders = self._holders.get(header, 0)
        self._holders[header] = holders + 1
        return 0 if holders else len(header.resource) + len(header.scope)

    def let_go(self, header: Header) -> int:
        """Note that something less is; return how many bytes that frees."""
        holders = self._holders[header]
        if holders > 1:
            self._holders[header] = holders - 1
            return 0
        del self._holders[header]
        return len(header.resource) + len(header.scope)

    def let_go_of_all(self) -> None:
        """Note that nothing is held any more."""
        self._holders.clear()
