"""The floor: a gRPC server in Python that takes the bytes of each request and answers. `python -m … PORT`."""

import asyncio
import sys
from typing import Any

import grpc
import grpc.aio

from benchmarks.loopback.wire import LARGEST, METHOD, SERVICE


async def _answer(_raw: bytes, _context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
    return b""


async def _serve(port: int) -> None:
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", LARGEST)])
    method: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(_answer)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: method}),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
