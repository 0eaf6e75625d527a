"""Masking: the same by the same, nothing but by the key, and what is everybody's stays."""

import re
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtrail.otlp import Value
from podtrail.recording.masking import Masking
from podtrail.recording.vocabulary import IN_WORDS, KEPT

MASK, OTHER = Masking(b"key"), Masking(b"another key")
SECRET = "any.key.of.somebody"
IN_WORDS_KEY, KEPT_KEY = min(IN_WORDS), min(KEPT)
TRACE = bytes.fromhex("0af7651916cd43dd8448eb211c80319c")


@given(st.text() | st.integers(-(2**63), 2**63 - 1) | st.binary(), st.booleans())
def test_the_same_is_replaced_by_the_same_with_the_same_key_alone(value: Value, in_words: bool) -> None:
    key = IN_WORDS_KEY if in_words else SECRET
    masked = MASK.value(key, value)
    assert masked == Masking(b"key").value(key, value)
    assert type(masked) is type(value)


def test_another_key_gives_other_replacements() -> None:
    for value in ("web-0", TRACE.hex(), str(UUID(int=7)), "10.0.0.1", "123456789012", b"12345678"):
        assert len({value, MASK.value(SECRET, value), OTHER.value(SECRET, value)}) == 3
    assert len({TRACE, MASK.trace_id(TRACE), OTHER.trace_id(TRACE)}) == 3


@pytest.mark.parametrize("size", [8, 16])
def test_an_id_within_a_text_is_replaced_as_the_id_is(size: int) -> None:
    id = TRACE[:size]
    masked = MASK.span_id(id) if size == 8 else MASK.trace_id(id)
    assert len(masked) == size
    for text in (id.hex(), id.hex().upper()):
        assert MASK.value(SECRET, f"of {text}!").split()[1] == f"{masked.hex()}!"  # type: ignore[union-attr]


def test_no_parent_stays_none() -> None:
    assert (MASK.span_id(bytes(8)), MASK.trace_id(bytes(16)), MASK.span_id(b"")) == (bytes(8), bytes(16), b"")


@pytest.mark.parametrize(
    ("shift", "before", "after"), [(5, 10, 15), (-5, 10, 5), (-50, 10, 1), (5, 2**64 - 2, 2**64 - 1), (0, 0, 1)]
)
def test_times_move_and_stay_times(shift: int, before: int, after: int) -> None:
    assert Masking(b"key", shift).time(before) == after


def test_names_keep_the_words_that_everybody_knows_and_plugins() -> None:
    assert MASK.name("plugin: AcmesOwn") == "plugin: AcmesOwn"
    masked = MASK.name("plugin: AcmesOwn of acme")
    assert masked.startswith("plugin: ")
    assert "acme" not in masked.lower()


def test_of_a_trace_state_the_sampling_threshold_is_kept() -> None:
    assert MASK.trace_state("acme=1, ot=th:8;rv:0123456789abcd ,vendor=x") == "ot=th:8;rv:0123456789abcd"
    assert MASK.trace_state("ot=secret:1") == ""


def test_of_schemas_those_of_opentelemetry_are_kept() -> None:
    known = "https://opentelemetry.io/schemas/1.27.0"
    assert MASK.schema_url(known) == known
    assert MASK.schema_url(f"{known}/of/somebody") == ""
    assert MASK.schema_url("https://acme.example/1") == ""


def test_values_of_everybodys_keys_stay() -> None:
    assert MASK.value(KEPT_KEY, "anything at all") == "anything at all"
    assert MASK.value(IN_WORDS_KEY, 12345) == 12345
    assert MASK.value(IN_WORDS_KEY, 1.5) == 1.5
    assert MASK.value(IN_WORDS_KEY, "30ms") == "30ms"
    assert MASK.value(SECRET, "30ms") != "30ms"


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_number_keeps_its_sign_and_no_more_digits_than_it_had(number: int) -> None:
    masked = MASK.value(SECRET, number)
    assert isinstance(masked, int)
    assert masked == 0 or (masked < 0) == (number < 0)
    assert len(str(abs(masked))) <= len(str(abs(number)))


@given(st.integers(0, 10**20).map(str) | st.from_regex(r"0[0-9]{1,8}", fullmatch=True))
def test_digits_in_a_text_stay_as_many(digits: str) -> None:
    masked = MASK.value(SECRET, digits)
    assert isinstance(masked, str)
    assert re.fullmatch(f"[0-9]{{{len(digits)}}}", masked) or len(digits) in (16, 32)


@pytest.mark.parametrize("number", [1234567.0, -1234567.0, 2.0**60, float("inf")])
def test_a_number_with_a_point_becomes_another(number: float) -> None:
    masked = MASK.value(SECRET, number)
    assert isinstance(masked, float)
    assert masked != number
    assert abs(masked) < 10_000_000


def test_numbers_with_a_point_are_told_apart_as_long_as_they_are_whole() -> None:
    assert MASK.value(SECRET, 2.0**53) == MASK.value(SECRET, 2.0**60)
    assert MASK.value(SECRET, 2.0**53 - 1) not in (MASK.value(SECRET, 2.0**53), MASK.value(SECRET, 2.0**53 - 2))


def test_lists_and_maps_are_replaced_within() -> None:
    value: Value = ["web-0", {"web-0": b"12345678", "x": True, "y": None}]
    masked = MASK.value(SECRET, value)
    assert isinstance(masked, list)
    name, inner = masked
    assert name == MASK.value(SECRET, "web-0")
    assert isinstance(inner, dict)
    assert name in inner
    assert list(inner.values()) == [MASK.value(SECRET, b"12345678"), True, None]


def test_a_uid_becomes_a_uid_however_it_is_written() -> None:
    uid = "1F3C0A52-0000-4000-8000-00000000000A"
    masked = MASK.value(SECRET, uid)
    assert str(UUID(str(masked))) == masked == MASK.value(SECRET, uid.lower()) != uid.lower()


def test_an_address_becomes_one_of_nobody() -> None:
    assert re.fullmatch(r"240(\.\d{1,3}){3}", str(MASK.value(SECRET, "192.168.7.12")))


def test_words_become_words_of_one_length_from_all_letters() -> None:
    words = [str(MASK.value(SECRET, f"name-{number}")) for number in range(200)]
    assert {len(word) for word in words} == {10}
    assert len(set(words)) == 200
    assert set("".join(words)) == set("abcdefghijklmnopqrstuvwxyz234567")
