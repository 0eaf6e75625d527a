"""Which policies have to be asked about a trace: many can say yes only where something is met that they seek."""

from collections.abc import Sequence

from podtrail_processors.evidence.evidence import Evidence, Readers
from podtrail_processors.evidence.sought import Sought
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator


class Gates:
    """Knows what each policy of a list seeks."""

    def __init__(self, policies: Sequence[Evaluator], readers: Readers) -> None:
        self.always = tuple(at for at, policy in enumerate(policies) if policy.gates is None)
        """The places of the policies that have to be asked about every trace."""
        self.guarded = len(policies) - len(self.always)
        """How many are left."""
        self.shut = 0
        """How many traces were asked about at those places only."""
        self._behind: dict[Sought, list[int]] = {}
        for at, policy in enumerate(policies):
            for sought in policy.gates or ():
                readers.seek(sought)
                self._behind.setdefault(sought, []).append(at)

    def open_for(self, trace: Evidence) -> Sequence[int]:
        """Return the places of the policies to be asked, in order; the others say `not_sampled`."""
        met = trace.met_anywhere()
        if not met or self._behind.keys().isdisjoint(met):
            self.shut += 1
            return self.always
        return sorted({*self.always, *(at for sought in met for at in self._behind.get(sought, ()))})
