"""Label values, bounded in number and length: they come from spans, which anybody may have sent."""

from collections.abc import Hashable

_OTHER = "other"
_LONGEST = 128


class Series:
    """Admits so many different combinations of label values; all others are `other`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[Hashable] = set()

    def labels(self, *values: str) -> tuple[str, ...]:
        """Return the label values to count under."""
        cut = tuple(value[:_LONGEST] for value in values)
        if cut not in self._known:
            if len(self._known) >= self._most:
                return (_OTHER,) * len(values)
            self._known.add(cut)
        return cut
