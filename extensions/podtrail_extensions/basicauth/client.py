"""User name and password that a client shows."""

from base64 import b64encode
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from podtrail.component import Context
from podtrail.transport.followed_file import FollowedFile
from podtrail_extensions.basicauth.config import ClientAuthenticationSettings


class BasicAuthClient:
    """Makes the header of each request from what its files say then."""

    def __init__(self, settings: ClientAuthenticationSettings, context: Context) -> None:
        self._settings = settings
        self._log = context.log
        self._username: FollowedFile[str] | None = None
        self._password: FollowedFile[str] | None = None

    @property
    def renews(self) -> bool:
        """Whether name or password may be others later."""
        return self._settings.username_file is not None or self._settings.password_file is not None

    async def __aenter__(self) -> Self:
        """Read the files. StartError when one can't be."""
        if self._settings.username_file is not None:
            self._username = FollowedFile("username_file", self._settings.username_file, _name, self._log)
        if self._settings.password_file is not None:
            self._password = FollowedFile("password_file", self._settings.password_file, _line, self._log)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def credentials(self) -> Mapping[str, str]:
        """Return the header with name and password (RFC 7617)."""
        name = self._settings.username if self._username is None else self._username.value
        if self._password is not None:
            password = self._password.value
        else:
            password = "" if self._settings.password is None else self._settings.password.get_secret_value()
        return {"authorization": f"Basic {b64encode(f'{name}:{password}'.encode()).decode()}"}


def _line(text: str) -> str:
    found = text.strip("\r\n")
    if not found or "\n" in found:
        raise ValueError("is empty" if not found else "has more than one line")
    return found


def _name(text: str) -> str:
    name = _line(text).strip()
    if ":" in name or not name:
        raise ValueError("has a colon in the name" if name else "is empty")
    return name
