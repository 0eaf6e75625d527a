"""MurmurHash3, the variants x86_32 and x64_128 with seed 0 (Austin Appleby, in the public domain)."""

_MASK32, _MASK64 = 2**32 - 1, 2**64 - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


def murmur3_32(data: bytes) -> int:
    """Return the hash in 32 bits."""
    found = 0
    whole = len(data) - len(data) % 4
    for at in range(0, whole, 4):
        found ^= _scrambled32(int.from_bytes(data[at : at + 4], "little"))
        found = (_rotated(found, 13, 32) * 5 + 0xE6546B64) & _MASK32
    found ^= _scrambled32(int.from_bytes(data[whole:], "little"))
    found ^= len(data)
    found = (found ^ found >> 16) * 0x85EBCA6B & _MASK32
    found = (found ^ found >> 13) * 0xC2B2AE35 & _MASK32
    return found ^ found >> 16


def murmur3_128(data: bytes) -> tuple[int, int]:
    """Return the hash as two numbers of 64 bits."""
    first = second = 0
    whole = len(data) - len(data) % 16
    for at in range(0, whole, 16):
        first ^= _scrambled_first(int.from_bytes(data[at : at + 8], "little"))
        first = ((_rotated(first, 27, 64) + second) * 5 + 0x52DCE729) & _MASK64
        second ^= _scrambled_second(int.from_bytes(data[at + 8 : at + 16], "little"))
        second = ((_rotated(second, 31, 64) + first) * 5 + 0x38495AB5) & _MASK64
    second ^= _scrambled_second(int.from_bytes(data[whole + 8 :], "little"))
    first ^= _scrambled_first(int.from_bytes(data[whole : whole + 8], "little"))
    first, second = first ^ len(data), second ^ len(data)
    first = (first + second) & _MASK64
    second = (second + first) & _MASK64
    first, second = _finished(first), _finished(second)
    first = (first + second) & _MASK64
    return first, (second + first) & _MASK64


def _rotated(number: int, by: int, bits: int) -> int:
    return (number << by | number >> bits - by) & (1 << bits) - 1


def _scrambled32(block: int) -> int:
    return _rotated(block * 0xCC9E2D51 & _MASK32, 15, 32) * 0x1B873593 & _MASK32


def _scrambled_first(block: int) -> int:
    return _rotated(block * _C1 & _MASK64, 31, 64) * _C2 & _MASK64


def _scrambled_second(block: int) -> int:
    return _rotated(block * _C2 & _MASK64, 33, 64) * _C1 & _MASK64


def _finished(number: int) -> int:
    number = (number ^ number >> 33) * 0xFF51AFD7ED558CCD & _MASK64
    number = (number ^ number >> 33) * 0xC4CEB9FE1A85EC53 & _MASK64
    return number ^ number >> 33
