"""Starts programs as forks of a process that has loaded podtrail: a start costs a tenth of what it costs otherwise.

Its argument is the descriptor of a socket. An order is a length and JSON, with four descriptors: a socket for news of
the fork (its pid, at its end its status and CPU seconds), and its standard input, output and error. A fork is a process
like any other: it has its own sockets, files, threads and signals, and can be killed. It ends as other programs do, by
the end of the interpreter.
"""

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

ROOMS = ("podtrail", "podtrail_exporters", "podtrail_extensions", "podtrail_processors", "podtrail_receivers")
HEADER = 4
"""Bytes that tell how long an order is."""


def load() -> None:
    """Import what a running pipeline needs. Nothing of it may start a thread."""
    os.environ["GRPC_VERBOSITY"] = "NONE"
    import grpc.aio  # noqa: F401

    for room in ROOMS:
        module = importlib.import_module(room)
        for below in pkgutil.walk_packages(module.__path__, room + "."):
            if not below.name.endswith("__main__"):
                with contextlib.suppress(ImportError):  # needs what is installed on demand
                    importlib.import_module(below.name)
    gc.freeze()


def be(order: dict[str, Any]) -> None:
    """Be the program that was ordered: `podtrail` or a file of Python, with its arguments, folder and environment."""
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    if order["umask"] is not None:
        os.umask(order["umask"])
    for path, function, *arguments in order["before"]:
        sys.path.insert(0, str(Path(path).parent))
        getattr(importlib.import_module(Path(path).stem), function)(*arguments)
    program, *arguments = order["command"]
    sys.argv = [program, *arguments]
    if Path(program).suffix == ".py":
        runpy.run_path(program, run_name="__main__")
    else:
        from podtrail.__main__ import main

        main()


class Server:
    """Forks on order until the other side has closed the socket, then kills what is left."""

    def __init__(self, orders: socket.socket) -> None:
        self._orders = orders
        self._news: dict[int, socket.socket] = {}
        self._ended, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(self._wake)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def serve(self) -> dict[str, Any] | None:
        """Return None at the end; in each fork, what it was ordered to be."""
        while True:
            ready, _, _ = select.select([self._orders.fileno(), self._ended], [], [])
            if self._ended in ready:
                os.read(self._ended, 1000)
                self._bury()
            if self._orders.fileno() in ready:
                header, descriptors, _, _ = socket.recv_fds(self._orders, HEADER, 4)
                if not header:
                    break
                order = self._orders.recv(int.from_bytes(header), socket.MSG_WAITALL)
                if self._fork(descriptors):
                    told: dict[str, Any] = json.loads(order)
                    return told
        for pid in self._news:
            os.kill(pid, signal.SIGKILL)
        return None

    def _fork(self, descriptors: list[int]) -> bool:
        """Return True in the fork."""
        news = socket.socket(fileno=descriptors[0])
        pid = os.fork()
        if pid:
            for fd in descriptors[1:]:
                os.close(fd)
            self._news[pid] = news
            self._tell(news, {"pid": pid})
            return False
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for at, fd in enumerate(descriptors[1:]):
            os.dup2(fd, at)
            os.close(fd)
        for fd in (self._ended, self._wake):
            os.close(fd)
        for each in (self._orders, news, *self._news.values()):
            each.close()
        return True

    def _bury(self) -> None:
        while self._news:
            pid, status, used = os.wait4(-1, os.WNOHANG)
            if not pid:
                return
            with self._news.pop(pid) as news:
                cpu = round(used.ru_utime + used.ru_stime, 3)
                self._tell(news, {"status": os.waitstatus_to_exitcode(status), "cpu": cpu})

    @staticmethod
    def _tell(news: socket.socket, what: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # nobody asks any more
            news.sendall(json.dumps(what).encode() + b"\n")


if __name__ == "__main__":
    load()
    if (ordered := Server(socket.socket(fileno=int(sys.argv[1]))).serve()) is not None:
        be(ordered)
