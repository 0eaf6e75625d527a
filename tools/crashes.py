"""`./dev crashes`: kills podtrail hundreds of times under load, and accounts for every span that it has acknowledged.

Each story is one folder of storage with one load and several lives of podtrail; which of them ends at which write,
fsync or rename follows from the seed. A story that loses spans is named with the command that tells it again.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tests.reliability.crash.lives import zygote
from tests.reliability.crash.matrix import faults, plans, table, tell
from tests.reliability.crash.settings import MATRIX
from tests.reliability.crash.story import Told


def main() -> int:
    """Run the matrix; return 1 when a story has a fault."""
    parser = argparse.ArgumentParser(prog="./dev crashes", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=500, help="how many at least (500)")
    parser.add_argument("--seed", type=int, default=1, help="what all follows from (1)")
    parser.add_argument("--setting", default="", help="only settings whose name has this in it")
    parser.add_argument("--story", type=int, help="only this one; its folder is left for a look")
    parser.add_argument("--without-storage", action="store_true", help="as it is without: this must lose spans")
    return asyncio.run(_run(parser.parse_args()))


async def _run(chosen: argparse.Namespace) -> int:
    settings = [setting for setting in MATRIX if chosen.setting in setting.name]
    if not settings:
        sys.exit("no setting is named so; there are:\n" + "\n".join(setting.name for setting in MATRIX))
    again = f"./dev crashes --kills {chosen.kills} --seed {chosen.seed}"
    again += f" --setting '{chosen.setting}'" if chosen.setting else ""
    planned = list(enumerate(plans(chosen.kills, chosen.seed, settings)))
    if chosen.without_storage:
        again += " --without-storage"
        planned = [(n, plan._replace(setting=plan.setting.without_storage())) for n, plan in planned]
    if chosen.story is not None:
        planned = [planned[chosen.story]]
    folder = Path(tempfile.mkdtemp(prefix="podtrail-crashes-"))
    stories: list[Told] = []
    wrong = 0
    began = time.monotonic()
    async with zygote() as started:
        for number, plan in planned:
            told = await tell(plan, folder / str(number), started)
            stories.append(told)
            if found := faults(told):
                wrong += 1
                print(f"story {number}, {plan.setting.name} ({folder / str(number)}):", *found, sep="\n  ", flush=True)
                print(f"  again: {again} --story {number}", flush=True)
    print(table(stories))
    print(f"\n{wrong} of {len(stories)} stories with faults, {time.monotonic() - began:.0f} s")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
