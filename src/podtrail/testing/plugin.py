"""The pytest plugin: `replay` as a fixture, for tests of a policy file. Found by pytest through its entry point."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from podtrail.testing.replayer import Run


@pytest.fixture(name="replay")
def _replay() -> Callable[..., "Run"]:
    """Return `podtrail.testing.replay`: `run = replay("pipeline.yaml", "recording.otlp")`."""
    # Imported when used: a test run that needs no pipeline should not pay for one.
    from podtrail.testing import replay

    return replay
