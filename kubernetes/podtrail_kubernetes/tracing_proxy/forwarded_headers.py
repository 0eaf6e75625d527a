"""Which headers pass: all, but those that belong to one connection (RFC 9110, 7.6.1), and the proxy's own secret."""

from collections.abc import Mapping

from aiohttp import hdrs
from multidict import CIMultiDict, CIMultiDictProxy

_OF_A_CONNECTION = frozenset(
    name.lower()
    for name in (
        hdrs.CONNECTION,
        hdrs.KEEP_ALIVE,
        hdrs.PROXY_AUTHENTICATE,
        hdrs.PROXY_AUTHORIZATION,
        hdrs.TE,
        hdrs.TRAILER,
        hdrs.TRANSFER_ENCODING,
        hdrs.UPGRADE,
        "Proxy-Connection",
    )
)
_REPLACED = frozenset(("host", "authorization", "expect", "traceparent"))


def to_api_server(
    headers: CIMultiDictProxy[str], credentials: Mapping[str, str], traceparent: str, *, own: bool
) -> CIMultiDict[str]:
    """Returns a client's headers as the API server gets them; `own`: the client's trace goes on, its state too."""
    dropped = _REPLACED if own else _REPLACED | {"tracestate"}
    passed = _passed(headers, dropped)
    passed.update(credentials)
    passed["traceparent"] = traceparent
    return passed


def to_client(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """Returns the headers of the API server's answer as the client gets them."""
    return _passed(headers, frozenset())


def upgrade_of(headers: CIMultiDictProxy[str]) -> str | None:
    """To what protocol a request wants its connection to change."""
    wanted = ",".join(headers.getall(hdrs.CONNECTION, ())).lower()
    return headers.get(hdrs.UPGRADE) if "upgrade" in (each.strip() for each in wanted.split(",")) else None


def _passed(headers: CIMultiDictProxy[str], dropped: frozenset[str]) -> CIMultiDict[str]:
    named = {each.strip().lower() for each in ",".join(headers.getall(hdrs.CONNECTION, ())).split(",")}
    stays = _OF_A_CONNECTION | dropped | named
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in stays)
