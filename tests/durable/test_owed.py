"""What exporters owe to the pipelines of a store, and when it is told that they are done with it."""

from podtrail.durable.owed import Owed
from podtrail.otlp import Batch


def test_what_ends_while_no_journal_is_open_is_written_as_soon_as_one_is() -> None:
    owed = Owed()
    ends = [owed.begin("traces", "file", Batch((), arrived=1)) for _ in range(2)]
    written: list[str] = []
    owed.written_by(lambda: written.append("first"))
    assert written == []
    ends[0]()
    owed.written_by(lambda: written.append("next"))
    assert written == ["first", "next"]
    ends[1]()
    assert written == ["first", "next"], "that it is to be written is told once"
