"""Who may send: certificate's name, credentials and limits, asked for each request before it is read."""

import re
from collections.abc import Callable, Sequence

from podtrail.component import Refused, ServerAuthenticator, Unauthenticated
from podtrail.config.printable import printable
from podtrail.transport.caller import RemotePeer
from podtrail.transport.client_limits import Charge, ClientBudgets, ClientConnections, OverLimit
from podtrail.transport.refusal_log import RefusalLog
from podtrail.transport.status import RequestError

_RETRY_AFTER = 1.0
"""Seconds after which to try again when the authenticator does not say."""


def _free(_: int) -> None:
    return


class Admission:
    """Decides about each request of one server."""

    def __init__(
        self,
        refusals: RefusalLog,
        *,
        authenticator: ServerAuthenticator | None = None,
        allowed_names: Sequence[str] = (),
        budgets: ClientBudgets | None = None,
        connections: ClientConnections | None = None,
        limited: Callable[[str, str], None] | None = None,
    ) -> None:
        """Ask for what is given.

        Args:
            refusals: says who was refused.
            authenticator: looks at credentials.
            allowed_names: patterns of names, one of which a certificate must have; `*` stands for anything.
            budgets: what each client may use.
            connections: how many each client has.
            limited: told of client and limit of each request that a limit refuses.
        """
        self._refusals = refusals
        self._authenticator = authenticator
        self._allowed = _pattern(allowed_names) if allowed_names else None
        self._budgets = budgets
        self._connections = connections
        self._limited = limited

    @property
    def asks(self) -> bool:
        """Whether it asks for anything at all."""
        return any((self._authenticator, self._allowed, self._budgets, self._connections))

    async def admit(self, caller: RemotePeer) -> tuple[str, Charge]:
        """Let a request in: return the client's name, and what is to be told of the bytes of the request.

        Raises:
            RequestError: it is refused.
        """
        try:
            client = await self._named(caller)
        except RequestError as error:
            self._refusals.tell(caller, error.message)
            raise
        try:
            if self._connections is not None and caller.host:
                self._connections.enter(client, (caller.host, caller.port))
            return client, _free if self._budgets is None else self._budgets.admit(client)
        except OverLimit as over:
            if self._limited is not None:
                self._limited(client, over.limit)
            raise RequestError.limited(over.limit, over.after) from over

    def left(self, caller: tuple[str, int], client: str) -> None:
        """The connection of a client has ended."""
        if self._connections is not None:
            self._connections.leave(caller, client)

    async def _named(self, caller: RemotePeer) -> str:
        if self._allowed is not None and not any(map(self._allowed.fullmatch, caller.names)):
            shown = printable(", ".join(caller.names)) or "nobody"
            raise RequestError.forbidden(f"the certificate is made out to {shown}, which may not send")
        name = None
        if self._authenticator is not None:
            credentials = caller.header(self._authenticator.header)
            try:
                name = await self._authenticator.authenticate(credentials, caller.address)
            except Unauthenticated as error:
                raise RequestError.unauthenticated(str(error), self._authenticator.challenge) from None
            except Refused as refused:
                after = _RETRY_AFTER if refused.after is None else refused.after
                raise RequestError.unread(refused.reason, after) from None
        return name or (caller.names[0] if caller.names else caller.address)


def _pattern(names: Sequence[str]) -> re.Pattern[str]:
    alternatives = (".*".join(map(re.escape, name.split("*"))) for name in names)
    return re.compile("|".join(alternatives), re.IGNORECASE | re.DOTALL)
