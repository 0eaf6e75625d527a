"""What is made of a configured component that can't be made."""

import pytest

from podtrail.component import Factory, StartError
from podtrail.config.model import Model
from podtrail.pipeline.host import Host
from podtrail.pipeline.settings import ComponentSettings


def test_a_factory_that_returns_nothing_does_not_start_and_is_named() -> None:
    host = Host()
    factory = Factory("processor", "drop_namespace", Model, lambda _config, _context: None)
    settings = ComponentSettings("drop_namespace", factory, Model())
    with pytest.raises(StartError, match=r"^processors::drop_namespace: create returned None, which is no component$"):
        host.make(settings, host.context("drop_namespace", "traces"))
