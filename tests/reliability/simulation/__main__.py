"""`python -m tests.reliability.simulation`: runs seeds on all cores; a failing one is told as its smallest story."""

import argparse
import logging
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence

from tests.reliability.simulation.generation import generated
from tests.reliability.simulation.mutations import MUTATIONS, first_found
from tests.reliability.simulation.telling import story, wrong_with
from tests.reliability.simulation.world import happened

_CHUNK = 20
_ENOUGH = 1000
"""Seeds among which every mutation must be found."""


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.reliability.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000, help="how many (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="only this one, told line by line")
    parser.add_argument("--mutations", action="store_true", help="plant faults: which seed finds each of them?")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="side by side (default: one a core)")
    parser.add_argument("--failures", type=int, default=5, help="end after so many (default: %(default)s)")
    return parser.parse_args(given)


def _one(seed: int) -> int:
    scenario = generated(seed)
    outcome = happened(scenario)
    print("\n".join([*scenario.lines(), "what happens:", *outcome.story]))
    if outcome.wrong:
        print("\n".join(story(scenario)))
    print(f"digest {outcome.digest}: {'WRONG' if outcome.wrong else 'all right'}")
    return bool(outcome.wrong)


def _mutations(seeds: range) -> int:
    missed = 0
    for mutation in MUTATIONS:
        found = first_found(mutation, seeds)
        missed += found is None
        said = "NOT FOUND" if found is None else f"found by seed {found[0]}: {found[1]}"
        print(f"{mutation}: {said}", flush=True)
    return missed > 0


def main(given: Sequence[str] | None = None) -> int:
    """Run what is asked for; return 1 when something is wrong."""
    arguments = _arguments(given)
    logging.disable(logging.CRITICAL)
    if arguments.seed is not None:
        return _one(arguments.seed)
    if arguments.mutations:
        return _mutations(range(arguments.first, arguments.first + min(arguments.seeds, _ENOUGH)))
    began, failed, done = time.monotonic(), 0, 0
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        seeds = range(arguments.first, arguments.first + arguments.seeds)
        for seed, wrong in pool.imap_unordered(wrong_with, seeds, _CHUNK):
            done += 1
            if wrong:
                failed += 1
                print("\n".join(story(generated(seed))), flush=True)
            if failed >= arguments.failures:
                break
            if done % 500 == 0:
                print(f"{done} seeds, {failed} wrong, {time.monotonic() - began:.0f} s", flush=True)
    print(f"{done} seeds from {arguments.first} on: {failed} wrong, {time.monotonic() - began:.0f} s")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
