"""Where the API server is and who asks: kubeconfig, a Pod's ServiceAccount, or an address alone.

Tokens and certificates rotate in their files, so they are read again every minute, and at once when the API server
does not know us any more (401).
"""

import asyncio
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from .errors import RestConfigError

REFRESH_PERIOD = 60.0
"""Seconds between two looks at tokens and certificates, as in client-go."""

CONNECTIONS = 64
"""At once to one API server: a watch each, and requests in flight. More cost both sides more than they bring."""

_IMPATIENT_PERIOD = 1.0
_log = logging.getLogger(__name__)


def library(module: str) -> Any:
    """Imports a module of the Kubernetes client.

    Raises:
        RestConfigError: It is not installed; the text names the extra it comes with.
    """
    try:
        return import_module(f"kubernetes.aio.{module}")
    except ImportError as error:
        raise RestConfigError(
            f"a real API server needs the Kubernetes client ({error}): install podtrail with its extra [kubernetes]"
        ) from error


class RestConfig:
    """Keeps one `Configuration` of the client library up to date; what client-go calls a rest.Config."""

    def __init__(self, kubeconfig: Path | None, master: str | None, context: str | None = None) -> None:
        self.configuration: Any = library("client").Configuration()
        # A cluster's own authority is often older than RFC 5280's strict reading, which Go does not ask for either.
        self.configuration.disable_strict_ssl_verification = True
        self.configuration.connection_pool_maxsize = CONNECTIONS
        # The environment's proxy is looked up once below; aiohttp would do it, and read .netrc, for each request.
        self.configuration.client_session_kwargs = {"trust_env": False}
        self._kubeconfig = kubeconfig
        self._master = master
        self._context = context
        self._loader: Any = None
        self._read_at: float | None = None
        self._certificate: tuple[str, int] | None = None
        self._reading = asyncio.Lock()
        self._retired: list[Any] = []
        """Sessions whose connections have a certificate that was replaced; idle ones close by themselves."""

    async def load(self) -> None:
        """Reads everything for the first time.

        Raises:
            RestConfigError: Kubeconfig or ServiceAccount can't be used.
        """
        await self._read()
        if not self.configuration.proxy:
            self.configuration.proxy = _proxy_of_environment(self.configuration.host)
        self._read_at = asyncio.get_running_loop().time()
        self._certificate = self._certificate_now()

    async def refresh(self, rest: Any, *, refused: bool = False) -> None:
        """Reads tokens and certificates again when it is time to, sooner when the last ones were `refused`.

        What can't be read now (a file in the middle of its rotation) is tried again a minute later; until then the
        old ones are used.
        """
        async with self._reading:
            now = asyncio.get_running_loop().time()
            assert self._read_at is not None
            if now - self._read_at < (_IMPATIENT_PERIOD if refused else REFRESH_PERIOD):
                return
            self._read_at = now
            try:
                await self._read()
            except RestConfigError as error:
                _log.warning("credentials are kept as they were: %s", error)
                return
            certificate = self._certificate_now()
            if certificate is not None and certificate != self._certificate:
                try:
                    rest.ssl_context.load_cert_chain(self.configuration.cert_file, self.configuration.key_file)
                except OSError as error:
                    _log.warning("the client certificate is kept as it was: %s: %s", certificate[0], error)
                    return
                self._certificate = certificate
                # A connection keeps the certificate it was opened with, and the API server asks it of each request.
                self._retired.append(rest.pool_manager)
                rest.pool_manager = None

    async def close(self) -> None:
        """Closes connections with certificates that were replaced; what is under way on them ends."""
        for session in filter(None, self._retired):
            await session.close()

    async def _read(self) -> None:
        if self._kubeconfig is not None:
            await self._read_kubeconfig(self._kubeconfig)
        elif self._master is None:
            self._read_service_account()
        if self._master is not None:
            self.configuration.host = self._master.rstrip("/")
        key = self.configuration.api_key.get("BearerToken")
        if key is not None:  # a file's last line may end, a header may not
            self.configuration.api_key["BearerToken"] = key.strip()

    async def _read_kubeconfig(self, path: Path) -> None:
        if self._loader is None and not any(map(_is_file, map(Path, str(path).split(os.pathsep)))):
            raise RestConfigError(f"kubeconfig {path}: no such file")
        config = library("config")
        try:
            with _what_plugins_said() as said:
                if self._loader is None:
                    self._loader = await config.load_kube_config(
                        config_file=str(path),
                        context=self._context,
                        client_configuration=self.configuration,
                        persist_config=False,
                    )
                else:
                    await self._loader.load_and_set(self.configuration)
        except (config.ConfigException, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            # The library checks little: what is not a mapping or lacks a user shows as one of the last three.
            raise RestConfigError(f"kubeconfig {path}: {error}") from error
        except library("config.kube_config").yaml.YAMLError as error:
            raise RestConfigError(f"kubeconfig {path}: not YAML: {error}") from error
        if said:  # the library goes on without credentials, and the API server knows only that there are none
            raise RestConfigError(f"kubeconfig {path}: credential plugin: {'; '.join(said)}")

    def _read_service_account(self) -> None:
        config = library("config")
        try:
            config.load_incluster_config(client_configuration=self.configuration, try_refresh_token=False)
        except (config.ConfigException, OSError) as error:
            raise RestConfigError(
                f"no kubeconfig given, and no Pod's ServiceAccount to use: {error} Give --kubeconfig, or run in a Pod."
            ) from error

    def _certificate_now(self) -> tuple[str, int] | None:
        path = self.configuration.cert_file
        try:
            return (path, Path(path).stat().st_mtime_ns) if path else None
        except OSError:
            return self._certificate


@contextmanager
def _what_plugins_said() -> Iterator[list[str]]:
    """Yields what the library logs as errors meanwhile: of a credential plugin that failed it tells nobody else."""
    said: list[str] = []

    class _Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    logger, listener = library("config.kube_config").logger, _Listener(logging.ERROR)
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(listener)
    try:
        yield said
    finally:
        logger.removeHandler(listener)
        logger.propagate = propagated


def _proxy_of_environment(url: str) -> str | None:
    """What HTTPS_PROXY, HTTP_PROXY and NO_PROXY say for `url`."""
    parts = urlsplit(url)
    if parts.hostname is None or proxy_bypass(parts.hostname):
        return None
    return getproxies().get(parts.scheme)


def _is_file(path: Path) -> bool:
    return path.is_file()
