"""The `basicauth` extension: user names and passwords that a server asks for, or that an exporter shows.

It has the keys of the Collector's, `htpasswd` for servers and `client_auth` for clients (RFC 7617).
"""

from typing import Any

from podtrail.component import Context, Factory
from podtrail_extensions.basicauth.config import Config


def _create(config: Config, context: Context) -> Any:
    if config.htpasswd is not None:
        from podtrail_extensions.basicauth.server import BasicAuthServer

        return BasicAuthServer(config.htpasswd, context)
    from podtrail_extensions.basicauth.client import BasicAuthClient

    assert config.client_auth is not None
    return BasicAuthClient(config.client_auth, context)


FACTORY = Factory(kind="extension", type="basicauth", aliases=("basic_auth",), Config=Config, create=_create)
