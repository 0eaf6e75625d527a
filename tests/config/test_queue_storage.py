"""`sending_queue::storage` and `durable` name a storage that is started; what is wrong is said with its place."""

from typing import Any

import pytest

from podtrail.config import ConfigError, Document
from podtrail.config.types import DeliverySettings
from podtrail.pipeline.sending.plan import plan_for
from podtrail.pipeline.settings import Settings, read_settings

CONFIG = """\
receivers: {{otlp: {{protocols: {{grpc: }}}}}}
exporters:
  otlp_grpc:
    endpoint: http://backend:4317
    sending_queue:
      {queue}
extensions: {{file_storage/here: {{directory: /tmp}}, health_check: }}
service:
  extensions: [{started}]
  pipelines: {{traces: {{receivers: [otlp], exporters: [otlp_grpc]}}}}
"""


def read(queue: str, started: str = "file_storage/here, health_check") -> Settings:
    return read_settings(Document.from_text(CONFIG.format(queue=queue, started=started), "c.yaml"))


def test_a_storage_that_is_started_is_taken() -> None:
    settings = read("storage: file_storage/here")
    assert settings.exporters["otlp_grpc"].config.sending_queue.storage == "file_storage/here"
    assert not settings.warnings


@pytest.mark.parametrize(
    ("queue", "started", "said"),
    [
        (
            "storage: file_storage",
            "file_storage/here, health_check",
            'sending_queue::storage: references extension "file_storage" which is not configured',
        ),
        (
            "storage: health_check",
            "file_storage/here, health_check",
            "sending_queue::storage: health_check is no storage",
        ),
        (
            "storage: file_storage/here",
            "health_check",
            'sending_queue::storage: references extension "file_storage/here" which is not started',
        ),
        ("storage: 5", "file_storage/here, health_check", "sending_queue::storage: must "),
        ("storage: ''", "file_storage/here, health_check", "sending_queue::storage: must "),
    ],
)
def test_what_is_wrong_is_said_with_its_place(queue: str, started: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read(queue, started)
    assert str(refused.value).startswith("c.yaml:6:16: exporters::otlp_grpc::sending_queue::storage: ")
    assert said in str(refused.value)


def test_a_storage_of_a_queue_that_is_off_is_a_warning() -> None:
    (warning,) = read("{enabled: false, storage: file_storage/here}").warnings
    assert "has no effect without a queue: enabled is false" in str(warning)


@pytest.mark.parametrize(
    ("storage", "retry", "seconds"),
    [("file_storage", {}, 0), (None, {}, 300), ("file_storage", {"max_elapsed_time": "5m"}, 300)],
)
def test_what_is_on_disk_is_tried_for_ever_unless_that_is_asked_for(storage: Any, retry: Any, seconds: float) -> None:
    settings = DeliverySettings.model_validate({"retry_on_failure": retry})
    backoff = plan_for(settings, stored=storage is not None).backoff
    assert backoff is not None
    assert backoff.give_up_after == seconds


STORES = """\
receivers: {otlp: {protocols: {grpc: }}}
processors: {tail_sampling: {policies: [{name: all, type: always_sample}], storage: %s}}
exporters: {otlp_grpc: {endpoint: backend:4317}}
extensions:
  file_storage/one: {directory: /var/lib/one}
  file_storage/two: {directory: %s}
service:
  extensions: [file_storage/one, file_storage/two]
  pipelines:
    traces:
      receivers: [otlp]
      processors: [tail_sampling]
      exporters: [otlp_grpc]
      durable: %s
"""


def stores(storage: str = "", directory: str = "/var/lib/two", durable: str = "") -> Settings:
    return read_settings(Document.from_text(STORES % (storage, directory, durable), "c.yaml"))


def test_a_storage_that_nothing_is_kept_in_is_named_with_what_would_use_it() -> None:
    (warning,) = stores("file_storage/one", durable="file_storage/one").warnings
    assert str(warning).splitlines()[0] == (
        "c.yaml:8:34: service::extensions::1: file_storage/two is started, but nothing is kept in it"
    )
    assert warning.hint == (
        "name it as durable of a pipeline or sending_queue::storage of an exporter, or leave it out"
    )


def test_a_durable_without_a_name_is_told_of_where_no_processor_names_one() -> None:
    warnings = stores("file_storage/two").warnings
    assert [str(warning).splitlines()[0] for warning in warnings] == [
        "c.yaml:8:16: service::extensions::0: file_storage/one is started, but nothing is kept in it",
    ]
    pipeline = stores().warnings[-1]
    assert str(pipeline).splitlines()[0] == (
        "c.yaml:14:7: service::pipelines::traces::durable: is empty: nothing is durable"
    )
    assert pipeline.hint == "name a file_storage, or remove it"


@pytest.mark.parametrize("directory", ["/var/lib/one", "/var/lib/../lib/one/", "/var//lib/one"])
def test_two_storages_on_one_folder_are_refused(directory: str) -> None:
    with pytest.raises(ConfigError) as refused:
        stores("file_storage/one", directory)
    assert str(refused.value).splitlines()[0] == (
        "c.yaml:6:33: extensions::file_storage/two::directory: is the folder of extension 'file_storage/one' already"
    )
    assert "give each its own directory" in str(refused.value)
