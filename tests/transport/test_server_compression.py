"""Decompression within a limit: what comes out is what went in, and a bomb costs no more than the limit."""

import contextlib
import gzip
import time
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import cramjam
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from podtrail.transport.compression import TooLarge, Undecodable, decompress

MIB = 1 << 20
SNAPPY_STREAM = b"\xff\x06\x00\x00sNaPpY"
"""What a framed stream begins with; by itself one that holds nothing."""
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstandard.compress,
    "snappy": lambda raw: bytes(cramjam.snappy.compress_raw(raw)),
    "x-snappy-framed": lambda raw: bytes(cramjam.snappy.compress(raw)) or SNAPPY_STREAM,
    "lz4": lambda raw: bytes(cramjam.lz4.compress(raw)),
}
SEVERAL = ["gzip", "zstd", "x-snappy-framed", "lz4"]


@pytest.mark.parametrize("encoding", COMPRESS)
@given(content=st.binary(max_size=4_096), repeated=st.integers(1, 300))
def test_what_went_in_comes_out_up_to_the_very_limit(encoding: str, content: bytes, repeated: int) -> None:
    raw = content * repeated
    packed = COMPRESS[encoding](raw)
    assert decompress(packed, encoding, len(raw)) == raw
    if raw:
        with pytest.raises(TooLarge):
            decompress(packed, encoding, len(raw) - 1)


@pytest.mark.parametrize("encoding", SEVERAL)
@given(parts=st.lists(st.binary(max_size=2_048), min_size=1, max_size=5))
def test_members_and_frames_are_joined(encoding: str, parts: list[bytes]) -> None:
    packed = b"".join(map(COMPRESS[encoding], parts))
    assert decompress(packed, encoding, sum(map(len, parts))) == b"".join(parts)


@pytest.mark.parametrize("encoding", COMPRESS)
def test_data_cut_off_anywhere_is_undecodable(encoding: str) -> None:
    packed = COMPRESS[encoding](b"SchedulePod" * 200 + bytes(range(256)))
    for cut in set(range(len(packed))) - ({len(SNAPPY_STREAM)} if encoding == "x-snappy-framed" else set()):
        with pytest.raises(Undecodable):
            decompress(packed[:cut], encoding, MIB)


@pytest.mark.parametrize("encoding", COMPRESS)
@given(junk=st.binary(max_size=200))
def test_junk_is_undecodable_and_nothing_worse(encoding: str, junk: bytes) -> None:
    for data in (junk, COMPRESS[encoding](b"x") + b"\x00" + junk):
        with contextlib.suppress(Undecodable, TooLarge):
            assert len(decompress(data, encoding, MIB)) <= MIB


@pytest.mark.parametrize(
    ("encoding", "empty"),
    [("gzip", gzip.compress(b"")), ("zstd", zstandard.compress(b"")), ("zstd", b"\x50\x2a\x4d\x18" + bytes(4))],
    ids=["gzip", "zstd", "zstd to be skipped"],
)
def test_a_flood_of_empty_members_is_refused_at_once(encoding: str, empty: bytes) -> None:
    begin = time.process_time()
    with pytest.raises(Undecodable, match="more than"):
        decompress(empty * 500_000, encoding, MIB)
    assert time.process_time() - begin < 5  # without a limit: minutes


def test_members_may_be_as_many_as_a_request_of_64_mib_has_in_blocks() -> None:
    block = bytes(16 << 10)
    assert decompress(gzip.compress(block) * 4096, "gzip", 64 * MIB) == block * 4096


def stream_of_zeros(compressor: Any) -> bytes:
    return b"".join(compressor.compress(bytes(MIB)) for _ in range(256)) + bytes(compressor.flush())


BOMBS: list[tuple[str, Callable[[], bytes]]] = [
    ("gzip", lambda: stream_of_zeros(zlib.compressobj(9, wbits=31))),
    ("gzip", lambda: gzip.compress(bytes(MIB)) * 256),
    ("deflate", lambda: stream_of_zeros(zlib.compressobj(9))),
    ("zstd", lambda: stream_of_zeros(zstandard.ZstdCompressor().compressobj())),
    ("zstd", lambda: zstandard.compress(bytes(MIB)) * 256),
    ("snappy", lambda: bytes(cramjam.snappy.compress_raw(bytes(256 * MIB)))),
    ("snappy", lambda: b"\xff\xff\xff\xff\x0f" + bytes(100)),
    ("x-snappy-framed", lambda: bytes(cramjam.snappy.compress(bytes(256 * MIB)))),
    ("lz4", lambda: bytes(cramjam.lz4.compress(bytes(256 * MIB)))),
    ("lz4", lambda: bytes(cramjam.lz4.compress(bytes(MIB))) * 256),
]


@pytest.mark.parametrize(("encoding", "bomb"), BOMBS)
def test_a_bomb_costs_no_more_than_the_limit_in_memory_and_seconds(encoding: str, bomb: Callable[[], bytes]) -> None:
    packed, limit = bomb(), 16 * MIB
    tracemalloc.start()
    try:
        begin = time.process_time()
        with pytest.raises(TooLarge):
            decompress(packed, encoding, limit)
        assert time.process_time() - begin < 5  # without a limit: minutes
        assert tracemalloc.get_traced_memory()[1] < limit + 32 * MIB
    finally:
        tracemalloc.stop()


def test_a_zstd_window_beyond_what_every_decoder_supports_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27)
    frame = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    packed = frame.compress(b"x" * 100) + frame.flush()
    with pytest.raises(Undecodable):
        decompress(packed, "zstd", MIB)
