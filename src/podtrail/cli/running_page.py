"""A running podtrail's page, as commands ask it: where it is, and one answer or one that goes on."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, Final, NamedTuple, TypeVar
from urllib.parse import urlencode, urlsplit

import click

from podtrail.config import printable

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_ENDPOINT: Final = "http://localhost:15927"
_SECONDS: Final = 10.0
_MOST_BYTES: Final = 64 << 20
_MOST_DIGITS: Final = 20
"""Of a whole number, its sign among them: 64 bits have no more."""


class NobodyThere(Exception):
    """Nobody could be asked; the text says what to do."""


class PageAnswer(NamedTuple):
    """What a page answers."""

    status: int
    body: IO[bytes]

    def whole(self) -> bytes:
        """Return all of it.

        Raises:
            IncompleteRead: it has ended before its time, or is longer than any page's.
        """
        from http.client import IncompleteRead

        raw = self.body.read(_MOST_BYTES)
        if getattr(self.body, "length", None):  # what is still to come
            raise IncompleteRead(raw)
        return raw


def checked_endpoint(_context: click.Context, _option: click.Parameter, value: str) -> str:
    """Return the address of a page.

    Raises:
        BadParameter: it is none.
    """
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and parts.hostname and not parts.query and not parts.fragment
        usable = usable and parts.username is None and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        raise click.BadParameter(f"{printable(value)} is no address of a page, such as http://localhost:15927")
    return value


def endpoint_option(command: F) -> F:
    """Give a command `endpoint`, the address of a page."""
    return click.option(
        "--endpoint",
        metavar="URL",
        default=DEFAULT_ENDPOINT,
        show_default=True,
        callback=checked_endpoint,
        help="The running page to ask.",
    )(command)


def get_json(
    endpoint: str, path: str, query: Mapping[str, str], seconds: float = _SECONDS, otherwise: str = ""
) -> dict[str, Any]:
    """Ask a page once; what it can't answer has an `error`. `otherwise`: what else to do where nobody answers.

    Raises:
        NobodyThere: none answers there.
    """
    with asking(endpoint, path, query, seconds, otherwise) as answer:
        told = json_object(answer.whole())
    if told is None:
        raise no_page(endpoint)
    return told


@contextmanager
def asking(
    endpoint: str, path: str, query: Mapping[str, str], seconds: float = _SECONDS, otherwise: str = ""
) -> Iterator[PageAnswer]:
    """Yield the answer of a page, to be read; nothing may take longer than `seconds`.

    Raises:
        NobodyThere: none answers there, or no longer.
    """
    import http.client
    from urllib.error import HTTPError
    from urllib.request import ProxyHandler, Request, build_opener

    asked = f"?{urlencode(query, errors='replace')}" if query else ""
    url = f"{endpoint.rstrip('/')}{path}{asked}"
    request = Request(url, headers={"Accept": "application/json"})  # noqa: S310 - http or https, checked by the option
    try:
        # The page is near: a proxy for the rest of the world does not know it.
        with build_opener(ProxyHandler({})).open(request, timeout=seconds) as answer:
            yield PageAnswer(answer.status, answer)
    except HTTPError as error:
        with error:
            yield PageAnswer(error.code, error)
    except BrokenPipeError:
        raise
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise NobodyThere(
            f"no podtrail page at {endpoint} ({reason}); start it (the viewer extension){otherwise}"
        ) from None


def no_page(endpoint: str) -> NobodyThere:
    """Return what is said where somebody else answers."""
    return NobodyThere(f"{endpoint} answers, but not as a podtrail page does; is --endpoint right?")


def json_object(raw: bytes) -> dict[str, Any] | None:
    """Return the object that JSON text is; None where it is none, or has numbers that no page writes."""
    try:
        told = json.loads(raw, parse_int=_whole_number, parse_float=_number, parse_constant=_number)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def _whole_number(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError
    return int(digits)


def _number(text: str) -> float:
    number = float(text)
    if not abs(number) < 10**_MOST_DIGITS:  # NaN is not, either
        raise ValueError
    return number
