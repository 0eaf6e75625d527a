"""What is remembered by a text that a sender chose has a bounded size."""

from podtrail.otlp.remembering import remembering


def test_the_last_results_are_remembered_and_those_of_long_texts_never() -> None:
    asked: list[tuple[str, str]] = []

    @remembering(2, 4)
    def read(text: str, more: str = "") -> int:
        asked.append((text, more))
        return len(text)

    for text in ("a", "a", "long!", "long!", "b", "c", "a"):
        assert read(text) == len(text)
    assert [text for text, _ in asked] == ["a", "long!", "long!", "b", "c", "a"]
    asked.clear()
    for more in ("x", "x", "long!", "long!"):
        read("d", more)
    assert [more for _, more in asked] == ["x", "long!", "long!"]
