"""podtrail's lives: started, told to reload, ended and killed, and what each has of memory, descriptors and threads."""

import os
import re
import signal
import subprocess
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError

from benchmarks.loopback.contenders import podtrail_run
from benchmarks.loopback.processes import Ports, wait_for

_CONFIG = """\
extensions:
  file_storage: {{directory: {folder}, create_directory: true}}
receivers:
  otlp: {{protocols: {{grpc: {{endpoint: "127.0.0.1:{otlp}"}}}}}}
processors:
  tail_sampling:
    decision_wait: 5s
    decision_cache: {{sampled_cache_size: {cache}, non_sampled_cache_size: {cache}}}
    policies: [{{name: failed, type: status_code, status_code: {{status_codes: [ERROR]}}}}]
  link_stitching: {{ttl: 1m}}
  batch: {{timeout: 500ms}}
exporters:
  otlp_grpc:
    endpoint: 127.0.0.1:{sink}
    tls: {{insecure: true}}
    sending_queue: {{num_consumers: 4}}
    retry_on_failure: {{initial_interval: 500ms, max_interval: 2s, max_elapsed_time: 0s}}
service:
  extensions: [file_storage]
  telemetry: {{metrics: {{address: "127.0.0.1:{spare}"}}}}
  pipelines:
    traces:
      durable: file_storage
      receivers: [otlp]
      processors: [tail_sampling, link_stitching, batch]
      exporters: [otlp_grpc]
"""
_CACHES = (20_000, 21_000)
_PAGE = os.sysconf("SC_PAGE_SIZE")
_STOP = 60.0
_MISSING = re.compile(r'^podtrail_ledger_spans\{[^}]*term="missing"[^}]*\} (\S+)$', re.MULTILINE)


class Sample(NamedTuple):
    """What a process has at a moment."""

    time: float
    """Seconds since the process began."""
    memory: int
    """Bytes that are resident."""
    descriptors: int
    threads: int
    store: int
    """Bytes on disk."""


@dataclass(slots=True)
class Life:
    """From a start to an end."""

    process: subprocess.Popen[bytes]
    began: float
    ready: float = 0.0
    """Seconds until it listened."""
    samples: list[Sample] = field(default_factory=list)


class Lives:
    """All of them, one after the other, on one folder."""

    def __init__(self, folder: Path, ports: Ports) -> None:
        self.all: list[Life] = []
        self.reloads = self.kills = 0
        self.missing = 0.0
        """The largest term `missing` of the ledger that was seen."""
        self.bad_ends: list[str] = []
        """Ends by SIGTERM that were not in order."""
        self._store = folder / "store"
        self._config = folder / "pipeline.yaml"
        self._log = folder / "podtrail.log"
        self._ports = ports

    def begin(self) -> None:
        """Start podtrail; return when it listens."""
        self._configure()
        with self._log.open("ab") as log:
            began = time.monotonic()
            life = Life(subprocess.Popen(podtrail_run(self._config), stdout=log, stderr=log), began)
        self.all.append(life)
        wait_for(self._ports.otlp, life.process)
        life.ready = time.monotonic() - began

    def reload(self) -> None:
        """Change the configuration and tell it."""
        self.reloads += 1
        self._configure()
        self.all[-1].process.send_signal(signal.SIGHUP)

    def restart(self) -> None:
        """End it in order and start it again."""
        self.end()
        self.begin()

    def end(self) -> None:
        """End it in order."""
        process = self.all[-1].process
        process.send_signal(signal.SIGTERM)
        try:
            status = process.wait(_STOP)
        except subprocess.TimeoutExpired:
            self.bad_ends.append(f"not within {_STOP:g} s")
            process.kill()
            process.wait()
        else:
            if status:
                self.bad_ends.append(f"status {status}")

    def kill(self) -> None:
        """Kill it, if it runs."""
        if self.all and self.all[-1].process.poll() is None:
            self.kills += 1
            self.all[-1].process.kill()
            self.all[-1].process.wait()

    def sample(self) -> None:
        """Look at the process."""
        life = self.all[-1]
        proc = Path("/proc") / str(life.process.pid)
        store = sum(path.stat().st_size for path in self._files())
        resident = int((proc / "statm").read_text(encoding="ascii").split()[1]) * _PAGE
        held = len(os.listdir(proc / "fd")), len(os.listdir(proc / "task"))
        life.samples.append(Sample(time.monotonic() - life.began, resident, *held, store))
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._ports.spare}/metrics", timeout=5) as page:
                told = _MISSING.findall(page.read().decode())
        except (URLError, OSError):
            return  # it begins, or reloads
        self.missing = max([self.missing, *map(abs, map(float, told))])

    def failures(self) -> list[str]:
        """Return what podtrail said that it never should."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if line.startswith("Traceback") or '"level": "error"' in line]

    def _files(self) -> list[Path]:
        found = []
        for above, _, names in os.walk(self._store):
            found += [Path(above) / name for name in names]
        return [path for path in found if path.exists()]

    def _configure(self) -> None:
        cache = _CACHES[self.reloads % len(_CACHES)]
        text = _CONFIG.format(folder=self._store, cache=cache, **self._ports._asdict())
        self._config.write_text(text, encoding="utf-8")
