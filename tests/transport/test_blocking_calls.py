"""Calls that block are made one after the other; one that never returns holds up neither its caller nor the end."""

import asyncio
import subprocess
import sys
import threading
from functools import partial

import pytest

from podtrail.transport.kafka.blocking_calls import BlockingCalls

SECONDS = 60.0

NEVER = """
import asyncio, threading
from podtrail.transport.kafka.blocking_calls import BlockingCalls

async def main() -> None:
    calls = BlockingCalls("stuck")
    try:
        await calls.make(threading.Event().wait, 0.01)
    except TimeoutError:
        print("given up")
    calls.end()

asyncio.run(main())
"""


async def test_calls_are_made_in_their_order_also_those_whose_caller_has_gone() -> None:
    made: list[int] = []
    may_go = threading.Event()

    def wait() -> None:
        may_go.wait(SECONDS)
        made.append(1)

    calls = BlockingCalls("calls")
    first = asyncio.create_task(calls.make(wait, SECONDS))
    await asyncio.sleep(0)
    first.cancel()
    second = asyncio.create_task(calls.make(partial(made.append, 2), SECONDS))
    await asyncio.gather(first, return_exceptions=True)
    may_go.set()
    await second
    calls.end()
    assert made == [1, 2]


async def test_what_a_call_raises_is_raised_where_it_is_waited_for_and_the_next_is_made() -> None:
    made: list[int] = []

    def fail() -> None:
        raise ValueError("no")

    calls = BlockingCalls("calls")
    with pytest.raises(ValueError, match="no"):
        await calls.make(fail, SECONDS)
    await calls.make(partial(made.append, 1), SECONDS)
    calls.end()
    assert made == [1]


def test_a_call_that_never_returns_is_given_up_and_the_process_ends() -> None:
    done = subprocess.run([sys.executable, "-c", NEVER], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "given up\n", "")
