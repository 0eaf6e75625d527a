"""What is simulated of consumers and partitions: drawn from a seed, or as a command asks for it."""

import random
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from podtrail.pipeline.settings import Settings
from tests.pipeline.configurations import ALL, CONFIGURATIONS, FAILED, RATE, SOME, Tried, sampler

Kind = Literal["exact", "reloaded", "forgetful"]
"""exact: nobody may tell from what is delivered that anything has happened. reloaded: policies change meanwhile.
forgetful: checkpoints come back damaged, or none are kept."""

_KINDS: Final[tuple[Kind, ...]] = ("exact", "reloaded", "forgetful")
_CACHES: Final = {"decision_cache": {"sampled_cache_size": 50, "non_sampled_cache_size": 50}}
_NAMES: Final = (
    "a sampler that waits",
    "decisions are remembered",
    "time, room and size",
    "senders wait while all is undecided",
    "budgets",
    "shadows",
    "stress",
    "shards",
    "spans judged as they come",
    "nothing is held",
)
_EXACT: Final = {
    "budgets that are remembered": Tried(sampler(FAILED, SOME, RATE, **_CACHES)),
    **{name: CONFIGURATIONS[name] for name in _NAMES},
}


@dataclass(frozen=True)
class Luck:
    """How often what goes wrong: shares of one."""

    lost_commits: float = 0.05
    lost_answers: float = 0.05
    checkpoints: float = 0.02
    """That a checkpoint is written that is not due."""
    failed_checkpoints: float = 0.1
    damaged_checkpoints: float = 0.0
    slow: float = 0.02
    """That a delivery takes long."""
    refused: float = 0.02
    """That a delivery has to be tried again."""


@dataclass(frozen=True)
class FleetSetup:
    """What is simulated."""

    seed: int
    kind: Kind = "exact"
    configuration: str = "budgets that are remembered"
    consumers: int = 5
    partitions: int = 12
    added: int = 0
    """Partitions that come later."""
    records: int = 40
    seconds: float = 90.0
    events: int = 12
    """Rebalances, kills and the like."""
    poll: float = 0.5
    """Seconds between two looks at a partition."""
    keeps_checkpoints: bool = True
    queue_size: int = 50
    """Batches that wait for a consumer's exporter."""
    luck: Luck = field(default_factory=Luck)

    def settings(self) -> Settings:
        """Return what consumers begin with."""
        if self.kind == "forgetful":
            return Tried(sampler(ALL, **_CACHES)).settings()
        return (Tried(sampler(FAILED)) if self.kind == "reloaded" else _EXACT[self.configuration]).settings()

    def other_settings(self) -> Settings:
        """Return what a reload brings: policies that keep more, and wait longer."""
        return Tried(sampler(ALL, decision_wait="20s")).settings()


def drawn(seed: int) -> FleetSetup:
    """Return what a seed stands for."""
    rng = random.Random(f"setup {seed}")
    setup = FleetSetup(
        seed,
        kind=rng.choices(_KINDS, [7, 1, 2])[0],
        configuration=rng.choice(["budgets that are remembered", *_EXACT]),
        consumers=rng.randint(1, 5),
        partitions=rng.randint(1, 8),
        added=rng.choice([0, 0, 2]),
        records=rng.randint(10, 40),
        events=rng.randint(2, 14),
        poll=rng.choice([0.5, 1.0, 2.0]),
    )
    if rng.random() < 0.4:  # whoever reads has to wait for the exporter
        setup = replace(setup, queue_size=2, luck=replace(setup.luck, slow=0.1))
    if setup.kind == "reloaded":
        return replace(setup, luck=replace(setup.luck, failed_checkpoints=rng.choice([0.1, 0.9])))
    if setup.kind == "exact":
        return setup
    luck = replace(setup.luck, damaged_checkpoints=rng.choice([0.1, 1.0]))
    return replace(setup, luck=luck, keeps_checkpoints=rng.random() < 0.6)
