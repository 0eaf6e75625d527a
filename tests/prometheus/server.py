"""Prometheus as a process: it fetches from podtrail, and answers what dashboards and alerts ask."""

import json
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.free_ports import free_ports

PATIENCE = 60.0
"""Seconds after which an answer that did not come will not come any more."""
INTERVAL = "250ms"
"""Between two looks at podtrail."""


class Prometheus:
    """A server on a free port of 127.0.0.1; what it keeps is in `folder`."""

    def __init__(self, program: Path, folder: Path, targets: Sequence[int], rules: Mapping[str, Any]) -> None:
        """Start it on podtrail's metrics at these ports, with these groups of rules."""
        (folder / "rules.yaml").write_text(json.dumps(rules), encoding="utf-8")
        scrape = {
            "job_name": "podtrail",
            "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in targets]}],
        }
        config = {
            "global": {"scrape_interval": INTERVAL, "evaluation_interval": INTERVAL},
            "rule_files": ["rules.yaml"],
            "scrape_configs": [scrape],
        }
        (folder / "prometheus.yaml").write_text(json.dumps(config), encoding="utf-8")
        (port,) = free_ports(1)
        self._address = f"http://127.0.0.1:{port}"
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    program,
                    f"--config.file={folder / 'prometheus.yaml'}",
                    f"--storage.tsdb.path={folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{port}",
                    "--enable-feature=exemplar-storage",
                ],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    def ready(self) -> "Prometheus":
        """Wait until it answers."""
        self.until(self._answers, "it answers")
        return self

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait(PATIENCE)

    def ask(self, what: str, **parameters: str) -> Any:
        """Return the data of an answer of its API; what is wrong with a question is a ValueError."""
        url = f"{self._address}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            with error:
                raise ValueError(f"{parameters}: {error.read().decode()}") from error

    def query(self, expression: str) -> Sequence[Mapping[str, Any]]:
        """Return the series that an expression gives now."""
        found: Sequence[Mapping[str, Any]] = self.ask("query", query=expression)["result"]
        return found

    def until(self, holds: Callable[[], object], what: str) -> None:
        """Ask again and again until something holds, within the deadline."""
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert self._process.poll() is None, self._log.read_text(encoding="utf-8")
            assert time.monotonic() < deadline, f"never: {what}"
            threading.Event().wait(0.1)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._address}/-/ready", timeout=PATIENCE):
                return True
        except OSError:
            return False
