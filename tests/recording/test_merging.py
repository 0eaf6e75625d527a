"""Merging: whatever way a recording is dealt out over files, together they are the recording again."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtrail.otlp import Group, encode_span, frame, resource_header, scope_header
from podtrail.recording import Damage, RecordingWriter
from podtrail.recording.merging import merged

HEADERS = resource_header({"service.name": "s"}), scope_header("t")
NAMES = ("a.otlp", "b.jsonl", "c.otlp.gz", "d.jsonl.zst")


def group(number: int) -> Group:
    id = (number + 1).to_bytes(16, "big")
    return Group(*HEADERS, id, frame([encode_span(trace_id=id, span_id=id[8:], name="n", start=1, end=2)]), 1)


def refuse(damage: Damage) -> None:
    pytest.fail(str(damage))


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 3)), max_size=40))
def test_what_was_dealt_out_over_files_is_one_recording_again(dealt: list[tuple[int, int]]) -> None:
    dealt.sort(key=lambda request: request[0])
    with TemporaryDirectory() as directory:
        paths = [Path(directory) / name for name in NAMES]
        for file, path in enumerate(paths):
            with RecordingWriter(path) as writer:
                for number, (arrival, to) in enumerate(dealt):
                    if to == file:
                        writer.write([group(number)], arrival)
        found = [
            (record.arrival, int.from_bytes(record.intake.groups[0].trace_id) - 1) for record in merged(paths, refuse)
        ]
    # Stable: at one time in the order of the files, and within a file as they stand there.
    numbered = [(arrival, to, number) for number, (arrival, to) in enumerate(dealt)]
    assert found == [(arrival, number) for arrival, to, number in sorted(numbered)]


def test_a_file_whose_clock_went_back_keeps_its_own_order(tmp_path: Path) -> None:
    for name, arrivals in (("a.otlp", (10, 5, 20)), ("b.otlp", (7, 12))):
        with RecordingWriter(tmp_path / name) as writer:
            for at in arrivals:
                writer.write([group(at)], at)
    records = list(merged([tmp_path / "a.otlp", tmp_path / "b.otlp"], refuse))
    assert [(record.arrival, record.put_off) for record in records] == [(7, 0), (10, 0), (10, 5), (12, 0), (20, 0)]


def test_damage_is_told_where_it_is_and_the_other_files_go_on(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("x\n", encoding="utf-8")
    with RecordingWriter(tmp_path / "b.otlp") as writer:
        writer.write([group(1)], 5)
    damages: list[Damage] = []
    assert len(list(merged([tmp_path / "a.jsonl", tmp_path / "b.otlp"], damages.append))) == 1
    assert [str(damage.position) for damage in damages] == [f"{tmp_path / 'a.jsonl'}:1"]
