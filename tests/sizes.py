"""The two sizes of tests that try many cases: properties, simulations and matrices of crashes.

The ordinary size is the smallest that finds every planted fault. `PODTRAIL_TESTS=large ./dev test` tries the large one.
"""

import os

_LARGE = os.environ.get("PODTRAIL_TESTS") == "large"


def large(ordinary: int, big: int) -> int:
    """Return the number of cases to try: `big` if the large size was asked for, else `ordinary`."""
    return big if _LARGE else ordinary
