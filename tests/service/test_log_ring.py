import json
import logging

from podtrail.service.log_ring import MOST_LINES, LogRing


def test_the_last_lines_are_held_and_the_older_counted() -> None:
    ring = LogRing()
    log = logging.getLogger("podtrail")
    with ring.listening():
        for number in range(MOST_LINES + 5):
            log.warning("line %d", number)
    log.warning("not listened to")
    lines = ring.lines()
    assert (len(lines), ring.forgotten) == (MOST_LINES, 5)
    assert json.loads(lines[-1])["msg"] == f"line {MOST_LINES + 4}"


def test_long_lines_are_cut_and_many_of_them_bounded() -> None:
    ring = LogRing()
    with ring.listening():
        for _ in range(500):
            logging.getLogger("podtrail").warning("x" * 20_000)
    assert sum(map(len, ring.lines())) <= 1 << 20
    assert all(len(line) < 10_000 for line in ring.lines())


def test_a_line_of_podtrails_is_held_once() -> None:
    ring = LogRing()
    with ring.listening():
        logging.getLogger("podtrail").warning("once")
        logging.getLogger("some.library").warning("a library")
    assert [json.loads(line)["msg"] for line in ring.lines()] == ["once", "a library"]
