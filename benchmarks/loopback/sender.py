"""Sends requests in a process of its own: four connections, four requests under way on each, as fast as they are taken.

Or at a steady rate, where one is asked for. A refused request is sent again, as a client of OTLP does.
"""

import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

import grpc

from benchmarks.loopback.wire import LARGEST, METHOD, SERVICE, read_requests

if TYPE_CHECKING:
    _Export = grpc.UnaryUnaryMultiCallable[bytes, bytes]

_CONNECTIONS = _IN_FLIGHT = 4
_SECONDS = 30
_TRIES = 100
_PAUSE = 0.1
_AGAIN = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)
_TAKEN = b"", b"\n\0"
"""Answers without a rejected span: nothing, or a partial_success that says nothing."""
_OPTIONS = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", LARGEST)]


def send_all(path: Path, port: int, told: Connection) -> None:
    """Send a file's requests; say "ready", wait for a word, and tell the seconds it took or what went wrong."""
    send_steadily(path, port, 0, told)


def send_steadily(path: Path, port: int, rate: float, told: Connection) -> None:
    """Send as `send_all` does, but not before a request is due: `rate` a second, 0 for no such limit."""
    requests = list(read_requests(path))
    channels = [grpc.insecure_channel(f"127.0.0.1:{port}", options=_OPTIONS) for _ in range(_CONNECTIONS)]
    for channel in channels:
        grpc.channel_ready_future(channel).result(timeout=_SECONDS)
    told.send("ready")
    told.recv()
    began = time.monotonic()
    errors = _in_threads(_due(requests, began, rate), channels)
    told.send(errors[0] if errors else time.monotonic() - began)


def _due(requests: list[bytes], began: float, rate: float) -> Iterator[tuple[float, bytes]]:
    """Yield each request behind the monotonic second before which it is not to be sent."""
    for number, request in enumerate(requests):
        yield began + number / rate if rate else began, request


def _in_threads(requests: Iterator[tuple[float, bytes]], channels: list[grpc.Channel]) -> list[str]:
    errors: list[str] = []
    lock = threading.Lock()

    def following() -> tuple[float, bytes] | None:
        with lock:
            return next(requests, None)

    def work(export: "_Export") -> None:
        while not errors and (found := following()) is not None:
            due, request = found
            time.sleep(max(0.0, due - time.monotonic()))
            if error := _send(export, request):
                errors.append(error)

    workers = [
        threading.Thread(target=work, args=(channel.unary_unary(f"/{SERVICE}/{METHOD}"),))
        for channel in channels
        for _ in range(_IN_FLIGHT)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return errors


def _send(export: "_Export", request: bytes) -> str:
    """Return "" when it was taken, else why it was not."""
    for _ in range(_TRIES):
        try:
            answer = export(request, timeout=_SECONDS)
        except grpc.RpcError as error:
            if error.code() not in _AGAIN:
                return str(error)
            time.sleep(_PAUSE)
        else:
            return "" if answer in _TAKEN else f"rejected: {answer!r}"
    return f"refused {_TRIES} times"
