"""Every log call of pkg/scheduler since 1.26 is understood, or ignored on purpose.

`python -m tools.kube_scheduler_texts` writes the table from the sources of the releases. A new message is `unknown` in
it until it gets a meaning in the vocabulary, or `ignored` is written there.
"""

from podtrail.reconstruction.vocabulary import MESSAGES, Kind, read_words
from tools.kube_scheduler_texts import read_log_calls

FIRST, LAST = "1.26-", "-1.37"
ELSEWHERE = {
    # Of client-go, component-base and cmd/kube-scheduler; of 1.20 to 1.25.
    Kind.THROTTLED: 1,
    Kind.LEADING: 1,
    Kind.WAITING: 1,
    Kind.LED: 4,
    Kind.STARTED: 2,
    Kind.PANICKED: 1,
    Kind.SCORED: 1,
    Kind.PLUGIN_FAILED: 2,
    Kind.WITHIN: 3,
    Kind.HAS_SPANS: 1,  # these three are logged by podtrail-kube-scheduler
    Kind.SPANS_ON: 1,
    Kind.SPANS_OFF: 1,
}


def test_no_log_call_is_unknown() -> None:
    rows = read_log_calls()
    assert len(rows) > 600
    assert any(row[0].startswith(FIRST) for row in rows)
    assert any(row[0].endswith(LAST) for row in rows)
    for _, _, _, status, message in rows:
        kind = MESSAGES.get(message.encode())
        assert status == (kind.name if kind else "ignored"), message
        assert kind or read_words(message.encode()) is None, message


def test_each_message_of_the_vocabulary_is_logged_by_some_release() -> None:
    logged = {message.encode() for *_, message in read_log_calls()}
    elsewhere: dict[Kind, int] = {}
    for message, kind in MESSAGES.items():
        if message not in logged:
            elsewhere[kind] = elsewhere.get(kind, 0) + 1
    assert elsewhere == ELSEWHERE
