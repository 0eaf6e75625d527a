"""`file_storage`: its keys and what is said of wrong ones, its folder and files, and who may have it."""

import asyncio
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from podtrail_extensions.file_storage.config import Config
from podtrail_extensions.file_storage.extension import FileStorage, file_name

from podtrail.component import Context, StartError
from podtrail.config import ConfigError, Document
from podtrail.pipeline.settings import read_settings
from podtrail.storage import Entry, StorageError, StorageProvider

PIPELINE = """\
receivers: {otlp: {protocols: {grpc: }}}
exporters: {debug: }
service: {extensions: [file_storage], pipelines: {traces: {receivers: [otlp], exporters: [debug]}}}
extensions:
  file_storage:
"""
ALL_OF_THE_COLLECTORS = """\
    directory: /var/lib/otelcol/mydir
    timeout: 1s
    recreate: true
    create_directory: true
    directory_permissions: "0750"
    compaction:
      on_start: true
      on_rebound: true
      directory: /tmp/
      rebound_needed_threshold_mib: 100
      rebound_trigger_threshold_mib: 10
      max_transaction_size: 65_536
      check_interval: 5s
      cleanup_on_start: true
    fsync: false
"""


def config(folder: Path, **keys: object) -> Config:
    return Config.model_validate({"directory": str(folder), **keys})


def storage(folder: Path, **keys: object) -> FileStorage:
    return FileStorage(config(folder, **keys), Context("file_storage"))


def refusal(keys: str) -> str:
    with pytest.raises(ConfigError) as raised:
        read_settings(Document.from_text(PIPELINE + keys, "pipeline.yaml", {}))
    return str(raised.value)


def test_all_keys_of_the_collectors_are_taken_and_those_without_effect_say_why_once() -> None:
    settings = read_settings(Document.from_text(PIPELINE + ALL_OF_THE_COLLECTORS, "pipeline.yaml", {}))
    told = [str(warning).splitlines()[0] for warning in settings.warnings if "extensions::file_storage" in str(warning)]
    no_effect = {
        "pipeline.yaml:8:5: extensions::file_storage::recreate": "what is damaged is always moved aside, and never "
        "prevents the start",
        "pipeline.yaml:11:5: extensions::file_storage::compaction": "segments that are no longer needed are removed "
        "whole, so there is nothing to compact",
    }
    assert told == [f"{where}: has no effect: {why}" for where, why in no_effect.items()]


def test_defaults_are_the_collectors_but_for_permissions() -> None:
    assert Config().model_dump(exclude={"compaction"}) == {
        "directory": "/var/lib/otelcol/file_storage",
        "timeout": 1_000_000_000,
        "fsync": False,
        "create_directory": False,
        "directory_permissions": "0700",
        "recreate": False,
    }


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            '    directory_permissions: "0999"',
            "pipeline.yaml:6:28: extensions::file_storage::directory_permissions: .*octal",
        ),
        ("    directory_permissions: 0750", "pipeline.yaml:6:28: .*quote it as text"),
        ('    directory_permissions: "0070"', "directory_permissions: .*podtrail itself"),
        ("    fsync: 1", "pipeline.yaml:6:12: extensions::file_storage::fsync: .*true or false"),
        ("    timeout: soon", "pipeline.yaml:6:14: extensions::file_storage::timeout: .*300ms"),
        ("    direcory: /tmp", "pipeline.yaml:6:5: .*did you mean|direcory"),
        ("    max_size: 1000", "pipeline.yaml:6:5: .*::max_size: the Collector has 'max_size' here, podtrail does not"),
        ("    compaction: {max_transaction_size: -1}", "compaction::max_transaction_size"),
        ("    compaction: {on_rebound: true, check_interval: 0s}", "compaction::check_interval"),
    ],
)
def test_a_wrong_key_is_told_with_its_place_and_what_would_be_right(keys: str, said: str) -> None:
    assert re.search(said, refusal(keys))


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("exporter_otlp_backup", "exporter_otlp_backup"),
        ("exporter_otlp_a/b", "exporter_otlp_a~002Fb"),
        ("exporter_otlp_~ü", "exporter_otlp_~007E~00FC"),
    ],
)
def test_names_are_made_safe_as_the_collector_does(name: str, written: str) -> None:
    assert file_name(name) == written


