"""Strangers who knock for long: what they cost is bounded, in lines, labels and time, and others are served."""

import asyncio
import logging
import tracemalloc
from contextlib import suppress
from itertools import pairwise
from typing import Any

import grpc
import grpc.aio
import pytest

from tests.receivers.test_otlp_receiver_authentication import ASKS, METHOD, authenticator, call, post
from tests.sizes import large

DEADLINE = 300.0
GUESSES, CONNECTIONS, AT_ONCE = large(2_500, 10_000), 10, 50
MINUTE = 59.9
"""In seconds; another clock than the log's measures it."""


def guess(number: int, end: str = "") -> bytes:
    head = "POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n"
    return f"{head}Authorization: Bearer guess-{number}{'x' * 1000}\r\n{end}\r\n".encode()


async def guessing(endpoint: str, first: int, last: int) -> int:
    """Try tokens over one connection after the other, some requests at once; return how many were refused."""
    host, _, port = endpoint.rpartition(":")
    refused = 0
    for begin in range(first, last, AT_ONCE):
        reader, writer = await asyncio.open_connection(host, int(port))
        numbers = range(begin, min(begin + AT_ONCE, last))
        for number in numbers:
            writer.write(guess(number, "Connection: close\r\n" if number == numbers[-1] else ""))
        refused += (await reader.read()).count(b"HTTP/1.1 401 ")
        writer.close()
    return refused


def test_a_token_that_is_guessed_thousands_of_times_costs_a_line_a_minute_one_label_and_no_memory_and_others_are_served(
    serving: Any, request_of: Any, caplog: pytest.LogCaptureFixture
) -> None:
    body = request_of(1).SerializeToString()

    async def main() -> None:
        async with authenticator(token="s3cret") as ids, serving(authenticators=ids, http=ASKS) as served:
            assert await guessing(served["http"], 0, 500) == 500
            tracemalloc.start()
            before, _ = tracemalloc.get_traced_memory()
            share = (GUESSES - 500) // CONNECTIONS
            starts = [500 + at * share for at in range(CONNECTIONS)]
            async with asyncio.timeout(DEADLINE):
                attack = asyncio.gather(*(guessing(served["http"], at, at + share) for at in starts))
                assert [(await post(served["http"], body, "Bearer s3cret"))[0] for _ in range(20)] == [200] * 20
                assert sum(await attack) == GUESSES - 500
            after, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            # Guesses that were remembered would take more than 1,000 bytes each.
            assert after - before < (GUESSES - 500) * 500
            reason = {"transport": "http", "reason": "unauthenticated"}
            assert served.metric("podtrail_receiver_failed_requests_total", **reason) == GUESSES
            assert len(served.context.metrics.snapshot()["podtrail_receiver_failed_requests_total"]) == 1
            assert len(served.batches) == 20

    with caplog.at_level(logging.INFO):
        asyncio.run(main())
    lines = [record.created for record in caplog.records if record.levelno >= logging.WARNING]
    assert lines
    assert all(later - earlier >= MINUTE for earlier, later in pairwise(lines))
    assert "guess-" not in caplog.text


async def test_heads_beyond_all_measure_are_refused_and_the_next_request_is_served(
    serving: Any, request_of: Any
) -> None:
    body = request_of(1).SerializeToString()
    heads = [
        b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nX-Large: " + b"x" * 1_000_000,
        b"POST /v1/traces HTTP/1.1\r\nHost: x\r\n" + b"X-Many: y\r\n" * 50_000,
        b"POST /" + b"x" * 1_000_000,
    ]

    async with (
        authenticator(token="s3cret") as ids,
        serving(authenticators=ids, http=ASKS, grpc=ASKS) as served,
    ):
        host, _, port = served["http"].rpartition(":")
        for head in heads:
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(head)
            async with asyncio.timeout(DEADLINE):
                with suppress(ConnectionError):  # it is cut off while it is still sending
                    assert (await reader.read()).startswith(b"HTTP/1.1 4")
            writer.close()
        assert served.metric("podtrail_receiver_failed_requests_total", transport="http", reason="malformed") == 3
        assert (await post(served["http"], body, "Bearer s3cret"))[0] == 200
        async with grpc.aio.insecure_channel(served["grpc"]) as channel:
            method: Any = channel.unary_unary(METHOD)
            metadata = (("authorization", "Bearer s3cret"), ("x-large", "x" * 1_000_000))
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await method(body, timeout=DEADLINE, metadata=metadata)
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await call(served["grpc"], body, "Bearer s3cret") == ("OK", "")
