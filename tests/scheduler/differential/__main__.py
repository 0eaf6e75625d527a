"""`python -m tests.scheduler.differential` prints how far we agree with kube-scheduler, as docs/agreement.md has it.

With the names of cases it prints every comparison of theirs that differs.
"""

import logging
import sys
from collections.abc import Sequence

from . import answers
from .agreement import KNOWN_DIFFERENCES, Count, comparisons, counts
from .generate import cases


def table(rows: Sequence[Count]) -> str:
    """The table of docs/agreement.md."""
    numbers = [(row.cases, row.pods, row.comparisons, row.alike, row.known) for row in rows]
    total = Count("all", *map(sum, zip(*numbers, strict=True)))
    lines = ["| family | cases | Pods | comparisons | alike | % | known differences |", "|---|---|---|---|---|---|---|"]
    return "\n".join([*lines, *(each.row for each in rows), total.row])


def main(arguments: Sequence[str]) -> None:
    """Prints the table, or the differences of single cases."""
    logging.disable()  # the schedulers' errors are among what is compared
    if arguments:
        asked = [case for case in cases() if case.name in arguments or case.family in arguments]
        for each in comparisons(asked, answers.read()):
            if not each.alike:
                print(f"{each.place}\n  kube-scheduler: {each.theirs}\n  ours:           {each.ours}")
        return
    print(table(list(counts())))
    for place, why in KNOWN_DIFFERENCES.items():
        print(f"{place}: {why}")


if __name__ == "__main__":
    main(sys.argv[1:])
