"""Keys of servers and clients that name an authenticator (the Collector's `configauth`)."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from podtrail.config.model import Model
from podtrail.config.problem import Path


class AuthSettings(Model):
    """Which extension authenticates (`auth:`)."""

    authenticator: str = Field(
        description="The id of an extension that authenticates, for example `bearertokenauth`; it is listed in "
        "`service::extensions` as well."
    )


class ServerAuthSettings(AuthSettings):
    """Who may send: requests whose credentials are wrong are refused (`auth:` of a server)."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        "request_params": "remove it: credentials are looked for in headers, a URL would leave them in logs"
    }


class ClientAuthSettings(AuthSettings):
    """What is shown with every request (`auth:` of a client)."""


def references(config: Any, path: Path = ()) -> Iterator[tuple[Path, AuthSettings]]:
    """Yield every `auth:` in a component's configuration, with the path of the key that names the authenticator."""
    if isinstance(config, AuthSettings):
        yield (*path, "authenticator"), config
    elif isinstance(config, BaseModel):
        for name, field in type(config).model_fields.items():
            yield from references(getattr(config, name), (*path, field.alias or name))
    elif isinstance(config, Mapping):
        for key, below in config.items():
            yield from references(below, (*path, key))
    elif isinstance(config, list | tuple):
        for at, below in enumerate(config):
            yield from references(below, (*path, at))