def test_a_name_that_is_too_long_is_hashed_as_the_collector_does() -> None:
    assert re.fullmatch("[0-9a-f]{64}", file_name("x" * 256))


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("keys", "mode"), [({}, 0o700), ({"directory_permissions": "0750"}, 0o750)])
async def test_folders_are_closed_to_others_and_files_to_all_but_their_owner(
    keys: dict[str, object], mode: int, tmp_path: Path
) -> None:
    folder = tmp_path / "made" / "too"
    async with storage(folder, create_directory=True, **keys) as provider:
        assert isinstance(provider, StorageProvider)
        journal = await provider.open("pipelines")
        await journal.commit([Entry(1)])
        await journal.save(1, [b"state"])
    assert {permissions(path) for path in (folder.parent, folder, folder / "pipelines")} == {mode}
    assert {permissions(path) for path in folder.rglob("*") if path.is_file()} == {0o600}


async def test_a_folder_that_is_missing_is_told_with_what_would_be_right(tmp_path: Path) -> None:
    with pytest.raises(StartError) as raised:
        await storage(tmp_path / "none").__aenter__()
    assert str(raised.value) == (
        f"can't use the folder {tmp_path}/none: No such file or directory: make it, or set create_directory: true"
    )


async def test_a_file_in_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match=f"^can't use the folder {tmp_path}/file: Not a directory$"):
        await storage(tmp_path / "file", create_directory=True).__aenter__()


async def test_two_of_one_configuration_on_one_folder_are_refused(tmp_path: Path) -> None:
    async with storage(tmp_path):
        with pytest.raises(StartError) as raised:
            await storage(tmp_path, timeout="0s").__aenter__()
    said = f"{tmp_path} is in use by another file_storage of this configuration: give each its own directory"
    assert str(raised.value) == said


async def test_a_second_process_on_the_folder_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    holder = (
        "import asyncio, sys\n"
        "from podtrail.component import Context\n"
        "from podtrail_extensions.file_storage.config import Config\n"
        "from podtrail_extensions.file_storage.extension import FileStorage\n"
        "async def main():\n"
        "    async with FileStorage(Config(directory=sys.argv[1]), Context('file_storage')):\n"
        "        print('has it', flush=True)\n"
        "        await asyncio.to_thread(sys.stdin.read)\n"
        "asyncio.run(main())\n"
    )
    command = [sys.executable, "-c", holder, str(tmp_path)]
    first = await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert first.stdout is not None
    assert first.stdin is not None
    assert await first.stdout.readline() == b"has it\n"
    with pytest.raises(StartError) as raised:
        await storage(tmp_path, timeout="10ms").__aenter__()
    said = f"{tmp_path} is in use by another process (pid {first.pid}): give each its own directory"
    assert str(raised.value) == said
    waiting = asyncio.create_task(storage(tmp_path, timeout="1m").__aenter__())
    await asyncio.sleep(0)
    first.stdin.close()
    await (await waiting).__aexit__(None, None, None)
    assert await first.wait() == 0


async def test_a_journal_is_open_once_at_a_time(tmp_path: Path) -> None:
    async with storage(tmp_path) as provider:
        journal = await provider.open("pipelines")
        with pytest.raises(StorageError, match="pipelines is open already"):
            await provider.open("pipelines")
        await journal.close()
        again = await provider.open("pipelines")
        await again.commit([Entry(1)])
    assert again.closed
    with pytest.raises(StorageError, match="is closed"):
        await again.commit([Entry(1)])


async def test_a_file_of_the_collectors_in_place_of_a_journal_is_moved_aside(tmp_path: Path) -> None:
    (tmp_path / "exporter_otlp_").write_bytes(b"bbolt")
    async with storage(tmp_path) as provider:
        journal = await provider.open("exporter_otlp_")
        await journal.commit([Entry(1)])
    assert (tmp_path / "exporter_otlp_.damaged").read_bytes() == b"bbolt"
    assert os.listdir(tmp_path / "exporter_otlp_") == ["00000001.otlp"]
