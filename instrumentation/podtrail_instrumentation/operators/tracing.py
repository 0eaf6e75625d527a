"""Spans of kopf's handlers, by a decorator below kopf's own.

    tracing = OperatorTracing()

    @kopf.on.create("widgets")
    @kopf.on.update("widgets")
    @tracing.handler
    def apply(spec, **_):
        pod = {"apiVersion": "v1", "kind": "Pod", "spec": {...}}
        kopf.adopt(pod)
        tracing.carry(pod)

A call is a root of its own, of kind CONSUMER, with a link to the span that the object's annotation names (KEP-5915
`StartReconcileSpan`), and from the second call on one to the call before. A handler that is called within another for
the same object (`kopf.execute`) is its child.
"""

import functools
import inspect
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, TypeVar, cast

from opentelemetry.context import get_current
from opentelemetry.trace import Link, SpanContext, Tracer, get_current_span, get_tracer

from podtrail_instrumentation.annotations import (
    DEFAULT_PREFIX,
    PropagationCounters,
    extract_context,
    inject_span_context,
)
from podtrail_instrumentation.reconcile import start_reconcile_span
from podtrail_instrumentation.span import Clock, Span

from .outcome import tell
from .owned import carry
from .subject import attributes_of, context_annotations, kind_of, uid_of

SCOPE = "podtrail_instrumentation.operators"
_MOST_REMEMBERED = 4096
"""Calls that are to be repeated, of which the span is remembered."""
_MOST_COUNTED = 1024
"""Handlers and kinds that are counted apart; the others are counted as one."""

Handler = TypeVar("Handler", bound=Callable[..., Any])

_logger = logging.getLogger(__name__)


class OperatorTracing:
    """Traces the handlers that it decorates. One for an operator; safe in threads, which kopf runs plain functions in.

    It raises nothing of its own and waits for nothing: what a span costs is what the tracer's provider costs.
    """

    def __init__(
        self, tracer: Tracer | None = None, *, prefix: str = DEFAULT_PREFIX, clock: Clock = time.time_ns
    ) -> None:
        """`tracer`: by default one of the global provider; `prefix` is that of the annotations; `clock` in unix ns."""
        self._tracer = tracer if tracer is not None else get_tracer(SCOPE)
        self._prefix = prefix
        self._clock = clock
        self._counters: dict[tuple[str, str], PropagationCounters] = {}
        self._calls = _Calls()
        self._current: ContextVar[_Call | None] = ContextVar("podtrail_operator_call", default=None)

    def handler(self, function: Handler) -> Handler:
        """Decorates a handler, plain or async, of whichever of kopf's decorators stands above.

        Of a daemon, which runs for as long as the object lives, decorate the function that it calls at each pass.
        """
        name = _name_of(function)
        if _is_async(function):

            @functools.wraps(function)
            async def awaited(*args: Any, **arguments: Any) -> Any:
                with _Call(self, name, arguments):
                    return await function(*args, **arguments)

            return cast("Handler", awaited)

        @functools.wraps(function)
        def called(*args: Any, **arguments: Any) -> Any:
            with _Call(self, name, arguments):
                return function(*args, **arguments)

        return cast("Handler", called)

    def carry(self, objects: Any, live: Any = None) -> None:
        """Has objects that the current handler makes carry its span, so that what becomes of them leads back to it.

        Written into the annotations of each object and of the Pod templates in it. A handler that is not sampled hands
        on what the handled object carries. Outside of a handler nothing is written.

        Args:
            objects: A dictionary, a model of the Kubernetes client, an object of pykube's, or several of them.
            live: Of a single object, what is in the cluster under its name: where that has all that is wanted, or the
                handler is not called for a change, it keeps the annotations it has.
        """
        call = self._current.get()
        for each in objects if isinstance(objects, list | tuple | set | frozenset) else (objects,):
            counters = self._counted(call.name if call is not None else "", _kind(each))
            if call is None:
                counters.injected["no_context"] += 1
            elif not carry(each, call.carried, live, self._prefix, counters, changes=call.changes):
                counters.injected["unsupported"] += 1
                _logger.warning("%s is no object of Kubernetes, it carries no trace context", type(each).__name__)

    def annotations(self) -> dict[str, str]:
        """What `carry` writes, for what is no object: a file, a message; empty outside of a handler."""
        call = self._current.get()
        return {} if call is None else inject_span_context({}, call.carried, self._prefix)

    def samples(self) -> Iterator[tuple[str, dict[str, str], int]]:
        """Name, labels and value of each counter of trace context in annotations (KEP-5915), to be exposed."""
        for counters in list(self._counters.values()):
            yield from counters.samples()

    def _counted(self, handler: str, kind: str) -> PropagationCounters:
        key = (handler, kind)
        if key not in self._counters and len(self._counters) >= _MOST_COUNTED:
            key = ("other", "other")
        return self._counters.setdefault(key, PropagationCounters("kopf", *key))


