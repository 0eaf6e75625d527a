"""Finding the function or class that a `python` policy names, and making sure that it can vote."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import entry_points
from traceback import TracebackException
from types import ModuleType
from typing import Any

from podtrail.config.config_folder import import_beside
from podtrail.policy import TraceView
from podtrail.state import KeepsState

GROUP = "podtrail.policies"
_MOST_NAMES = 20
_LONGEST_ERROR = 500

Ask = Callable[[TraceView], object]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What votes."""

    vote: Ask
    stateful: bool
    """Whether its votes may depend on traces before."""
    keeper: Any = None
    """What saves its state; None where nothing does."""


def load(target: str, args: Mapping[str, Any]) -> Loaded:
    """Return what votes.

    Raises:
        ValueError: it can't be found, made or asked.
    """
    found = _found(target)
    if inspect.isclass(found):
        return _made(target, found, args)
    if not callable(found):
        raise ValueError(f"{target} is neither a function nor a class but {type(found).__name__}")
    _check(target, found, (None,), args)
    return Loaded(partial(found, **args) if args else found, stateful=False)


def _made(target: str, found: type[Any], args: Mapping[str, Any]) -> Loaded:
    if not callable(getattr(found, "vote", None)):
        raise ValueError(f"the class {target} has no method vote(trace)")
    _check(target, found, (), args)
    try:
        made = found(**args)
    except (Exception, SystemExit) as error:  # the user's code: what it raises is about the configuration
        raise ValueError(f"making {target} failed: {told(error)}") from error
    _check(f"{target}.vote", made.vote, (None,), {})
    keeper = made if isinstance(made, KeepsState) else None
    return Loaded(made.vote, stateful=bool(getattr(made, "stateful", True)), keeper=keeper)


def _found(target: str) -> Any:
    module_name, colon, path = target.partition(":")
    if not colon:
        return _entry_point(target)
    if not module_name or not path:
        raise ValueError(f"{target!r} is not of the form module:object")
    found: Any = _module(module_name)
    for at, name in enumerate(path.split(".")):
        if not hasattr(found, name):
            owner = module_name if at == 0 else f"{module_name}:{'.'.join(path.split('.')[:at])}"
            raise ValueError(f"{owner} has no {name!r}; there {_there(found)}")
        found = getattr(found, name)
    return found


def _module(name: str) -> ModuleType:
    try:
        return import_beside(name)
    except (Exception, SystemExit) as error:  # the user's code: what it raises is about the configuration
        if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
            raise ValueError(
                f"there is no module {error.name!r}; put it beside the configuration file, its directory into "
                "PYTHONPATH, or install it"
            ) from None
        raise ValueError(f"importing {name} failed: {told(error)}") from error


def _entry_point(name: str) -> Any:
    points = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points:
        known = f"there are {', '.join(sorted(points))}" if points else "there are none"
        raise ValueError(f"no entry point {name!r} in the group {GROUP} ({known}); a function is named module:object")
    try:
        return points[name].load()
    except (Exception, SystemExit) as error:  # the user's code: what it raises is about the configuration
        raise ValueError(f"loading the entry point {name} = {points[name].value} failed: {told(error)}") from error


def _there(owner: object) -> str:
    """Say what there is that could be meant."""
    names = [name for name, value in vars(owner).items() if callable(value) and not name.startswith("_")]
    own = [
        name for name in names if getattr(getattr(owner, name), "__module__", None) == getattr(owner, "__name__", "")
    ]
    shown = sorted(own or names)[:_MOST_NAMES]
    return f"are {', '.join(shown)}" if shown else "are no functions or classes"


def _check(target: str, called: Callable[..., object], positional: tuple[object, ...], args: Mapping[str, Any]) -> None:
    """Raise ValueError for what can't be called so."""
    if inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called):
        raise ValueError(f"{target} is asynchronous; policies vote at once")
    if inspect.isgeneratorfunction(called):
        raise ValueError(f"{target} is a generator; policies return their vote")
    try:
        signature = inspect.signature(called)
    except ValueError:
        return  # written in C: nothing is known of its parameters
    try:
        signature.bind(*positional, **args)
    except TypeError as error:
        raise ValueError(f"{target}{signature} can't be called with {_shown(positional, args)}: {error}") from None


def _shown(positional: tuple[object, ...], args: Mapping[str, Any]) -> str:
    words = [*("a trace" for _ in positional), *(f"args {', '.join(args)}" for _ in [0] if args)]
    return " and ".join(words) or "no args"


def told(error: BaseException) -> str:
    """Return what an exception of the user's code says, cut to a length. Saying it may fail, too."""
    says = TracebackException(type(error), error, None, compact=True)
    return f"{type(error).__name__}: {says}"[:_LONGEST_ERROR]
