"""The configuration reference is what the configuration classes say."""

from podtrail.component import registry
from tools.docs.configuration import reference


def test_every_component_and_shared_setting_has_its_place() -> None:
    written = reference(registry.all_factories())

    for kind in ("receiver", "processor", "exporter", "extension"):
        for name in registry.types(kind):
            assert f"### `{name}`\n" in written
    assert "#### `RetrySettings`" in written
    assert "| `initial_interval` | duration | `5s` | Wait before the first retry. |" in written
