"""`./dev kafka [COMMAND ...]`: one broker on the loopback while a command runs, which finds it in BROKERS."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.kafka.cluster import Kafka
from tests.kafka.fixtures import DEFAULT_ASSETS


def main(command: list[str]) -> int:
    """Returns the command's exit code; without a command the broker is there until Ctrl-C."""
    subprocess.run([Path(__file__).parent / "build.sh"], check=True)
    assets = Path(os.environ.get("PODTRAIL_KAFKA_ASSETS") or DEFAULT_ASSETS)
    with tempfile.TemporaryDirectory(prefix="podtrail-kafka-") as folder:
        kafka = Kafka(assets, Path(folder))
        try:
            kafka.start()
            print(f"BROKERS={kafka.bootstrap()}", file=sys.stderr, flush=True)
            if command:
                environment = {**os.environ, "BROKERS": kafka.bootstrap()}
                return subprocess.run(command, env=environment, check=False).returncode
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()
            return 0
        finally:
            kafka.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
