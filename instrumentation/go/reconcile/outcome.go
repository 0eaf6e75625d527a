package reconcile

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	runtimereconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// outcome is how a call ended.
type outcome struct {
	name string
	// again is true if the call will be repeated.
	again bool
	// delay is the time until then; 0 if the queue chooses it.
	delay time.Duration
	// kind and message are those of the error; empty if there is none.
	kind, message string
	// stack is where a panic began.
	stack string
}

// outcomeOf reads how a call ended, as the controller does.
//
// A result that asks for a repetition and the errors of NotYet mean "not yet": the span has an event "retry" and no
// error. TerminalError is "failed" and every other error "error", which the controller repeats.
func (t *tracing) outcomeOf(ctx context.Context, result runtimereconcile.Result, err error) (found outcome) {
	found = outcome{name: errored, again: true}
	t.guard(ctx, func() { found = t.judge(ctx, result, err) })
	return found
}

func (t *tracing) judge(ctx context.Context, result runtimereconcile.Result, err error) outcome {
	if err == nil {
		switch {
		case result.RequeueAfter > 0:
			return outcome{name: retry, again: true, delay: result.RequeueAfter}
		//lint:ignore SA1019 it has to be read until it is removed
		case result.Requeue:
			return outcome{name: retry, again: true}
		}
		return outcome{name: succeeded}
	}
	told := outcome{name: errored, again: true, kind: cut(fmt.Sprintf("%T", err), maxCharacters), message: messageOf(err)}
	switch {
	case errors.Is(err, context.Canceled) && errors.Is(ctx.Err(), context.Canceled):
		return outcome{name: cancelled}
	case errors.Is(err, runtimereconcile.TerminalError(nil)):
		told.name, told.again = failed, false
	default:
		for _, target := range t.notYet {
			if errors.Is(err, target) {
				told.name = retry
			}
		}
	}
	return told
}

// panicked is the outcome of a call that panicked; nil means that its goroutine ended.
func panicked(value any) outcome {
	if value == nil {
		return outcome{name: cancelled}
	}
	return outcome{name: errored, again: true, kind: cut(fmt.Sprintf("panic(%T)", value), maxCharacters), message: messageOf(value), stack: stack()}
}

// write puts the outcome onto a span.
func (o outcome) write(span trace.Span) {
	span.SetAttributes(outcomeKey.String(o.name))
	var told []attribute.KeyValue
	if o.delay > 0 {
		told = append(told, delayKey.Float64(o.delay.Seconds()))
		span.SetAttributes(told...)
	}
	if o.name == retry {
		if o.message != "" {
			told = append(told, exceptionMessageKey.String(o.message))
		}
		span.AddEvent(eventRetry, trace.WithAttributes(told...))
	}
	if o.name != errored && o.name != failed {
		return
	}
	told = append(told, exceptionTypeKey.String(o.kind), exceptionMessageKey.String(o.message))
	if o.stack != "" {
		told = append(told, exceptionStackKey.String(o.stack))
	}
	span.AddEvent(eventException, trace.WithAttributes(told...))
	span.SetStatus(codes.Error, o.message)
}

// messageOf returns the text of an error or of a panic's value, also if asking for it panics.
func messageOf(value any) (message string) {
	defer func() {
		if recover() != nil || message == "" {
			message = fmt.Sprintf("%T", value)
		}
	}()
	if err, ok := value.(error); ok {
		return cut(err.Error(), maxMessage)
	}
	return cut(fmt.Sprint(value), maxMessage)
}

// stack returns the stack of the goroutine from the newest panic on.
func stack() string {
	all := string(debug.Stack())
	if at := strings.Index(all, "\npanic("); at >= 0 {
		all = all[at+1:]
	}
	return cut(all, maxStack)
}

// cut returns at most that many bytes of a text, as valid UTF-8: one invalid text would fail a whole batch of spans.
func cut(text string, most int) string {
	if len(text) > most {
		for back := 0; back < utf8.UTFMax && most > 0 && !utf8.RuneStart(text[most]); back++ {
			most--
		}
		text = text[:most]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
