"""The host that a browser asked: what was asked of localhost has links that open nowhere else."""

from contextvars import ContextVar

from aiohttp import web

from podtrail.config.endpoint import is_loopback

_only_here: ContextVar[bool] = ContextVar("only_here", default=False)


def note_host(request: web.Request) -> None:
    """Remember which host is asked, until the answer is made."""
    _only_here.set(is_loopback((request.url.host or "").strip("[]")))


def only_here() -> bool:
    """Return whether links of the answer open only where podtrail runs, or is forwarded to."""
    return _only_here.get()
