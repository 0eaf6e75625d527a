"""For tests of pipelines, policies and components: replay in virtual time, contract checks, a pytest plugin."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podtrail.testing.replayer import ExportedSpan, Run, replay

__all__ = ["ExportedSpan", "Run", "replay"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: the pytest plugin imports this package in every test run.
    if name in __all__:
        from podtrail.testing import replayer

        return getattr(replayer, name)
    raise AttributeError(name)
