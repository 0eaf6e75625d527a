package kubescheduler

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
)

type row struct {
	Kind               string
	Attributes, Events []string
}

type vocabulary struct {
	Spans, Phases map[string]row
	Attributes    map[string]string
	Events        map[string][]string
	Limits        map[string]int
	Gates         []string
	Log           map[string]string
}

func readVocabulary(t *testing.T) vocabulary {
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

var typeNames = map[attribute.Type]string{
	attribute.STRING: "string", attribute.INT64: "int", attribute.BOOL: "bool",
	attribute.STRINGSLICE: "string[]", attribute.INT64SLICE: "int[]",
}

func (v vocabulary) check(t *testing.T, where string, attributes []attribute.KeyValue, allowed []string) {
	t.Helper()
	for _, one := range attributes {
		key := string(one.Key)
		if strings.HasPrefix(key, scorePluginPrefix) {
			key = scorePluginPrefix + "*"
		}
		if !slices.Contains(allowed, key) || v.Attributes[key] != typeNames[one.Value.Type()] {
			t.Errorf("%s has %s of type %s", where, key, typeNames[one.Value.Type()])
		}
	}
}

func TestSpansHaveTheAttributesAndEventsOfTheTable(t *testing.T) {
	table := readVocabulary(t)
	b := newBench(t, benchOptions{nodes: 12, rate: 1, propagates: true, plugin: &custom{}})
	b.create("web", "1", created)
	b.create("big", "100", nil)
	for _, attempt := range []tree{b.attempts("web", 1)[0], b.attempts("big", 1)[0]} {
		for _, spans := range attempt {
			for _, span := range spans {
				name := span.Name
				if strings.HasPrefix(name, spanPlugin) {
					name = spanPlugin + "*"
				}
				known, found := table.Phases[name]
				if !found {
					known, found = table.Spans[name]
				}
				if !found {
					t.Fatalf("the table has no span %s", name)
				}
				table.check(t, span.Name, span.Attributes, known.Attributes)
				if known.Kind != "" && known.Kind != span.SpanKind.String() {
					t.Errorf("%s is %s", span.Name, span.SpanKind)
				}
				for _, event := range span.Events {
					if !slices.Contains(known.Events, event.Name) {
						t.Errorf("%s has the event %s", span.Name, event.Name)
					}
					table.check(t, event.Name, event.Attributes, table.Events[event.Name])
				}
			}
		}
	}
}

func TestLimitsAndGatesAreThoseOfTheTable(t *testing.T) {
	table := readVocabulary(t)
	limits := map[string]int{
		"names of rejected nodes": maxNamesOfRejectedNodes, "scored nodes": maxScoredNodes,
		"scoring plugins": maxScoringPlugins, "characters of a plugin's name": maxPluginName,
	}
	for name, limit := range limits {
		if table.Limits[name] != limit {
			t.Errorf("%s: %d, the table has %d", name, limit, table.Limits[name])
		}
	}
	if !slices.Equal(table.Gates, []string{GatePropagation, GateTracing}) {
		t.Errorf("gates %v", table.Gates)
	}
}

func TestLinesForReadersOfTheLogAreThoseOfTheTable(t *testing.T) {
	lines := map[string]string{
		"tracing is on": messageOn, "tracing is off": messageOff, "an attempt was traced": messageTraced,
	}
	if table := readVocabulary(t); !maps.Equal(table.Log, lines) {
		t.Errorf("the table has %v", table.Log)
	}
}
