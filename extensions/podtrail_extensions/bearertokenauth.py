"""The `bearertokenauth` extension: tokens that a server asks for, or that an exporter shows (as the Collector's)."""

import hmac
import re
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from pydantic import Field, model_validator

from podtrail.component import Context, Factory, Unauthenticated
from podtrail.config.types import Model, Secret, WarningPath

if TYPE_CHECKING:
    from podtrail.transport.followed_file import FollowedFile

_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TOKEN: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_MISMATCH: Final = "provided authorization does not match expected scheme or token"


class Config(Model):
    """Ask for a token, one of several perhaps, or show one; the same extension does either."""

    scheme: str = Field("Bearer", description='Word in front of the token; "" for none.')
    header: str = Field("Authorization", description="Header that has it; over gRPC the metadata of that name.")
    token: Secret | None = Field(None, description="The token.")
    tokens: tuple[Secret, ...] = Field(
        (), description="Several tokens: a server takes each of them, a client shows the first."
    )
    filename: str | None = Field(
        None,
        min_length=1,
        description="File with tokens, one a line, in place of `token` and `tokens`; read again when it changes.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = self._given()
        if not given and self.filename is None:
            raise ValueError("no bearer token provided; give filename, token or tokens")
        if self.token is not None and self.tokens:
            raise ValueError("either tokens or token should be provided, not both")
        if not all(_TOKEN.fullmatch(token) for token in given):
            raise ValueError("a token is empty, or has characters that no header can carry; is its variable set?")
        if not _HEADER.fullmatch(self.header):
            raise ValueError(f"header {self.header!r} can't be the name of a header")
        if self.scheme and not _HEADER.fullmatch(self.scheme):
            raise ValueError(f"scheme {self.scheme!r} is no word that can stand in front of a token")
        return self

    def _given(self) -> list[str]:
        """Return the tokens that stand in the configuration itself."""
        tokens = self.tokens if self.token is None else (self.token, *self.tokens)
        return [token.get_secret_value() for token in tokens]

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Warn of tokens that nothing will use."""
        if self.filename is None:
            return []
        ignored = [key for key in ("token", "tokens") if getattr(self, key)]
        return [((key,), "is ignored: a filename is specified") for key in ignored]

    @property
    def for_servers(self) -> bool:
        """Whether servers can use it."""
        return True

    @property
    def for_clients(self) -> bool:
        """Whether clients can."""
        return True


class BearerTokenAuth:
    """Knows the tokens of the moment. A token is no name: clients are told apart by certificate or address."""

    def __init__(self, config: Config, context: Context) -> None:
        self._config = config
        self._log = context.log
        self._file: FollowedFile[Sequence[bytes]] | None = None
        self._configured = [self._value(token) for token in config._given()]

    @property
    def header(self) -> str:
        """The header with the token, in lower case."""
        return self._config.header.lower()

    @property
    def challenge(self) -> str:
        """What a 401 asks for."""
        return self._config.scheme or "Bearer"

    @property
    def renews(self) -> bool:
        """Whether the token may be another one later."""
        return self._config.filename is not None

    async def __aenter__(self) -> Self:
        """Read the tokens. StartError when there are none."""
        from podtrail.transport.followed_file import FollowedFile

        if self._config.filename is not None:
            self._file = FollowedFile("filename", self._config.filename, self._read, self._log)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    async def authenticate(self, credentials: str | None, address: str) -> str | None:  # noqa: ARG002 - nobody waits
        """Take one of the tokens for right.

        Raises:
            Unauthenticated: there is none, or it is none of them.
        """
        if not credentials:
            raise Unauthenticated(f"missing or empty authorization header: {self._config.header}")
        shown = credentials.encode(errors="replace")
        # Every one is compared, in constant time: how long it takes says nothing of which it was like.
        if sum([hmac.compare_digest(value, shown) for value in self._values]) == 0:
            raise Unauthenticated(_MISMATCH)
        return None

    def credentials(self) -> Mapping[str, str]:
        """Return the header with the first token."""
        return {self.header: self._values[0].decode()}

    @property
    def _values(self) -> Sequence[bytes]:
        return self._configured if self._file is None else self._file.value

    def _read(self, text: str) -> Sequence[bytes]:
        lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
        for number, line in lines:
            if line and not _TOKEN.fullmatch(line):
                raise ValueError(f"has characters in line {number} that no header can carry")
        values = [self._value(line) for _, line in lines if line]
        if not values:
            raise ValueError("has no token in it")
        return values

    def _value(self, token: str) -> bytes:
        return f"{self._config.scheme} {token}".lstrip().encode()


def _create(config: Config, context: Context) -> BearerTokenAuth:
    return BearerTokenAuth(config, context)


FACTORY = Factory(
    kind="extension", type="bearertokenauth", aliases=("bearer_token_auth",), Config=Config, create=_create
)
