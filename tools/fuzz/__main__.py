"""Fuzzing of everything that reads what others wrote, guided by coverage (atheris, libFuzzer).

    ./dev fuzz [PARSER ...] [--seconds N] [--jobs N]   look for inputs that break a promise; an hour unless told
    ./dev fuzz [PARSER ...] --minimise                 take what was found to reach new code into tests/fuzz/corpus

Each parser is a module of `tools/fuzz/parsers/`, which says what must hold; its inputs are in `tests/fuzz/corpus/`,
where each is tried by `./dev test fuzz`. What is found anew is kept in `out/fuzz/`, so that the next run goes on from
there. N seconds are shared by all parsers, side by side on the cores. An input that breaks a promise is made smaller,
named, and ends the command with 1: once mended, it belongs into the parser's corpus.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tools.fuzz.worker import write_seeds

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests/fuzz/corpus"
_OUT = ROOT / "out/fuzz"
_LARGEST = 4096
"""Bytes of an input."""
_PATIENCE = 60
"""Seconds for one input."""
_MEMORY = 1500
"""MiB of a process, with what counts branches."""
_SMALLER = 60
"""Seconds to make a finding smaller."""
_EXECUTED = re.compile(r"^stat::number_of_executed_units:\s+(\d+)", re.MULTILINE)
_COVERED = re.compile(r"\bcov: (\d+)")
_WRITTEN = re.compile(r"Test unit written to (\S+)")


class Outcome(NamedTuple):
    """What came of fuzzing one parser."""

    name: str
    executed: int
    covered: int
    """Branches and lines of podtrail's, as libFuzzer counts them."""
    finding: Path | None
    why: str


def parsers() -> list[str]:
    """Return the names of all parsers."""
    return sorted(path.stem for path in Path(__file__).with_name("parsers").glob("*.py") if path.stem != "__init__")


def main(arguments: Sequence[str]) -> int:
    """Fuzz, or minimise; return the exit status."""
    known = parsers()
    reader = argparse.ArgumentParser(prog="./dev fuzz", description=(__doc__ or "").partition("\n")[0])
    reader.add_argument("parser", nargs="*", help=f"of {', '.join(known)}; all unless named")
    reader.add_argument("--seconds", type=int, default=3600, help="for all of them together (3600)")
    reader.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="side by side (one a core)")
    reader.add_argument("--minimise", action="store_true", help="renew tests/fuzz/corpus instead")
    options = reader.parse_args(arguments)
    if unknown := sorted({*options.parser} - {*known}):
        reader.error(f"there is no parser {', '.join(unknown)}; there are {', '.join(known)}")
    chosen = options.parser or known
    jobs = max(1, min(options.jobs, len(chosen)))
    seconds = max(1, options.seconds * jobs // len(chosen))
    print(f"{', '.join(chosen)}; what libFuzzer says is in out/fuzz/PARSER.log", file=sys.stderr)
    with ThreadPoolExecutor(jobs) as pool:
        if options.minimise:
            print(*pool.map(_minimise, chosen), sep="\n")
            return 0
        return _tell([*pool.map(lambda name: _fuzz(name, seconds), chosen)], seconds)


def _tell(outcomes: Sequence[Outcome], seconds: int) -> int:
    print(f"{seconds} s each\n{'parser':<16}{'inputs':>12}{'covered':>10}  found")
    for name, executed, covered, finding, why in outcomes:
        print(f"{name:<16}{executed:>12,}{covered:>10,}  {finding.relative_to(ROOT) if finding else why or 'nothing'}")
    for outcome in outcomes:
        if outcome.why:
            print(f"\n{outcome.name}:\n{outcome.why}")
    return 1 if any(outcome.why for outcome in outcomes) else 0


def _fuzz(name: str, seconds: int) -> Outcome:
    """Fuzz one parser for so many seconds, or until something is found."""
    for folder in (_OUT / "corpus" / name, CORPUS / name, _OUT / "findings"):
        folder.mkdir(parents=True, exist_ok=True)
    write_seeds(name, _OUT / "seeds" / name)
    log = _OUT / f"{name}.log"
    status = _worker(
        name,
        log,
        f"-max_total_time={seconds}",
        "-print_final_stats=1",
        "-reload=0",
        f"-artifact_prefix={_OUT / 'findings' / name}-",
        f"-dict={_OUT / 'seeds' / name}.words",
        *map(str, (_OUT / "corpus" / name, CORPUS / name, _OUT / "seeds" / name)),
    )
    said = log.read_text(encoding="utf-8", errors="replace")
    executed, covered, found = _EXECUTED.search(said), _COVERED.findall(said), _WRITTEN.search(said)
    finding = _made_smaller(name, Path(found[1])) if found else None
    why = _why(said) if status else ""
    return Outcome(name, int(executed[1]) if executed else 0, int(covered[-1]) if covered else 0, finding, why)


def _worker(name: str, log: Path, *options: str) -> int:
    """Run libFuzzer on a parser, which says what it does in `log`; return its exit status."""
    bounds = (f"-max_len={_LARGEST}", f"-timeout={_PATIENCE}", f"-rss_limit_mb={_MEMORY}")
    command = [sys.executable, "-m", "tools.fuzz.worker", name, *bounds, *options]
    with log.open("wb") as said:
        return subprocess.run(command, cwd=ROOT, stdout=said, stderr=said, check=False).returncode  # noqa: S603


def _made_smaller(name: str, finding: Path) -> Path:
    """Return the smallest input found that does the same."""
    smaller = finding.with_suffix(".smaller")
    shorter = ("-minimize_crash=1", f"-max_total_time={_SMALLER}", f"-exact_artifact_path={smaller}")
    _worker(name, _OUT / f"{name}.smaller.log", *shorter, str(finding))
    return smaller if smaller.exists() else finding


def _why(said: str) -> str:
    """Return the traceback in what a worker said, else its last lines."""
    begin = said.find("=== Uncaught Python exception")
    text = said[begin:].partition("\n==")[0] if begin >= 0 else said[-2000:]
    return text.strip()[:4000] or "it ended without a word"


def _minimise(name: str) -> str:
    """Renew a parser's corpus: as few inputs as reach what all of them reach."""
    new = _OUT / "minimal" / name
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    write_seeds(name, _OUT / "seeds" / name)
    sources = [folder for folder in (CORPUS / name, _OUT / "corpus" / name, _OUT / "seeds" / name) if folder.is_dir()]
    log = _OUT / f"{name}.minimise.log"
    failed = _worker(name, log, "-set_cover_merge=1", "-use_counters=0", str(new), *map(str, sources))
    if failed or not any(new.iterdir()):
        return f"{name}: can't be minimised:\n{_why(log.read_text(encoding='utf-8', errors='replace'))}"
    mended = list((CORPUS / name).glob("mended-*")) if (CORPUS / name).is_dir() else []
    for path in mended:
        shutil.copy(path, new)
    shutil.rmtree(CORPUS / name, ignore_errors=True)
    shutil.copytree(new, CORPUS / name)
    files = [*(CORPUS / name).iterdir()]
    return f"{name}: {len(files)} inputs, {sum(path.stat().st_size for path in files):,} bytes"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
