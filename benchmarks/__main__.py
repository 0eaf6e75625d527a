"""`./dev bench`: the measured claims. Each module here has a `main()` that prints ratios of one run.

A `main` that takes arguments is given those behind the name, and returns the exit status.
"""

import importlib
import inspect
import pkgutil
import sys
from pathlib import Path

HERE = Path(__file__).parent


def _claims() -> dict[str, str]:
    """Return the benchmarks by name, each with the first line of its docstring."""
    found = {}
    for module in pkgutil.iter_modules([str(HERE)]):
        source = importlib.import_module(f"benchmarks.{module.name}") if module.name != "__main__" else None
        if source is not None and hasattr(source, "main"):
            found[module.name] = (source.__doc__ or "").strip().partition("\n")[0]
    return found


def main(arguments: list[str]) -> int:
    """Run one benchmark, or list them."""
    claims = _claims()
    if arguments and arguments[0] in claims:
        measure = importlib.import_module(f"benchmarks.{arguments[0]}").main
        if inspect.signature(measure).parameters:
            return int(measure(arguments[1:]))
        if len(arguments) == 1:
            measure()
            return 0
    for name, claim in claims.items():
        print(f"  ./dev bench {name:<20} {claim}")
    return 2 if arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
