"""Watches at an API server, written down with the time at which each event came."""

import http.client
import json
import socket
import threading
import time
from typing import Any, Final

from tests.envtest.control_plane import Api

_PATHS: Final = {"pods": "/api/v1/pods", "events": "/apis/events.k8s.io/v1/events"}
WATCHED: Final = tuple(_PATHS)


class Watch(threading.Thread):
    """Watches one resource of all namespaces until it is stopped."""

    def __init__(self, api: Api, kind: str) -> None:
        super().__init__(daemon=True)
        self.lines: list[str] = []
        listed = api.get(_PATHS[kind])
        self._write("list", listed)
        version = listed["metadata"]["resourceVersion"]
        self._connection = http.client.HTTPSConnection(api.host, api.port, context=api.tls)
        self._connection.request("GET", f"{_PATHS[kind]}?watch=true&resourceVersion={version}")
        self._answer = self._connection.getresponse()
        self._socket = self._connection.sock
        self._stopped = False
        self.start()

    def run(self) -> None:
        """Read events until the connection ends."""
        try:
            while line := self._answer.readline():
                self._write("event", json.loads(line))
        except (OSError, ValueError):
            if not self._stopped:
                raise

    def stop(self) -> list[str]:
        """End the watch and return its lines."""
        self._stopped = True
        if self._socket is not None:
            self._socket.shutdown(socket.SHUT_RDWR)
        self.join()
        self._connection.close()
        return self.lines

    def _write(self, kind: str, told: Any) -> None:
        for each in [told.get("object", told), *told.get("items", [])]:
            each.get("metadata", {}).pop("managedFields", None)
        self.lines.append(json.dumps({"arrivalUnixNano": str(time.time_ns()), kind: told}))
