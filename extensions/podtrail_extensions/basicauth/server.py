"""User names and passwords that a server asks for."""

from base64 import b64decode
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from podtrail.component import Context, StartError, Unauthenticated
from podtrail.transport.followed_file import FollowedFile
from podtrail_extensions.basicauth.config import HtpasswdSettings
from podtrail_extensions.basicauth.htpasswd import Password, read_htpasswd
from podtrail_extensions.basicauth.verification import Verification


class BasicAuthServer:
    """Knows the users of the moment."""

    header = "authorization"
    challenge = 'Basic realm="podtrail", charset="UTF-8"'

    def __init__(self, settings: HtpasswdSettings, context: Context) -> None:
        self._settings = settings
        self._log = context.log
        self._inline: Mapping[str, Password] = {}
        self._file: FollowedFile[Mapping[str, Password]] | None = None
        self._verification = Verification({})
        self._version = -1

    async def __aenter__(self) -> Self:
        """Read the users. StartError when that is not possible."""
        if self._settings.inline is not None and (text := self._settings.inline.get_secret_value()).strip():
            self._inline = _read_inline(text)
        if self._settings.file is not None:
            self._file = FollowedFile("htpasswd::file", self._settings.file, read_htpasswd, self._log)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    async def authenticate(self, credentials: str | None, address: str) -> str | None:
        """Return the user's name.

        Raises:
            Unauthenticated: there are no credentials, or wrong ones.
            Refused: too many passwords are being checked at once.
        """
        if not credentials:
            raise Unauthenticated("no basic auth provided")
        name, password = _read(credentials)
        if not await self._users().is_right(name, password, address):
            raise Unauthenticated("invalid credentials")
        return name

    def _users(self) -> Verification:
        written = self._file.value if self._file is not None else {}
        version = self._file.version if self._file is not None else 0
        if version != self._version:
            self._version = version
            self._verification = Verification({**written, **self._inline})
        return self._verification


def _read_inline(text: str) -> Mapping[str, Password]:
    try:
        return read_htpasswd(text)
    except ValueError as error:
        raise StartError(f"htpasswd::inline {error}") from None


def _read(credentials: str) -> tuple[str, str]:
    scheme, _, encoded = credentials.partition(" ")
    if scheme.lower() != "basic":
        raise Unauthenticated("invalid authorization scheme prefix")
    try:
        decoded = b64decode(encoded, validate=True).decode()
    except ValueError:
        raise Unauthenticated("invalid authorization format") from None
    name, colon, password = decoded.partition(":")
    if not colon:
        raise Unauthenticated("invalid authorization format")
    return name, password
