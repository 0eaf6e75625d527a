// Package tracecontext carries W3C trace context in the annotations of Kubernetes objects (KEP-5915).
//
// Whoever can write an annotation chooses its content. So it is parsed strictly, used for links and never as a
// parent, and its sampled flag decides nothing. The rules and results are those of podtrail_instrumentation, the
// same package for Python; vocabulary.json in the folder above both lists them.
package tracecontext

import (
	"encoding/hex"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// DefaultPrefix stands before "traceparent" and "tracestate" in the annotation keys of KEP-5915.
const DefaultPrefix = "tracing.k8s.io/"

// maxTracestate is the longest tracestate that is read, in bytes.
const maxTracestate = 512

// Result says what came of reading or writing the annotations of one object. The values are the label `result` of
// trace_context_annotations_{injected,extracted}_total.
type Result string

const (
	// Absent: the object has no traceparent.
	Absent Result = "absent"
	// Invalid: the object has a traceparent that is malformed.
	Invalid Result = "invalid"
	// Success: a context was found, or annotations have to be written.
	Success Result = "success"
	// Unchanged: the annotations already hold this context.
	Unchanged Result = "unchanged"
	// NoContext: there is no valid context to write.
	NoContext Result = "no_context"
)

// Attributes of a link that was read from an annotation or another text that a user can write.
var (
	LinkSource  = attribute.Key("podtrail.link.source")
	LinkTrusted = attribute.Key("podtrail.link.trusted")
)

// Extract returns the span context that the annotations name. It is valid only with the result Success.
//
// Only version 00 in exactly 55 lower-case characters with non-zero ids is accepted. A malformed tracestate is
// ignored, the traceparent beside it still counts.
func Extract(annotations map[string]string, prefix string) (trace.SpanContext, Result) {
	value, found := annotations[prefix+"traceparent"]
	if !found {
		return trace.SpanContext{}, Absent
	}
	config, ok := parse(value)
	if !ok {
		return trace.SpanContext{}, Invalid
	}
	if state := annotations[prefix+"tracestate"]; len(state) <= maxTracestate {
		if parsed, err := trace.ParseTraceState(state); err == nil {
			config.TraceState = parsed
		}
	}
	return trace.NewSpanContext(config), Success
}

// Link returns a link to the span that the annotations name, marked as untrusted; false if they name none.
func Link(annotations map[string]string, prefix string) (trace.Link, Result) {
	remote, result := Extract(annotations, prefix)
	if result != Success {
		return trace.Link{}, result
	}
	return trace.Link{
		SpanContext: remote,
		Attributes:  []attribute.KeyValue{LinkSource.String("annotation"), LinkTrusted.Bool(false)},
	}, Success
}

// Inject returns the annotations to write so that an object carries span; it is empty unless the result is Success.
//
// An annotation that already has the value is not written again: two writers of one annotation would otherwise
// trigger each other without end. A tracestate that belongs to another traceparent is emptied. Write on creation or
// on a change of the specification, never on a status update.
func Inject(annotations map[string]string, span trace.SpanContext, prefix string) (map[string]string, Result) {
	if !span.IsValid() {
		return nil, NoContext
	}
	changes := map[string]string{}
	if value := Traceparent(span); annotations[prefix+"traceparent"] != value {
		changes[prefix+"traceparent"] = value
	}
	if value := span.TraceState().String(); annotations[prefix+"tracestate"] != value {
		changes[prefix+"tracestate"] = value
	}
	if len(changes) == 0 {
		return nil, Unchanged
	}
	return changes, Success
}

// Traceparent returns the W3C header value of a span context.
func Traceparent(span trace.SpanContext) string {
	return "00-" + span.TraceID().String() + "-" + span.SpanID().String() + "-" + span.TraceFlags().String()
}

func parse(value string) (trace.SpanContextConfig, bool) {
	var config trace.SpanContextConfig
	if len(value) != 55 || !strings.HasPrefix(value, "00-") || value[35] != '-' || value[52] != '-' {
		return config, false
	}
	if strings.ToLower(value) != value {
		return config, false
	}
	var flags [1]byte
	parts := []struct {
		text string
		into []byte
	}{{value[3:35], config.TraceID[:]}, {value[36:52], config.SpanID[:]}, {value[53:55], flags[:]}}
	for _, part := range parts {
		if _, err := hex.Decode(part.into, []byte(part.text)); err != nil {
			return config, false
		}
	}
	config.TraceFlags = trace.TraceFlags(flags[0])
	config.Remote = true
	return config, config.TraceID.IsValid() && config.SpanID.IsValid()
}
