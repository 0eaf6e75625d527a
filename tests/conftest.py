"""Settings of all tests.

Properties are tried on the same examples in every run, so that what passes here passes elsewhere; to look for new
ones: `./dev test --hypothesis-profile=search`. `./dev test` runs them side by side; one that fails only then is run
alone by `./dev test -n0 …`.
"""

import asyncio
import inspect
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from podtrail.config.secret_keys import forget_secrets
from tests.sizes import large

pytest_plugins = [
    "tests.recorder",
    "tests.extensions.browser",
    "tests.envtest.control_plane",
    "tests.kafka.fixtures",
    "tests.node.fixtures",
]

# How long an example takes says nothing on a shared machine.
_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
_ORDINARY = large(40, 100)
settings.register_profile(
    "podtrail", deadline=None, suppress_health_check=_SLOW, derandomize=True, max_examples=_ORDINARY
)
settings.register_profile("search", deadline=None, suppress_health_check=_SLOW, max_examples=1000)
settings.load_profile("podtrail")


@pytest.fixture(autouse=True)
def _secrets_of_one_test() -> Iterator[None]:
    """Have the secrets that a test configures be unknown to the next."""
    yield
    forget_secrets()


# A shell starts what runs in the background with Ctrl-C ignored, and so it would stay in every process started here.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return two workers for each core of this process: tests wait for a third of their time and more."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 2 * cores


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine, on a loop of its own."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    asyncio.run(test(**{name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}))
    return True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with tests that share a node, a control plane, brokers or a browser: one worker gets them, starts one.

    They are the longest as well: at the end all but one worker would wait for them.
    """
    shared = ("node", "control_plane", "kafka", "page")
    items.sort(key=lambda item: [kind not in item.keywords for kind in shared])


@pytest.fixture
def distribution(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that installs a distribution of components into a folder of its own, for PYTHONPATH.

    It takes the distribution's name, its modules by name, and its entry points: names to `module:object`.
    """

    def install(name: str, modules: Mapping[str, str], components: Mapping[str, str]) -> Path:
        folder = tmp_path / f"{name}-installed"
        about = folder / f"{name}-1.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
        points = "".join(f"{point} = {value}\n" for point, value in components.items())
        (about / "entry_points.txt").write_text(f"[podtrail.components]\n{points}", encoding="utf-8")
        for module, text in modules.items():
            (folder / f"{module}.py").write_text(text, encoding="utf-8")
        return folder

    return install


@pytest.fixture
def in_time() -> Iterator[None]:
    """End a test that would not end: work that explodes takes longer than the universe lasts, not a little longer."""

    def give_up(*_: object) -> None:
        raise TimeoutError("did not end in 30 s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
