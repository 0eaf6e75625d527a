"""Which requests are refused, and the headers of every answer: against DNS rebinding, foreign pages and markup."""

import ipaddress
from collections.abc import Collection, Mapping

from aiohttp import hdrs, web

_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS = {
    "Content-Security-Policy": _CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    hdrs.SERVER: "podtrail",  # of a stream aiohttp would tell its version and Python's
}


async def add_headers(_request: web.Request, response: web.StreamResponse) -> None:
    """Put the headers on a response that is about to be sent, whatever it is."""
    response.headers.update(HEADERS)
    response.headers.setdefault(hdrs.CACHE_CONTROL, "no-store")


def refusal(method: str, headers: Mapping[str, str], allowed_hosts: Collection[str]) -> tuple[int, str] | None:
    """Return status and words for a request that must not be served, None for one that may."""
    if method not in (hdrs.METH_GET, hdrs.METH_HEAD):
        return 405, "This page only shows: GET and HEAD are all it knows."
    if not is_allowed_host(headers.get(hdrs.HOST, ""), allowed_hosts):
        return 403, "The page is not known by this host name. Add it to allowed_hosts of the viewer extension."
    # Of the same site, localhost, is whatever else listens there: it could not read, but take all places of listeners.
    if headers.get("Sec-Fetch-Site") in ("cross-site", "same-site") and headers.get("Sec-Fetch-Mode") != "navigate":
        return 403, "Other sites may link here, but not read from here."
    return None


def is_allowed_host(host: str, allowed_hosts: Collection[str]) -> bool:
    """Return whether a Host header names this server beyond doubt: an address, localhost or a name that is allowed.

    The port does not count: forwarding changes it.
    """
    name, colon, port = host.rpartition(":")
    if not colon or not (port.isascii() and port.isdecimal() and len(port) < 6 and int(port) < 65_536):
        name = host
    name = name.removesuffix(".").lower()
    if name == "localhost" or name in {allowed.lower() for allowed in allowed_hosts}:
        return True
    bracketed = name.startswith("[") and name.endswith("]")
    try:
        address = ipaddress.ip_address(name[1:-1] if bracketed else name)
    except ValueError:
        return False
    return bracketed == (address.version == 6)
