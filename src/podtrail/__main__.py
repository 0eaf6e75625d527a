"""`python -m podtrail`, and the console script: Ctrl-C ends it without a traceback while it is still loading, too."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from podtrail.cli import main as command
    except KeyboardInterrupt:
        sys.exit("Aborted!")
    command()


if __name__ == "__main__":
    main()
