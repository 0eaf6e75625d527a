"""What it costs to ask who sends: a request with token, password or limits against one that nobody is asked about.

Over gRPC on loopback, sender and receiver in one process and its CPU time, the ways taking turns, the best of several
rounds; requests of one span, where it weighs most, and of 512. Besides, the CPU time of the asking alone.
"""

import asyncio
import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

import grpc
import grpc.aio
from podtrail_receivers.otlp import FACTORY

from benchmarks.wire import request_of_spans
from podtrail.component import Context
from podtrail.component.registry import find
from podtrail.otlp import Batch, frame, read_request, split, write_request
from podtrail.transport.admission import Admission
from podtrail.transport.caller import RemotePeer
from podtrail.transport.client_limits import ClientBudgets, ClientLimits
from podtrail.transport.refusal_log import RefusalLog

METHOD: Final = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
ROUNDS: Final = 9
REQUESTS: Final = {1: 300, 512: 60}
ALONE: Final = 20_000
TOKENS: Final = [f"token-{number}" for number in range(10)]
BCRYPT: Final = "$2y$05$c4WoMPo3SXsafkva.HHa6uXQZWr7oboPiC2bT/r7q1BB8I2s0BRqC"
"""Of myPassword: hashed once, and known from then on."""
LIMITS: Final = {"requests_per_second": 1e9, "bytes_per_second": 10**15, "connections": 100}
WAYS: Final[Mapping[str, tuple[str, Mapping[str, Any], Mapping[str, Any]]]] = {
    "nobody is asked": ("", {}, {}),
    "a token of ten": ("bearertokenauth", {"tokens": TOKENS}, {}),
    "a password": ("basicauth", {"htpasswd": {"inline": f"agent:{BCRYPT}"}}, {}),
    "limits": ("", {}, LIMITS),
    "a password and limits": ("basicauth", {"htpasswd": {"inline": f"agent:{BCRYPT}"}}, LIMITS),
}
SHOWN: Final = {
    "": (),
    "bearertokenauth": (("authorization", f"Bearer {TOKENS[-1]}"),),
    "basicauth": (("authorization", f"Basic {b64encode(b'agent:myPassword').decode()}"),),
}


async def _take(_: Batch) -> None:
    return


async def _authenticators(stack: AsyncExitStack, type_name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    if not type_name:
        return {}
    factory = find("extension", type_name)
    assert factory is not None
    made = factory.create(factory.Config.model_validate(config), Context(id=type_name))
    return {type_name: await stack.enter_async_context(made)}


async def _sender(stack: AsyncExitStack, way: str) -> Any:
    """Return what sends a request to a receiver that asks in this way."""
    type_name, config, limits = WAYS[way]
    protocol: dict[str, Any] = {"endpoint": "127.0.0.1:0"}
    if type_name:
        protocol["auth"] = {"authenticator": type_name}
    written = {"protocols": {"grpc": protocol}} | ({"client_limits": limits} if limits else {})
    receiver = FACTORY.create(FACTORY.Config.model_validate(written), Context(id="otlp"))
    receiver.authenticate_by(await _authenticators(stack, type_name, config))
    await stack.enter_async_context(receiver)
    running = asyncio.create_task(receiver.run(_take))
    stack.callback(running.cancel)
    channel = await stack.enter_async_context(grpc.aio.insecure_channel(receiver.endpoints["grpc"]))
    call: Any = channel.unary_unary(METHOD)

    async def send(body: bytes) -> None:
        await call(body, metadata=SHOWN[type_name])

    return send


async def _measure(spans: int, body: bytes) -> Mapping[str, Sequence[float]]:
    """Return CPU microseconds a request, by way, a figure a round."""
    took: dict[str, list[float]] = {way: [] for way in WAYS}
    async with AsyncExitStack() as stack:
        senders = {way: await _sender(stack, way) for way in WAYS}
        for number in range(ROUNDS + 1):
            for way, send in senders.items():
                began = time.process_time()
                for _ in range(REQUESTS[spans]):
                    await send(body)
                if number:  # the first warms up
                    took[way].append((time.process_time() - began) / REQUESTS[spans] * 1e6)
    return took


async def _alone(way: str) -> float:
    """Return the CPU microseconds of asking, nothing else."""
    type_name, config, limits = WAYS[way]
    log = Context(id="otlp").log
    async with AsyncExitStack() as stack:
        authenticators = await _authenticators(stack, type_name, config)
        budgets = ClientBudgets(ClientLimits.model_validate(limits)) if limits else None
        admission = Admission(RefusalLog(log), authenticator=authenticators.get(type_name), budgets=budgets)
        peer = RemotePeer("127.0.0.1", 4711, (), dict(SHOWN[type_name]).get)
        await admission.admit(peer)
        began = time.process_time()
        for _ in range(ALONE):
            await admission.admit(peer)
        return (time.process_time() - began) / ALONE * 1e6


def main() -> None:
    """Print ratios, and microseconds of this machine."""
    whole = request_of_spans(interleaved=False)
    first = read_request(whole).groups[0]
    single = write_request([first._replace(spans=frame(list(split(first.spans))[:1]), span_count=1)])
    for spans, body in ((1, single), (512, whole)):
        took = asyncio.run(_measure(spans, body))
        base = took["nobody is asked"]
        print(f"requests of {spans} spans, sender and receiver:")
        for way, figures in took.items():
            print(f"  {way:<24} {min(figures):8.1f} us a request  {min(figures) / min(base):.2f} of asking nobody")
    print("asking alone:")
    for way in list(WAYS)[1:]:
        print(f"  {way:<24} {asyncio.run(_alone(way)):8.1f} us a request")
