"""How long `podtrail webhook` takes to answer: 99 of 100 AdmissionReviews in under 5 ms.

`podtrail webhook` runs as a user runs it, over TLS on the loopback, asked as an API server asks: over a few connections
that stay open, one after the other and at a steady rate (100 a second: 6,000 Pods a minute). Beside it, in turns, the
barest server that aiohttp and TLS allow, which answers the same requests with a constant. Pods have 4 and 40 KiB of
JSON. Latency is from the first byte sent to the last one received, the client and each wait for a core in it; on a busy
machine it is the machine's. So the claim is held against the time for which the server ran for each request.
"""

import asyncio
import json
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from aiohttp import ClientSession, TCPConnector, web
from podtrail_webhook.certificates import make_certificate, utc_now

from tests.free_ports import free_ports

HOST = "localhost"
HEADERS = {
    "Content-Type": "application/json",
    "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
}
CONNECTIONS = 8
RATE = 100
"""Requests a second."""
REQUESTS = 1_000
ROUNDS = 3
LIMIT = 5.0
"""Milliseconds."""


class Answers(NamedTuple):
    """Milliseconds, one a request."""

    latency: list[float]
    cpu: list[float]
    """Of the server; empty where several requests are under way at once."""


class Server(NamedTuple):
    """What is asked."""

    name: str
    port: int
    pid: int

    def cpu(self) -> float:
        """Milliseconds for which its main thread has run; what it waited for a core is not in it."""
        return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[0]) / 1e6


def review(size: int) -> bytes:
    """An AdmissionReview of a Pod of about so many bytes."""
    variables = [{"name": f"SETTING_{number:04}", "value": "x" * 40} for number in range(size // 80)]
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web-0", "namespace": "default", "annotations": {"team": "a"}},
        "spec": {"containers": [{"name": "web", "image": "registry.example/web:1", "env": variables}]},
        "status": {},
    }
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "operation": "CREATE",
        "userInfo": {"username": "alice", "groups": ["system:authenticated"]},
        "object": pod,
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


async def ask(server: Server, tls: ssl.SSLContext, body: bytes, rate: int) -> Answers:
    """Sends all requests; `rate` 0 is one after the other."""
    values: list[float] = []
    url = f"https://{HOST}:{server.port}/mutate"
    async with ClientSession(connector=TCPConnector(limit=CONNECTIONS, ssl=tls)) as session:

        async def one() -> None:
            began = time.perf_counter()
            async with session.post(url, data=body, headers=HEADERS) as answer:
                text = await answer.read()
            values.append((time.perf_counter() - began) * 1e3)
            assert answer.status == 200, text
            assert b'"allowed": true' in text

        await asyncio.gather(*(one() for _ in range(CONNECTIONS)))  # the connections are opened beforehand
        values.clear()
        if not rate:
            cpu = [server.cpu()]
            for _ in range(REQUESTS):
                await one()
                cpu.append(server.cpu())
            return Answers(values, [after - before for before, after in pairwise(cpu)])
        began, tasks = time.perf_counter(), set()
        for number in range(REQUESTS):
            await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
            tasks.add(asyncio.create_task(one()))
        await asyncio.gather(*tasks)
    return Answers(values, [])


async def bare(port: int, cert: str, key: str) -> None:
    """The barest server: reads the body and answers with a constant."""
    answer = b'{"response": {"allowed": true}}'

    async def handle(request: web.BaseRequest) -> web.Response:
        await request.read()
        return web.Response(body=answer, content_type="application/json")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(web.Server(handle), HOST, port, ssl=context)
    await server.serve_forever()


@contextmanager
def running(command: list[str], port: int, tls: ssl.SSLContext) -> Iterator[int]:
    """A server in a process of its own, from when it answers on."""
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        asyncio.run(_ready(port, tls))
        yield process.pid
    finally:
        process.terminate()
        process.wait()


async def _ready(port: int, tls: ssl.SSLContext) -> None:
    for _ in range(300):
        try:
            _, writer = await asyncio.open_connection(HOST, port, ssl=tls)
        except OSError:
            await asyncio.sleep(0.1)
            continue
        writer.close()
        return
    raise SystemExit("a server did not start")


def main() -> None:
    """Print latencies of both, and whether the claim holds."""
    made = make_certificate([HOST], utc_now())
    tls = ssl.create_default_context(cadata=made.authorities.decode())
    with tempfile.TemporaryDirectory() as folder:
        cert, key = Path(folder) / "tls.crt", Path(folder) / "tls.key"
        cert.write_bytes(made.certificate)
        key.write_bytes(made.key)
        ports = free_ports(4)
        webhook = [sys.executable, "-m", "podtrail", "webhook", f"--endpoint={HOST}:{ports[0]}"]
        webhook += [f"--tls-cert-file={cert}", f"--tls-private-key-file={key}"]
        webhook += [f"--health-endpoint={HOST}:{ports[2]}", f"--metrics-endpoint={HOST}:{ports[3]}"]
        other = [sys.executable, "-m", "benchmarks.webhook", "bare", str(ports[1]), str(cert), str(key)]
        with running(webhook, ports[0], tls) as ours, running(other, ports[1], tls) as theirs:
            print(f"{REQUESTS:,} requests x {ROUNDS}, {CONNECTIONS} connections; ms: p50 / p99 / p99.9")
            servers = [Server("webhook", ports[0], ours), Server("bare", ports[1], theirs)]
            for size in (4 << 10, 40 << 10):
                for rate in (0, RATE):
                    _compare(servers, tls, review(size), rate)


def _compare(servers: list[Server], tls: ssl.SSLContext, body: bytes, rate: int) -> None:
    results: dict[str, list[Answers]] = {server.name: [] for server in servers}
    for _ in range(ROUNDS):
        for server in servers:
            results[server.name].append(asyncio.run(ask(server, tls, body, rate)))
    load = f"{len(body) / 1024:.0f} KiB, {f'{rate} a second' if rate else 'one by one'}"
    for name, answers in results.items():
        print(f"  {load:<22} {name:<8} {_shown([each.latency for each in answers])}", end="")
        print(f"    CPU {_shown([each.cpu for each in answers])}" if not rate else "", flush=True)
    if not rate:
        cpu = statistics.median(_at(each.cpu, 0.99) for each in results["webhook"])
        print(f"  {load:<22} 99 of 100 take at most {cpu:.2f} ms of CPU: {'holds' if cpu < LIMIT else 'DOES NOT HOLD'}")


def _at(values: list[float], share: float) -> float:
    """What this share of the values is below."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def _shown(rounds: list[list[float]]) -> str:
    return " / ".join(f"{statistics.median(_at(each, share) for each in rounds):6.2f}" for share in (0.5, 0.99, 0.999))


if __name__ == "__main__":
    asyncio.run(bare(int(sys.argv[2]), sys.argv[3], sys.argv[4]))
