package tracecontext

import (
	"encoding/json"
	"os"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

// vocabulary is the part of the shared table that this package has to follow.
type vocabulary struct {
	Annotations struct {
		Prefix  string
		Extract []struct {
			Traceparent, Tracestate *string
			Result                  Result
			State                   string
		}
		Inject []struct {
			Annotations, Changes map[string]string
			Span, State          string
			Result               Result
		}
	}
	Limits map[string]int
}

func read(t *testing.T) vocabulary {
	t.Helper()
	content, err := os.ReadFile("../../vocabulary.json")
	if err != nil {
		t.Fatal(err)
	}
	var table vocabulary
	if err := json.Unmarshal(content, &table); err != nil {
		t.Fatal(err)
	}
	return table
}

func prefixed(annotations map[string]string) map[string]string {
	keys := map[string]string{}
	for key, value := range annotations {
		keys[DefaultPrefix+key] = value
	}
	return keys
}

func span(t *testing.T, traceparent, state string) trace.SpanContext {
	t.Helper()
	if traceparent == "" {
		return trace.SpanContext{}
	}
	context, result := Extract(prefixed(map[string]string{"traceparent": traceparent, "tracestate": state}), DefaultPrefix)
	if result != Success {
		t.Fatalf("%q: %s", traceparent, result)
	}
	return context
}

func TestPrefixAndLimit(t *testing.T) {
	table := read(t)
	if table.Annotations.Prefix != DefaultPrefix || table.Limits["characters of a tracestate"] != maxTracestate {
		t.Errorf("the table has %q and %d", table.Annotations.Prefix, table.Limits["characters of a tracestate"])
	}
}

func TestExtractAcceptsWhatTheTableAccepts(t *testing.T) {
	cases := read(t).Annotations.Extract
	if len(cases) < 10 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, one := range cases {
		annotations := map[string]string{}
		if one.Traceparent != nil {
			annotations["traceparent"] = *one.Traceparent
		}
		if one.Tracestate != nil {
			annotations["tracestate"] = *one.Tracestate
		}
		found, result := Extract(prefixed(annotations), DefaultPrefix)
		if result != one.Result || found.IsValid() != (one.Result == Success) {
			t.Errorf("%v: %s, valid %v", annotations, result, found.IsValid())
		}
		if result == Success && (Traceparent(found) != *one.Traceparent || found.TraceState().String() != one.State || !found.IsRemote()) {
			t.Errorf("%v: %s %q", annotations, Traceparent(found), found.TraceState())
		}
		if link, result := Link(prefixed(annotations), DefaultPrefix); result == Success && len(link.Attributes) != 2 {
			t.Errorf("%v: the link has %v", annotations, link.Attributes)
		}
	}
}

func TestInjectChangesWhatTheTableChanges(t *testing.T) {
	cases := read(t).Annotations.Inject
	if len(cases) < 4 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, one := range cases {
		changes, result := Inject(prefixed(one.Annotations), span(t, one.Span, one.State), DefaultPrefix)
		if result != one.Result || len(changes) != len(one.Changes) {
			t.Errorf("%v: %s %v", one, result, changes)
		}
		for key, value := range one.Changes {
			if changes[DefaultPrefix+key] != value {
				t.Errorf("%v: %v", one, changes)
			}
		}
	}
}

func FuzzExtract(f *testing.F) {
	f.Add("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a=1")
	f.Add("00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "")
	f.Fuzz(func(t *testing.T, traceparent, state string) {
		found, result := Extract(map[string]string{"traceparent": traceparent, "tracestate": state}, "")
		if (result == Success) != found.IsValid() {
			t.Errorf("%q: %s", traceparent, result)
		}
		if result == Success && Traceparent(found) != traceparent {
			t.Errorf("%q was read as %q", traceparent, Traceparent(found))
		}
	})
}
