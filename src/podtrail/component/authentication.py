"""Authenticators: extensions that tell whether a request's credentials are right, or that give a client its own.

The Collector's `extensionauth`. A component whose configuration names some gets them before it is entered
(`WantsAuthenticators`).
"""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from podtrail.component.errors import ComponentError


class Unauthenticated(ComponentError):
    """Credentials are missing or wrong. The text is told to the sender and to the log: nothing of them is in it."""


@runtime_checkable
class ServerAuthenticator(Protocol):
    """Looks at the credentials of each request that a server gets."""

    @property
    def header(self) -> str:
        """The header (in gRPC: the metadata) with the credentials, in lower case."""

    @property
    def challenge(self) -> str:
        """What a 401 answers as `WWW-Authenticate` (RFC 9110, section 11.6.1)."""

    async def authenticate(self, credentials: str | None, address: str) -> str | None:
        """Return the name of the client that has these credentials; None when they are right but name nobody.

        Args:
            credentials: the header's value, None when there is no such header.
            address: the client's, for fairness between those whose credentials are yet to be checked.

        Raises:
            Unauthenticated: they are missing or wrong.
            Refused: they could not be checked now; worth trying again.
        """


@runtime_checkable
class ClientAuthenticator(Protocol):
    """Gives a client what it shows with each request."""

    @property
    def renews(self) -> bool:
        """Whether credentials may be others later: then what was refused for them is worth another try."""

    def credentials(self) -> Mapping[str, str]:
        """Return the headers of the next request, names in lower case."""


@runtime_checkable
class AuthenticatorConfig(Protocol):
    """The `Config` of an extension that is an authenticator; which kind it is may depend on what is configured."""

    @property
    def for_servers(self) -> bool:
        """Whether it makes a `ServerAuthenticator`."""

    @property
    def for_clients(self) -> bool:
        """Whether it makes a `ClientAuthenticator`."""


@runtime_checkable
class WantsAuthenticators(Protocol):
    """A component that is served by authenticators which its configuration names."""

    def authenticate_by(self, authenticators: Mapping[str, Any]) -> None:
        """Use these authenticators, by the ids that the configuration names; called before it is entered."""
