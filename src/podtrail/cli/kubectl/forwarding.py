"""A port of a Pod on this machine, for as long as it is asked: `kubectl port-forward` as a child."""

import re
import selectors
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Final

from podtrail.cli.kubectl.client import Kubectl, KubectlError
from podtrail.cli.kubectl.finding import PodtrailPod

_SECONDS: Final = 20.0
_ENDS_WITHIN: Final = 5.0
_FORWARDING: Final = re.compile(r"^Forwarding from (?:127\.0\.0\.1|\[::1\]):(\d+) ->", re.MULTILINE)
_MOST_SAID: Final = 4_096


@contextmanager
def forwarded(kubectl: Kubectl, pod: PodtrailPod, port: int) -> Iterator[int]:
    """Yield the local port, one that was free, by which a Pod's port is reached.

    Raises:
        KubectlError: it can't be forwarded; the text has kubectl's words.
    """
    command = kubectl.command(
        *("port-forward", "--namespace", pod.namespace, "--address", "127.0.0.1", f"pod/{pod.name}", f":{port}")
    )
    child = subprocess.Popen(  # noqa: S603 - the user's own kubectl, no shell
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        assert child.stdout is not None
        yield _local_port(child, child.stdout, pod)
    finally:
        child.terminate()
        try:
            child.wait(_ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        if child.stdout is not None:
            child.stdout.close()


def _local_port(child: subprocess.Popen[bytes], output: IO[bytes], pod: PodtrailPod) -> int:
    said = b""
    ends = time.monotonic() + _SECONDS
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        while (left := ends - time.monotonic()) > 0:
            if not selector.select(left):
                break
            raw = output.read1(_MOST_SAID)  # type: ignore[attr-defined] # a BufferedReader
            if not raw:
                child.wait(_ENDS_WITHIN)
                break
            said = (said + raw)[-_MOST_SAID:]
            if found := _FORWARDING.search(said.decode("utf-8", "replace")):
                return int(found[1])
    words = " ".join(said.decode("utf-8", "replace").split()) or f"nothing said within {_SECONDS:.0f} s"
    raise KubectlError(f"can't reach {pod.place}: kubectl port-forward: {words}")
