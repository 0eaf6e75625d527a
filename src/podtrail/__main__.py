"""`python -m podtrail`, and the console script: Ctrl-C ends it at once, and silently, while it is still loading."""

import os
import signal
import sys
from pathlib import Path


def main() -> None:
    """Run the command line."""
    # Until the service has a handler of its own, the system ends the process: Python's would raise in whatever runs at
    # that moment, which may be a callback of the import machinery, where an exception is only printed and then lost.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # gRPC's core writes to standard error what it thinks of its peers (a handshake that failed, a connection that was
    # told to end), in a form of its own between our lines. What matters of it comes back as an error of the call.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # kubectl finds its plugins by the name of the program; people type two words.
    match Path(sys.argv[0]).name:
        case "kubectl-podtrail":
            from podtrail.cli.kubectl.plugin import run

            run(sys.argv[1:])
        case "kubectl_complete-podtrail":
            from podtrail.cli.kubectl.completion import complete

            complete(sys.argv[1:])
        case _:
            from podtrail.cli import main as command

            command()


if __name__ == "__main__":
    main()
