"""Certificates, keys and credentials are files: a pipe or a device in their place ends the start at once."""

import os
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from podtrail.component import Context, StartError
from podtrail.config.files import read_text
from podtrail.config.problem import ConfigError
from podtrail.config.tls import TlsClientSettings, TlsServerSettings
from podtrail.transport.followed_file import FollowedFile
from podtrail.transport.small_file import read_small_file
from podtrail.transport.tls_client import ssl_context
from podtrail.transport.tls_server import read_pems


@pytest.fixture(params=["pipe", "/dev/zero", "/dev/tty", "folder"])
def no_file(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "pipe":
        os.mkfifo(tmp_path / "pipe")
        return str(tmp_path / "pipe")
    return str(tmp_path) if request.param == "folder" else str(request.param)


def test_what_is_no_file_is_refused_at_once(no_file: str) -> None:
    for use in (
        lambda: FollowedFile("token_file", no_file, str, Context(id="x").log),
        lambda: ssl_context(TlsClientSettings(ca_file=no_file)),
        lambda: read_pems(TlsServerSettings(cert_file=no_file, key_file=no_file)),
    ):
        with pytest.raises(StartError, match="can't read"):
            use()


def test_a_file_is_read_whole_and_one_that_is_huge_is_not(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * (1 << 20))
    assert len(read_small_file(file)) == 1 << 20
    os.truncate(file, 1 << 40)
    with pytest.raises(OSError, match="larger than 16 MiB"):
        read_small_file(file)


@pytest.mark.skipif(not Path("/proc/kmsg").exists() or os.geteuid() != 0, reason="needs root and /proc/kmsg")
def test_a_file_whose_reading_would_wait_is_refused() -> None:
    assert stat.S_ISREG(Path("/proc/kmsg").stat().st_mode)
    with suppress(ConfigError):  # "can't be read"; a container may show it empty
        read_text("/proc/kmsg")
