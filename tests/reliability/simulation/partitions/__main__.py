"""`./dev simulate --partitions`: groups of consumers in virtual time, against one consumer that nothing happens to."""

import argparse
import logging
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from tests.reliability.simulation.partitions.fleet_setup import FleetSetup, drawn
from tests.reliability.simulation.partitions.planted_faults import FAULTS, first_found
from tests.reliability.simulation.partitions.telling import Told, told

_ENOUGH = 200
"""Seeds among which every fault must be found."""


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("./dev simulate --partitions", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--consumers", type=int, help="one simulation with so many, e.g. 200")
    parser.add_argument("--of", type=int, default=2000, help="partitions of --consumers (default: %(default)s)")
    parser.add_argument("--mutations", action="store_true", help="plant faults: which seed finds each of them?")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="side by side (default: one a core)")
    parser.add_argument("--failures", type=int, default=5, help="end after so many (default: %(default)s)")
    return parser.parse_args(given)


def _many(arguments: argparse.Namespace) -> Iterator[Told]:
    first = arguments.first
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        yield from pool.imap_unordered(told, map(drawn, range(first, first + arguments.seeds)), 4)


def _faults(arguments: argparse.Namespace) -> int:
    missed = 0
    for fault in FAULTS:
        found = first_found(fault, range(arguments.first, arguments.first + min(arguments.seeds, _ENOUGH)))
        missed += found is None
        said = "NOT FOUND" if found is None else f"found by seed {found[0]}: {found[1]}"
        print(f"{fault}: {said}", flush=True)
    return missed > 0


def main(given: Sequence[str] | None = None) -> int:
    """Run what is asked for; return 1 when something is wrong."""
    arguments, began = _arguments(given), time.monotonic()
    logging.disable(logging.CRITICAL)
    if arguments.mutations:
        return _faults(arguments)
    if arguments.consumers is not None:
        setup = FleetSetup(0, consumers=arguments.consumers, partitions=arguments.of, records=30, events=40, poll=2.0)
        runs = iter([told(setup)])
    elif arguments.seed is not None:
        print(drawn(arguments.seed))
        runs = iter([told(drawn(arguments.seed))])
    else:
        runs = _many(arguments)
    counts, failed = Counter[str](), 0
    for run in runs:
        counts += run.happened
        if run.wrong:
            failed += 1
            print("\n    ".join([f"seed {run.seed} is wrong:", *run.wrong[:10]]), flush=True)
        if failed >= arguments.failures:
            break
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    print(f"{failed} of {counts['seeds']} wrong, {time.monotonic() - began:.0f} s")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