class _Calls:
    """The spans of calls that are to be repeated, by object and handler; the oldest go first."""

    def __init__(self) -> None:
        self._spans: OrderedDict[tuple[str, str], SpanContext] = OrderedDict()

    def take(self, key: tuple[str, str]) -> SpanContext | None:
        return self._spans.pop(key, None)

    def remember(self, key: tuple[str, str], span: SpanContext) -> None:
        self._spans[key] = span
        if len(self._spans) > _MOST_REMEMBERED:
            self._spans.popitem(last=False)


class _Call:
    """One call of a handler."""

    def __init__(self, tracing: OperatorTracing, name: str, arguments: dict[str, Any]) -> None:
        self._tracing = tracing
        self._token: Token[_Call | None]
        self._span: Span
        self.name = name
        self._uid = uid_of(arguments)
        self._lasts = "stopped" in arguments
        """It is a daemon, whose span ends when the object goes: what it calls is not part of that."""
        self.changes = str(arguments.get("reason")) in ("create", "update")
        annotations = context_annotations(arguments.get("annotations"), tracing._prefix)
        attributes = attributes_of(name, arguments)
        outer = tracing._current.get()
        if outer is not None and self._uid and outer._uid == self._uid and not outer._lasts:
            self.changes = outer.changes
            self._span = outer._span.start(f"reconcile {name}", attributes)
        else:
            before = tracing._calls.take((self._uid, name))
            self._span = start_reconcile_span(
                f"reconcile {name}",
                annotations,
                tracer=tracing._tracer,
                clock=tracing._clock,
                attributes=attributes,
                context=get_current(),
                links=(Link(before, {"podtrail.link.type": "previous-attempt"}),) if before is not None else (),
                prefix=tracing._prefix,
                counters=tracing._counted(name, kind_of(arguments)),
            )
        own = self._span.span_context
        origin = get_current_span(extract_context(annotations, prefix=tracing._prefix)).get_span_context()
        self.carried = own if self._span.recording or not origin.is_valid else origin
        """What objects that the handler makes carry."""
        self._active = self._span.active()

    def __enter__(self) -> None:
        self._token = self._tracing._current.set(self)
        self._active.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._active.__exit__()
        self._tracing._current.reset(self._token)
        if tell(self._span, raised) and self._uid and self._span.recording:
            self._tracing._calls.remember((self._uid, self.name), self._span.span_context)
        self._span.end(None)


def _kind(given: Any) -> str:
    held = getattr(given, "obj", given)
    kind = held.get("kind") if isinstance(held, dict) else getattr(given, "kind", None)
    return kind if isinstance(kind, str) else type(given).__name__


def _unwrapped(function: Any) -> Any:
    """What is behind partials and decorators, as kopf looks for it."""
    while isinstance(function, functools.partial) or hasattr(function, "__wrapped__"):
        function = function.func if isinstance(function, functools.partial) else function.__wrapped__
    return function


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(_unwrapped(function))


def _name_of(function: Callable[..., Any]) -> str:
    """What kopf calls a handler that was given no id."""
    inner = _unwrapped(function)
    return str(getattr(inner, "__qualname__", None) or type(inner).__qualname__)
