"""For tests of pipelines, policies and components: replay in virtual time, assertions, tests in YAML, a pytest plugin.

from podtrail.testing import assert_kept, given, replay
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from podtrail.replay.replayer import ExportedSpan, Run, replay, replay_beside
    from podtrail.testing.matchers import assert_dropped, assert_kept, assert_linked, given

__all__ = ["ExportedSpan", "Run", "assert_dropped", "assert_kept", "assert_linked", "given", "replay", "replay_beside"]

_REPLAYER: Final = frozenset({"ExportedSpan", "Run", "replay", "replay_beside"})


def __getattr__(name: str) -> Any:
    # Loaded on first use: the pytest plugin imports this package in every test run.
    if name in __all__:
        module = "podtrail.replay.replayer" if name in _REPLAYER else "podtrail.testing.matchers"
        return getattr(importlib.import_module(module), name)
    raise AttributeError(name)
