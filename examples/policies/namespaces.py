"""Policies for `type: python`: see examples/policies/namespaces.yaml."""

from collections import OrderedDict

from podtrail.policy import TraceView, Vote

SECOND = 1_000_000_000


def lacks(trace: TraceView, *, resource: str) -> Vote:
    """Keep failed attempts for which some node had too little of a resource; the reason says how many nodes."""
    if not trace.mentions(f"Insufficient {resource}"):  # cheap: most traces are done with here
        return None
    if trace.attempt is None or not trace.attempt.failed:
        return None
    nodes = 0
    for span in trace.spans:
        for event in span.events:
            count = event.attributes.get("scheduler.nodes.count")
            if event.attributes.get("scheduler.reason") == f"Insufficient {resource}" and isinstance(count, int):
                nodes += count
    return f"{nodes} nodes have too little {resource}" if nodes else f"nodes have too little {resource}"


class FirstFailure:
    """Keep the first failed attempt of each namespace in so many seconds."""

    state_version = 1

    def __init__(self, every: float = 60.0, namespaces: int = 1000) -> None:
        self._every = int(every * SECOND)
        self._most = namespaces
        self._kept: OrderedDict[str, int] = OrderedDict()

    def save_state(self) -> tuple[tuple[str, int], ...]:
        """Return what survives a restart where the pipeline is durable: plain values."""
        return tuple(self._kept.items())

    def restore_state(self, version: int, state: tuple[tuple[str, int], ...]) -> None:
        """Go on from what was saved."""
        self._kept = OrderedDict(state)

    def vote(self, trace: TraceView) -> Vote:
        """Say yes once in a while. Time is the trace's: in a replay it is that of the recording."""
        attempt = trace.attempt
        if attempt is None or not attempt.failed:
            return None
        last = self._kept.get(attempt.namespace)
        if last is not None and trace.now - last < self._every:
            return None
        self._kept[attempt.namespace] = trace.now
        self._kept.move_to_end(attempt.namespace)
        while len(self._kept) > self._most:  # what is remembered must be bounded: namespaces come from spans
            self._kept.popitem(last=False)
        return f"the first failure in {attempt.namespace} for {self._every // SECOND} s"
