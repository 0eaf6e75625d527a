"""Starts `podtrail` again and again as forks of a process that has loaded it, which costs a tenth of a start.

Orders come as lines of JSON on standard input; for each there is a line with the pid, and one when it has ended. The
fork is a process like any other: its own sockets, files, threads and signals, and it can be killed.
"""

import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import sys
from pathlib import Path
from typing import Any

ROOMS = (
    "podtrail.cli.run",
    "podtrail.pipeline",
    "podtrail.service",
    "podtrail.storage",
    "podtrail.transport",
    "podtrail_exporters",
    "podtrail_extensions.file_storage",
    "podtrail_processors",
    "podtrail_receivers.otlp",
)


def load() -> None:
    """Import what a running pipeline needs. Nothing of it may start a thread."""
    os.environ["GRPC_VERBOSITY"] = "NONE"
    import grpc.aio  # noqa: F401

    for room in ROOMS:
        try:
            module = importlib.import_module(room)
        except ModuleNotFoundError:
            continue
        for below in pkgutil.walk_packages(getattr(module, "__path__", ()), room + "."):
            importlib.import_module(below.name)


def live(order: dict[str, Any]) -> None:
    """Be the program ordered with its arguments, in the folder ordered, its standard error in the file ordered."""
    os.chdir(order["folder"])
    os.umask(0)  # what must not be read by others must say so itself
    nothing = os.open(os.devnull, os.O_RDWR)
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for fd, place in ((nothing, 0), (nothing, 1), (log, 2)):
        os.dup2(fd, place)
    os.close(nothing)
    os.close(log)
    sys.argv = [order["program"], *order["arguments"]]
    if order["death"]:
        sys.path.insert(0, str(Path(__file__).parent))
        importlib.import_module("interposed").interpose(order["death"], Path(order["store"]))
    if order["haste"] != 1:
        sys.path.insert(0, str(Path(__file__).parent))
        importlib.import_module("haste").make(order["haste"])
    if order["program"] == "podtrail":
        from podtrail.__main__ import main

        main()
    else:
        runpy.run_path(order["program"], run_name="__main__")


def main() -> None:
    """Fork on order until standard input ends."""
    load()
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    print(json.dumps({"loaded": os.getpid()}), flush=True)
    rest = b""
    while True:
        ready, _, _ = select.select([0, ended], [], [])
        if ended in ready:
            os.read(ended, 1000)
            bury()
        if 0 in ready:
            came = os.read(0, 1 << 16)
            if not came:
                return
            *orders, rest = (rest + came).split(b"\n")
            for order in orders:
                fork(json.loads(order), (ended, wake))


def fork(order: dict[str, Any], ours: tuple[int, int]) -> None:
    """Start one."""
    pid = os.fork()
    if pid:
        print(json.dumps({"pid": pid}), flush=True)
        return
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for fd in ours:
        os.close(fd)
    code = 70
    try:
        live(order)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - the end of a process
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(code)


def bury() -> None:
    """Tell of those that have ended."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        print(json.dumps({"pid": pid, "status": os.waitstatus_to_exitcode(status)}), flush=True)


if __name__ == "__main__":
    main()
