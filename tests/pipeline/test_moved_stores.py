"""What is kept in one place does not go on in another by a reload."""

from pathlib import Path

import pytest

from podtrail.component import StartError
from podtrail.config import Document
from podtrail.pipeline.moved_stores import refuse_moves
from podtrail.pipeline.settings import Settings, read_settings

CONFIG = """\
receivers:
  otlp: {{protocols: {{grpc: }}}}
  otlp_json_file: {{include: [in.jsonl], follow: true, storage: {receiver}}}
processors:
  batch: {{timeout: {timeout}}}
exporters:
  otlp_grpc: {{endpoint: "http://backend:4317", sending_queue: {{storage: {exporter}}}}}
extensions:
  file_storage: {{directory: {first}, fsync: {fsync}}}
  file_storage/2: {{directory: {second}}}
service:
  extensions: [file_storage, file_storage/2]
  pipelines:
    traces: {{receivers: [{fed_by}], processors: [batch], exporters: [otlp_grpc], durable: {pipeline}}}
"""
BEFORE = {
    "receiver": "file_storage",
    "timeout": "1s",
    "exporter": "file_storage",
    "first": "one",
    "fsync": "false",
    "second": "two",
    "fed_by": "otlp, otlp_json_file",
    "pipeline": "file_storage",
}


def read(**changes: str) -> Settings:
    return read_settings(Document.from_text(CONFIG.format(**BEFORE | changes), "c.yaml"))


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"first": "three"}, "extensions::file_storage::directory"),
        ({"exporter": "file_storage/2"}, "exporters::otlp_grpc::sending_queue::storage"),
        ({"receiver": "file_storage/2"}, "receivers::otlp_json_file::storage"),
        ({"pipeline": "file_storage/2"}, "service::pipelines::traces::durable"),
        ({"first": "two", "second": "one"}, "extensions::file_storage::directory"),
        ({"first": "two", "second": "one", "pipeline": "file_storage/2"}, "extensions::file_storage::directory"),
        (
            {"first": "zero", "second": "one", "exporter": "", "receiver": "", "pipeline": "file_storage/2"},
            "service::pipelines::traces::durable",
        ),
    ],
)
def test_what_would_go_on_elsewhere_is_refused_with_its_key(changes: dict[str, str], key: str) -> None:
    with pytest.raises(StartError, match=f"^{key}: "):
        refuse_moves(read(**changes), read())


def test_the_refusal_says_what_to_do_with_which_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StartError) as refused:
        refuse_moves(read(pipeline="file_storage/2"), read())
    assert str(refused.value) == (
        f"service::pipelines::traces::durable: what is kept in file_storage ({tmp_path}/one) can't go on in "
        f"file_storage/2 ({tmp_path}/two) while podtrail runs: stop it, move what is there, and start it"
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"timeout": "2s"},
        {"fsync": "true"},
        {"first": "./one/"},
        {"second": "three"},  # nothing is kept in it
        {"exporter": "", "receiver": "", "pipeline": ""},
        {"exporter": ""},
        {"fed_by": "otlp"},
    ],
    ids=str,
)
def test_what_stays_where_it_is_or_is_no_longer_kept_may_change(changes: dict[str, str]) -> None:
    refuse_moves(read(**changes), read())
    refuse_moves(read(), read(**changes))
