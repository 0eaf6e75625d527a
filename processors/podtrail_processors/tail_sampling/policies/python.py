"""`python`: traces that a function or class of your own says yes to.

The code runs within podtrail and may do whatever podtrail may: use only what you trust as much. It sees a
`podtrail.policy.TraceView`, which can't be changed. A function takes it and returns True, False or None, or a text,
which means yes and is the reason; a class is made once with `args` and has a method `vote(trace)` that does the same.
With `num_shards` one is made for each shard; checking a configuration makes one, too, and a reload makes a new one.
A reload does not read the code of a module anew that is already imported: start again for that.

An exception leaves the policy without a vote on the trace; it is counted in `podtrail_python_policy_errors_total` and
logged at most once a minute. A policy that keeps taking longer than its `budget` is switched off with a line in the
log, shows in `podtrail_python_policy_switched_off`, and has no vote until the configuration is loaded anew. (In a
replay no time is measured.) A vote that never ends can't be interrupted.

A class that remembers traces keeps that across restarts of a durable pipeline with `state_version`, `save_state()` and
`restore_state(version, state)`, as a processor does (docs/components/processor.md). One that votes on each trace by
itself says so with `stateful = False`. One with neither has the pipeline's log replayed instead of checkpoints.
"""

from typing import Any

from pydantic import Field

from podtrail.config.types import MILLISECOND, SECOND, NonNegativeDuration, WarningPath
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyConfig


class Config(PolicyConfig):
    """Settings of `python`."""

    policy: str = Field(
        "",
        description="What votes: `module:object`, a function or class in a module that Python can import (see "
        "`PYTHONPATH`) or that lies beside the configuration file, "
        "or the name of an entry point of the group `podtrail.policies`.",
    )
    args: dict[str, Any] = Field(
        {}, description="Named arguments: of a class when it is made, of a function each time."
    )
    budget: NonNegativeDuration = Field(
        MILLISECOND, description="How long a vote may take in the long run; 0: as long as it likes."
    )
    overdraft: NonNegativeDuration = Field(
        SECOND,
        description="How much longer than its budget it may have taken in sum before it is switched off; votes that "
        "take less pay back.",
    )

    def create(self) -> Evaluator:
        """Return the policy.

        Raises:
            ValueError: there is no such object, or it can't vote; the text says what there is instead.
        """
        if not self.policy:
            raise ValueError("policy must name what votes: module:object, or an entry point of podtrail.policies")
        from podtrail_processors.tail_sampling.policies.python_loading import load
        from podtrail_processors.tail_sampling.policies.python_vote import PythonEvaluator

        return PythonEvaluator(self.policy, load(self.policy, self.args), self.budget, self.overdraft)

    def lints(self) -> list[tuple[WarningPath, str]]:
        """Return what is hardly meant."""
        return [] if self.budget else [(("budget",), "nothing keeps a slow policy from holding up all traces")]
