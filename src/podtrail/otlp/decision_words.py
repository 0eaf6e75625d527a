"""The words by which people ask for decisions: the same ones in commands, on the page and in tests of policies."""

from collections.abc import Mapping
from typing import Final, Literal

Kept = Literal["sampled", "not_sampled"]
_WORDS: Final[Mapping[str, Kept]] = {
    "sampled": "sampled",
    "kept": "sampled",
    "not_sampled": "not_sampled",
    "not_kept": "not_sampled",
    "dropped": "not_sampled",
}
"""People say "dropped" of all that is not kept, and not only of what a policy drops."""
DECISION_CHOICES: Final = tuple(_WORDS)


def read_decision(text: str) -> Kept:
    """Return what a word asks for; `not_sampled` is all that is not kept. Capitals, blanks and dashes don't matter.

    Raises:
        ValueError: it is no word for a decision; the text says which there are.
    """
    found = _WORDS.get("_".join(text.lower().replace("-", " ").replace("_", " ").split()))
    if found is None:
        raise ValueError(f"decision is one of {', '.join(_WORDS)}.")
    return found


def fits_decision(decision: str, wanted: str) -> bool:
    """Return whether a sampler's decision is one that `read_decision` returned; "" wants any."""
    return not wanted or (decision == "sampled") == (wanted == "sampled")
