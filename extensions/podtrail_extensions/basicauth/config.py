"""The keys of `basicauth`: those of the Collector's."""

from collections.abc import Mapping
from typing import ClassVar, Self

from pydantic import Field, model_validator

from podtrail.config.types import Model, Secret


class HtpasswdSettings(Model):
    """Who may send: users with their passwords, as `htpasswd` writes them (`htpasswd:`)."""

    file: str | None = Field(
        None, min_length=1, description="File with a `user:hash` a line; read again when it changes."
    )
    inline: Secret | None = Field(
        None, description="The same, the text itself; a user that is in both has the password of this one."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.file is None and not (self.inline is not None and self.inline.get_secret_value().strip()):
            raise ValueError("no credential source provided; give htpasswd a file, or inline text")
        return self


class ClientAuthenticationSettings(Model):
    """What is shown to a server (`client_auth:`)."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        "aws_secrets_manager": "have the secret mounted as files, and use username_file and password_file"
    }

    username: str = Field("", description="The user's name.")
    password: Secret | None = Field(None, description="The password.")
    username_file: str | None = Field(
        None, min_length=1, description="File with the name, goes before `username`; read again when it changes."
    )
    password_file: str | None = Field(
        None, min_length=1, description="File with the password, goes before `password`; read again when it changes."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.username and self.username_file is None:
            raise ValueError("no credential source provided; give username or username_file")
        if ":" in self.username:
            raise ValueError("username can't have a colon: what follows it would be the password")
        return self


class Config(Model):
    """Ask for user name and password (`htpasswd`), or show them (`client_auth`)."""

    htpasswd: HtpasswdSettings | None = Field(None, description="For servers: who may send.")
    client_auth: ClientAuthenticationSettings | None = Field(None, description="For clients: what is shown.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.htpasswd is not None and self.client_auth is not None:
            raise ValueError(
                "only one of htpasswd and client_auth can be specified; configure two, as basicauth/server and "
                "basicauth/client"
            )
        if self.htpasswd is None and self.client_auth is None:
            raise ValueError("no credential source provided; give htpasswd for servers, or client_auth for exporters")
        return self

    @property
    def for_servers(self) -> bool:
        """Whether servers can use it."""
        return self.htpasswd is not None

    @property
    def for_clients(self) -> bool:
        """Whether clients can."""
        return self.client_auth is not None
