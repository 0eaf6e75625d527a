import pytest

from podtrail.otlp import read_message


def test_a_message_gives_its_counted_reasons_and_what_preemption_could_do() -> None:
    why = read_message(
        "0/34 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. "
        "preemption: 0/34 nodes are available: 33 Preemption is not helpful for scheduling."
    )
    assert [(no.plugin, no.reason, no.nodes) for no in why.rejections] == [
        ("TaintToleration", "node(s) had untolerated taint(s)", 1),
        ("NodeResourcesFit", "Insufficient cpu", 2),
    ]
    assert (why.feasible, why.nodes, why.message_only) == (0, 34, True)
    assert why.preemption == "33 Preemption is not helpful for scheduling"


def test_a_taint_with_commas_stays_in_one_piece() -> None:
    why = read_message("0/2 nodes are available: 1 node(s) had untolerated taint {a: b, c}, 1 Too many pods.")
    assert [no.reason for no in why.rejections] == ["node(s) had untolerated taint {a: b, c}", "Too many pods"]


@pytest.mark.parametrize("message", ["no such thing", "0/9 nodes are available:", "a: b, 3 c", "9" * 5000])
def test_another_message_is_one_reason_as_it_stands(message: str) -> None:
    (no,) = read_message(message).rejections
    assert (no.reason, no.nodes, no.plugin) == (message, None, "")


def test_no_message_gives_no_reason() -> None:
    assert read_message("").rejections == ()


def test_a_reason_nobody_is_known_for_has_no_author() -> None:
    (no,) = read_message("0/1 nodes are available: 1 the moon is full.").rejections
    assert (no.plugin, no.reason, no.nodes) == ("", "the moon is full", 1)


def test_absurd_counts_are_no_counts() -> None:
    why = read_message(f"0/{'9' * 5000} nodes are available: {'9' * 5000} Insufficient cpu.")
    assert why.nodes is None
    assert why.rejections[0].nodes is None


def test_a_message_made_of_digits_takes_no_longer_than_another(in_time: None) -> None:
    message = "1" * 1_000_000 + "/" + "3" * 1_000_000
    (no,) = read_message(message).rejections
    assert no.reason == message
