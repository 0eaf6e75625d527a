package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	runtimereconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestSpansOutcomesAndLimitsAreThoseOfTheTable(t *testing.T) {
	content, err := os.ReadFile("../../vocabulary.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Reconcile struct {
			Span, Kind               string
			Object, Outcomes, Events []string
			OfGo                     map[string]string `json:"of Go"`
			Limits                   map[string]int
		}
	}
	if err := json.Unmarshal(content, &table); err != nil {
		t.Fatal(err)
	}
	row := table.Reconcile
	spans, provider := recorder()
	traced := Trace[runtimereconcile.Request](runtimereconcile.Func(func(context.Context, runtimereconcile.Request) (runtimereconcile.Result, error) {
		return runtimereconcile.Result{}, errors.New("refused")
	}), Named("shop"), ForRequest(handled), provider)
	for range 2 {
		_, _ = traced.Reconcile(context.Background(), request)
	}
	for _, span := range spans.Ended() {
		if !strings.HasPrefix(span.Name(), strings.TrimSuffix(row.Span, "*")) || span.SpanKind().String() != row.Kind {
			t.Errorf("%s is %s", span.Name(), span.SpanKind())
		}
		for _, one := range span.Attributes() {
			kind, own := row.OfGo[string(one.Key)]
			if !slices.Contains(row.Object, string(one.Key)) && (!own || !strings.HasPrefix(strings.ToLower(one.Value.Type().String()), strings.Replace(kind, "double", "float", 1))) {
				t.Errorf("%s has %s of type %s", span.Name(), one.Key, one.Value.Type())
			}
		}
		for _, event := range span.Events() {
			if !slices.Contains(row.Events, event.Name) {
				t.Errorf("%s has the event %s", span.Name(), event.Name)
			}
		}
	}
	if len(spans.Ended()) != 2 {
		t.Errorf("%d spans", len(spans.Ended()))
	}
	for _, outcome := range []string{succeeded, retry, failed, errored, cancelled} {
		if !slices.Contains(row.Outcomes, outcome) {
			t.Errorf("the table has no outcome %s", outcome)
		}
	}
	for name, limit := range map[string]int{"remembered calls": maxAttempts, "counted apart": maxCounted, "characters of a value": maxCharacters} {
		if row.Limits[name] != limit {
			t.Errorf("%s: %d, the table has %d", name, limit, row.Limits[name])
		}
	}
}
