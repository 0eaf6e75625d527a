"""The account of every span: acknowledged, and then delivered, decided away or undecided; what came twice, and when."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.reliability.crash.load import Client, Request, Trace
from tests.reliability.crash.recorder import Came, Recorder
from tests.reliability.crash.settings import Setting


@dataclass
class Account:
    """Of one story."""

    kills: int
    requests: int = 0
    acknowledged: int = 0
    """Spans."""
    delivered: int = 0
    decided_away: int = 0
    lost: Counter[int] = field(default_factory=Counter)
    """Spans that were acknowledged, are neither delivered nor decided away: by the life that acknowledged them."""
    kept_wrongly: int = 0
    """Spans that came, though it was decided, or would have been, that they do not."""
    invented: int = 0
    """Spans that nobody has sent."""
    duplicates: Counter[int] = field(default_factory=Counter)
    """Spans that came again, by the life in which they came before."""
    answered_before: int = 0
    """Of how many requests in a row, the last of a life, had the backend answered the first when that came again."""
    sent_again: int = 0
    """Of the duplicates: of requests that the client has sent more than once."""
    numbers: list[str] = field(default_factory=list)
    """What is wrong with the numbers of attempts."""
    otherwise: list[str] = field(default_factory=list)
    """What came otherwise than from a run over the same arrivals that nothing has interrupted."""

    @property
    def faults(self) -> list[str]:
        """What must not be."""
        told = {
            "lost": self.lost.total(),
            "kept though decided away": self.kept_wrongly,
            "invented": self.invented,
        }
        return [f"{count} spans {what}" for what, count in told.items() if count] + self.numbers + self.otherwise


def account(
    setting: Setting, clients: Sequence[Client], requests: Sequence[Request], recorder: Recorder, kills: int
) -> Account:
    """Reckon up a story."""
    made = Account(kills, requests=len(requests))
    came = Counter(id for request in recorder.came for id in request.spans)
    known = {id for request in requests for _, id in request.spans}
    made.invented = sum(count for id, count in came.items() if id not in known)
    for request in requests:
        for trace, id in request.spans:
            _enter(made, request, trace, came[id], sampled=setting.sampled)
    _duplicates(made, requests, recorder)
    if setting.stitching:
        made.numbers = _numbers(clients, recorder)
    return made


def _enter(made: Account, request: Request, trace: Trace, came: int, *, sampled: bool) -> None:
    fate = trace.fate(sampled=sampled)
    if request.taken_in is None:
        return
    made.acknowledged += 1
    if came:
        made.delivered += 1
        made.kept_wrongly += fate in ("dropped", "undecided")
    elif fate == "kept":
        made.lost[request.taken_in] += 1
    else:
        made.decided_away += 1


def _duplicates(made: Account, requests: Sequence[Request], recorder: Recorder) -> None:
    again = {id for request in requests if request.tries > 1 for _, id in request.spans}
    last_of: dict[int, int] = {}
    for came in recorder.came:
        last_of[came.life] = max(came.answered, last_of.get(came.life, 0))
    before: dict[bytes, Came] = {}
    for came in recorder.came:
        for id in came.spans:
            if id in before:
                first = before[id]
                made.duplicates[first.life] += 1
                made.sent_again += id in again
                if first.answered:
                    made.answered_before = max(made.answered_before, last_of[first.life] - first.answered + 1)
            before[id] = came


def _numbers(clients: Sequence[Client], recorder: Recorder) -> list[str]:
    wrong = []
    for client in clients:
        for uid, roots in client.pods.items():
            found = [recorder.numbers.get(root, set()) for root in roots]
            right: list[set[int]] = [{number} for number in range(1, len(roots) + 1)]
            # The last attempt may not have been acknowledged before the story ended.
            if found != right[: len(found)] and [n for n in found if n] != right[: len([n for n in found if n])]:
                wrong.append(f"attempts of Pod {uid} are numbered {found}")
    return wrong
