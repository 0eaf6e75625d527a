"""`sending_queue::storage` names a storage extension that is started; what is wrong is said with its place."""

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
