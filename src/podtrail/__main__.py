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
    from podtrail.cli import main as command

    # kubectl finds its plugins by the name of the program; people type two words.
    command(prog_name="kubectl podtrail" if Path(sys.argv[0]).name == "kubectl-podtrail" else None)


if __name__ == "__main__":
    main()
