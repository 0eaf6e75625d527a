"""Sends requests at a steady rate in a process of its own, and tells how long each waited for its answer."""

import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

import grpc

from benchmarks.loopback.wire import LARGEST, METHOD, SERVICE, read_requests

if TYPE_CHECKING:
    _Export = grpc.UnaryUnaryMultiCallable[bytes, bytes]

_SECONDS = 30
_OPTIONS = [("grpc.max_send_message_length", LARGEST)]


def send_at(path: Path, port: int, rate: float, told: Connection) -> None:
    """Send a file's requests, `rate` a second; say "ready", wait for a word, and tell seconds each or what went wrong.

    A request goes out when it is due, whether or not those before it are answered.
    """
    requests = list(read_requests(path))
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=_OPTIONS) as channel:
        grpc.channel_ready_future(channel).result(timeout=_SECONDS)
        export: _Export = channel.unary_unary(f"/{SERVICE}/{METHOD}")
        told.send("ready")
        told.recv()
        waits: list[float] = []
        errors: list[str] = []
        left = threading.Semaphore(0)
        began = time.monotonic()
        for number, request in enumerate(requests):
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
            sent = time.perf_counter()

            def answered(call: "grpc.Future[bytes]", sent: float = sent) -> None:
                waits.append(time.perf_counter() - sent)
                if (error := call.exception()) is not None:
                    errors.append(str(error))
                left.release()

            export.future(request, timeout=_SECONDS).add_done_callback(answered)
        for _ in requests:
            left.acquire()
    told.send(errors[0] if errors else waits)
