"""The command gets each signal from its very start on."""

import asyncio
import os

from podtrail.cli.trace.child import Child, interrupted_by_signals

SIGNALS_AT_ONCE = 'trap "exit 5" HUP; kill -HUP $PPID; while :; do sleep 0.1; done'


async def code_of(command: str) -> int:
    with interrupted_by_signals():
        async with Child.started(["sh", "-c", command], os.environ) as child:
            return await child.ended()


def test_a_signal_that_comes_while_the_command_starts_reaches_it() -> None:
    assert [asyncio.run(code_of(SIGNALS_AT_ONCE)) for _ in range(10)] == [5] * 10
