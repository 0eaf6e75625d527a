"""How much `rate_limiting` and `bytes_limiting` let through, in whole numbers and pipeline time."""

from podtrail.config.types import SECOND, WarningPath


class Limiter:
    """A token bucket: fills at a rate up to its burst, is full at first. What does not fit takes nothing.

    Unlike `podtrail_kubernetes.token_bucket` it counts amounts, spans or bytes, exactly, and gives none in advance.
    """

    def __init__(self, per_second: int, burst: int) -> None:
        self._per_second = max(0, per_second)
        self._burst = burst
        # Tokens are counted in billionths, of which a token a second makes one a nanosecond.
        self._level = burst * SECOND
        self._filled_at: int | None = None

    def take_over(self, other: "Limiter") -> None:
        """Go on from what is left in another limiter, as far as it fits."""
        self._level = min(self._burst * SECOND, other._level)
        self._filled_at = other._filled_at

    def saved(self) -> tuple[int, int | None]:
        """Return what is left, and since when it fills."""
        return self._level, self._filled_at

    def restore(self, level: int, filled_at: int | None) -> None:
        """Go on from what was left, as far as it fits."""
        self._level, self._filled_at = min(self._burst * SECOND, level), filled_at

    def level(self, now: int) -> int:
        """Return how many whole tokens there are at a time in Unix nanoseconds."""
        if self._filled_at is not None:
            self._level = min(self._burst * SECOND, self._level + max(0, now - self._filled_at) * self._per_second)
        self._filled_at = now
        return self._level // SECOND

    def take(self, tokens: int, now: int) -> bool:
        """Take tokens at a time in Unix nanoseconds, all or none; return whether there were as many."""
        if tokens > self.level(now):
            return False
        self._level -= tokens * SECOND
        return True


def burst_of(burst_capacity: int, per_second: int) -> int:
    """Return how much may come at once, in the unit of `per_second`: by default what two seconds bring."""
    return burst_capacity if burst_capacity > 0 else 2 * per_second


def nothing_comes_back(key: str, per_second: int, burst_capacity: int) -> list[tuple[WarningPath, str]]:
    """Return a warning about a rate, under its key, at which a bucket never fills again."""
    if per_second > 0:
        return []
    return [((key,), "at no rate it keeps only one burst" if burst_capacity > 0 else "at no rate it keeps nothing")]
