// Records what the tail sampling processor v0.161.0 keeps of a tick with the gate `usetracestate`, when `rate_limiting`
// and `bytes_limiting` go by randomness: `go run . ../vectors` writes a vector a case. A case counts only if several
// runs agree.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/tailsamplingprocessor"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.yaml.in/yaml/v3"
)

const (
	gate         = "processor.tailsamplingprocessor.usetracestate"
	recordPolicy = "processor.tailsamplingprocessor.recordpolicy"
	runs         = 6
)

// A trace: when it arrives, what its randomness is (in its trace state, or else in its id), and what it costs.
type trace struct {
	atMs       int
	randomness uint64
	inID       bool
	spans      int
	pad        int
	attribute  string
}

type testCase struct {
	name     string
	settings string
	policies string
	traces   []trace
	stopMs   int
}

const top = uint64(1) << 56

// at returns a randomness by its share of all.
func at(thousandths uint64) uint64 { return top / 1000 * thousandths }

// some returns traces of so many spans at a time, with these randomnesses in thousandths of all.
func some(atMs, spans int, thousandths ...uint64) []trace {
	made := []trace{}
	for i, t := range thousandths {
		made = append(made, trace{atMs: atMs + i, randomness: at(t), spans: spans, inID: i%2 == 1})
	}
	return made
}

func with(attribute string, traces []trace) []trace {
	for i := range traces {
		traces[i].attribute = attribute
	}
	return traces
}

func padded(pad int, traces []trace) []trace {
	for i := range traces {
		traces[i].pad = pad
	}
	return traces
}

func all(parts ...[]trace) []trace {
	made := []trace{}
	for _, part := range parts {
		made = append(made, part...)
	}
	return made
}

const (
	rate      = "{name: rate, type: rate_limiting, rate_limiting: {spans_per_second: %d, burst_capacity: %d}}"
	sized     = "{name: size, type: bytes_limiting, bytes_limiting: {bytes_per_second: %d, burst_capacity: %d}}"
	attribute = "{name: %[1]s, type: string_attribute, string_attribute: {key: kind, values: [%[1]s]}}"
)

var mixed = []uint64{311, 942, 78, 655, 500, 867, 233, 720, 12, 999}

var cases = []testCase{
	{"rate limiting keeps the highest randomness of a tick", "decision_wait: 1s", fmt.Sprintf(rate, 5, 5),
		some(400, 1, mixed...), 0},
	{"rate limiting over several ticks", "decision_wait: 1s", fmt.Sprintf(rate, 6, 13),
		all(some(400, 3, mixed...), some(1400, 3, 100, 900, 800, 700), some(2400, 3, 600, 610, 620, 630), some(3400, 4, 50, 60)), 5600},
	{"rate limiting with the default burst", "decision_wait: 1s", "{name: rate, type: rate_limiting, rate_limiting: {spans_per_second: 4}}",
		all(some(400, 2, mixed...), some(1400, 3, 10, 20, 15)), 3600},
	{"rate limiting: all of a tick fit", "decision_wait: 1s", fmt.Sprintf(rate, 1, 50),
		some(400, 5, mixed...), 0},
	{"rate limiting: none of a tick fits", "decision_wait: 1s", fmt.Sprintf(rate, 1, 10),
		all(some(400, 10, 400, 300, 500), some(1400, 4, 900, 100)), 3600},
	{"rate limiting: the first that is refused refuses all below", "decision_wait: 1s", fmt.Sprintf(rate, 1, 10),
		all(some(400, 4, 900), some(401, 8, 800), some(402, 1, 700, 600)), 0},
	{"rate limiting: ties are dropped together", "decision_wait: 1s", fmt.Sprintf(rate, 1, 4),
		all(some(400, 1, 900, 800), some(402, 1, 700, 700), some(404, 1, 700, 100)), 0},
	{"rate limiting: ties at the top leave nothing", "decision_wait: 1s", fmt.Sprintf(rate, 1, 2),
		some(400, 1, 900, 900, 900, 800), 0},
	{"rate limiting: what is dearer than the burst takes part in nothing", "decision_wait: 1s", fmt.Sprintf(rate, 1, 6),
		all(some(400, 7, 990), some(401, 2, 900, 800, 700, 600), some(405, 20, 10)), 0},
	{"rate limiting: no rate spends one burst", "decision_wait: 1s", fmt.Sprintf(rate, 0, 3),
		all(some(400, 1, 100, 400, 300, 200), some(1400, 1, 900)), 3600},
	{"rate limiting: the extremes of randomness", "decision_wait: 1s", fmt.Sprintf(rate, 1, 2),
		[]trace{{400, 0, false, 1, 0, ""}, {401, top - 1, false, 1, 0, ""}, {402, top - 2, true, 1, 0, ""}, {403, 1, true, 1, 0, ""}}, 0},
	{"bytes limiting keeps the highest randomness of a tick", "decision_wait: 1s", fmt.Sprintf(sized, 100, 1500),
		all(padded(300, some(400, 1, mixed...)), padded(2000, some(420, 1, 980)), padded(300, some(1400, 1, 800, 100))), 3600},
	{"bytes limiting with the default burst", "decision_wait: 1s", "{name: size, type: bytes_limiting, bytes_limiting: {bytes_per_second: 600}}",
		all(padded(200, some(400, 1, mixed...)), padded(250, some(1400, 1, 30, 40, 20))), 3600},
	{"drop policies come before budgets", "decision_wait: 1s",
		fmt.Sprintf(rate, 1, 4) + "\n  - {name: none, type: drop, drop: {drop_sub_policy: [" + fmt.Sprintf(attribute, "noise") + "]}}",
		all(with("noise", some(400, 2, 990, 980, 970)), some(410, 2, 100, 300, 200)), 0},
	{"a budget beside other policies", "decision_wait: 1s",
		fmt.Sprintf(attribute, "key") + "\n  - " + fmt.Sprintf(rate, 1, 4) + "\n  - {name: half, type: probabilistic, probabilistic: {sampling_percentage: 50}}",
		all(with("key", some(400, 1, 950, 40)), some(410, 1, mixed...)), 0},
	{"two budgets: the lower threshold is told", "decision_wait: 1s",
		fmt.Sprintf(rate, 1, 4) + "\n  - " + fmt.Sprintf(strings.Replace(rate, "name: rate", "name: more", 1), 1, 6),
		some(400, 1, mixed...), 0},
	{"the first match ends the votes and not the budget", "decision_wait: 1s\n  sample_on_first_match: true",
		fmt.Sprintf(attribute, "key") + "\n  - " + fmt.Sprintf(rate, 1, 4),
		all(with("key", some(400, 1, 950, 40)), some(410, 1, mixed...)), 0},
	{"within and only what the others say yes to is weighed", "decision_wait: 1s",
		"{name: both, type: and, and: {and_sub_policy: [" + fmt.Sprintf(rate, 1, 4) + ", " + fmt.Sprintf(attribute, "key") + "]}}",
		all(some(400, 1, 990, 980, 970), with("key", some(410, 1, mixed...))), 0},
	{"within and the highest threshold is told", "decision_wait: 1s",
		"{name: both, type: and, and: {and_sub_policy: [{name: half, type: probabilistic, probabilistic: {sampling_percentage: 75}}, " + fmt.Sprintf(rate, 1, 12) + ", " + fmt.Sprintf(sized, 100, 1300) + "]}}",
		all(padded(200, some(400, 3, 311, 942, 655, 500, 867)), some(410, 1, 3, 100)), 0},
	{"within and a span count with an upper bound is asked before", "decision_wait: 1s",
		"{name: both, type: and, and: {and_sub_policy: [{name: few, type: span_count, span_count: {min_spans: 2, max_spans: 3}}, " + fmt.Sprintf(rate, 1, 7) + "]}}",
		all(some(400, 1, 990, 980, 970), some(410, 3, 100, 900, 300), some(420, 5, 950)), 0},
	{"within composite and not a budget takes what comes first", "decision_wait: 1s",
		"{name: shares, type: composite, composite: {max_total_spans_per_second: 100, policy_order: [rate], composite_sub_policy: [" + fmt.Sprintf(rate, 0, 2) + "]}}",
		all(some(400, 1, 100), some(1400, 1, 200), some(2400, 1, 900)), 4600},
	{"within composite an and takes what comes first", "decision_wait: 1s",
		"{name: shares, type: composite, composite: {max_total_spans_per_second: 100, policy_order: [both], composite_sub_policy: [{name: both, type: and, and: {and_sub_policy: [" +
			fmt.Sprintf(attribute, "key") + ", " + fmt.Sprintf(rate, 0, 2) + "]}}]}}",
		all(some(400, 1, 950), with("key", some(1400, 1, 100)), with("key", some(2400, 1, 200)), with("key", some(3400, 1, 900))), 5600},
	{"within not a budget takes what comes first", "decision_wait: 1s",
		"{name: rest, type: not, not: {not_sub_policy: " + fmt.Sprintf(rate, 0, 2) + "}}",
		all(some(400, 1, 100), some(1400, 1, 200), some(2400, 1, 900)), 4600},
	{"shutdown goes tick by tick", "decision_wait: 20s", fmt.Sprintf(rate, 0, 6),
		all(some(400, 1, 100, 200, 50), some(1400, 1, 900, 800), some(2400, 1, 500, 600, 700)), 2600},
	{"shards have a budget each", "decision_wait: 1s\n  num_shards: 2", fmt.Sprintf(rate, 4, 3),
		some(400, 1, mixed...), 0},
	{"a root brings its trace to an earlier tick", "decision_wait: 20s\n  decision_wait_after_root_received: 1s", fmt.Sprintf(rate, 0, 4),
		all(some(400, 1, 100, 200), some(1400, 2, 900, 800)), 4600},
}

// random returns a case of three ticks, decided at shutdown without a refill between them.
func random(seed uint64) testCase {
	rng := rand.New(rand.NewPCG(seed, 0))
	traces := []trace{}
	for i := range 36 {
		t := trace{atMs: 400 + i/12*1000, randomness: at(rng.Uint64N(20)*50 + 1), inID: rng.IntN(2) == 0, spans: 1 + rng.IntN(4), pad: rng.IntN(3) * 40}
		if rng.IntN(8) == 0 {
			t.spans = 9
		}
		t.attribute = []string{"", "key", "noise"}[rng.IntN(3)]
		traces = append(traces, t)
	}
	budgets := []string{
		fmt.Sprintf(rate, 0, 8+rng.IntN(30)),
		fmt.Sprintf(sized, 0, 600+rng.IntN(6000)),
		"{name: both, type: and, and: {and_sub_policy: [" + fmt.Sprintf(attribute, "key") + ", " + fmt.Sprintf(rate, 0, 6+rng.IntN(12)) + "]}}",
		"{name: four, type: and, and: {and_sub_policy: [{name: few, type: span_count, span_count: {min_spans: 1, max_spans: 4}}, " +
			fmt.Sprintf(sized, 0, 600+rng.IntN(3000)) + ", {name: most, type: probabilistic, probabilistic: {sampling_percentage: 70}}]}}",
		"{name: none, type: drop, drop: {drop_sub_policy: [" + fmt.Sprintf(attribute, "noise") + "]}}",
	}
	rng.Shuffle(len(budgets), func(i, j int) { budgets[i], budgets[j] = budgets[j], budgets[i] })
	settings := fmt.Sprintf("decision_wait: 20s\n  sample_on_first_match: %v", rng.IntN(2) == 0)
	return testCase{fmt.Sprintf("random budgets %02d", seed), settings, strings.Join(budgets[:1+rng.IntN(5)], "\n  - "), traces, 2600}
}

func spans(number int, t trace) []any {
	id := make([]byte, 16)
	binary.BigEndian.PutUint64(id, uint64(number+1)*0x9E3779B97F4A7C15)
	state := fmt.Sprintf("ot=rv:%014x", t.randomness)
	binary.BigEndian.PutUint64(id[8:], uint64(number+1)<<56|uint64(number))
	if t.inID {
		binary.BigEndian.PutUint64(id[8:], uint64(number+1)<<56|t.randomness)
		state = ""
	}
	made := []any{}
	for i := range t.spans {
		span := map[string]any{"traceId": hex.EncodeToString(id), "spanId": fmt.Sprintf("%08x%08x", number+1, i+1),
			"startTimeUnixNano": "1760000000000000000", "endTimeUnixNano": "1760000000010000000"}
		if i > 0 {
			span["parentSpanId"] = fmt.Sprintf("%08x%08x", number+1, 1)
		}
		if state != "" && i == t.spans-1 {
			span["traceState"] = state
		}
		attributes := []any{}
		if t.attribute != "" {
			attributes = append(attributes, map[string]any{"key": "kind", "value": map[string]any{"stringValue": t.attribute}})
		}
		if t.pad > 0 {
			attributes = append(attributes, map[string]any{"key": "pad", "value": map[string]any{"stringValue": strings.Repeat("x", t.pad)}})
		}
		if len(attributes) > 0 {
			span["attributes"] = attributes
		}
		made = append(made, span)
	}
	return made
}

type batch struct {
	AtMs          int   `json:"at_ms"`
	ResourceSpans []any `json:"resourceSpans"`
}

func batches(traces []trace) []batch {
	made := []batch{}
	for i, t := range traces {
		resource := map[string]any{"scopeSpans": []any{map[string]any{"spans": spans(i, t)}}}
		if len(made) == 0 || made[len(made)-1].AtMs != t.atMs/100*100 {
			made = append(made, batch{AtMs: t.atMs / 100 * 100})
		}
		last := &made[len(made)-1]
		last.ResourceSpans = append(last.ResourceSpans, resource)
	}
	return made
}

type expected struct {
	Sampled    []string                     `json:"sampled"`
	NotSampled []string                     `json:"not_sampled"`
	Spans      map[string][]string          `json:"spans"`
	Attributes map[string]map[string]string `json:"attributes"`
	TraceState map[string]string            `json:"trace_state"`
	Metrics    map[string]map[string]int64  `json:"metrics"`
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func run(config string, sent []batch, stopMs int) expected {
	ctx := context.Background()
	telemetry := componenttest.NewTelemetry()
	defer func() { must(telemetry.Shutdown(ctx)) }()
	factory := tailsamplingprocessor.NewFactory()
	settings := processortest.NewNopSettings(factory.Type())
	settings.ID = component.NewID(factory.Type())
	settings.TelemetrySettings = telemetry.NewTelemetrySettings()
	var whole map[string]map[string]any
	must(yaml.Unmarshal([]byte(config), &whole))
	read := factory.CreateDefaultConfig()
	must(confmap.NewFromStringMap(whole["tail_sampling"]).Unmarshal(read))
	sink := &consumertest.TracesSink{}
	sampler, err := factory.CreateTraces(ctx, settings, read, sink)
	must(err)
	must(sampler.Start(ctx, componenttest.NewNopHost()))
	began := time.Now()
	came := map[string]string{}
	told := expected{Sampled: []string{}, NotSampled: []string{}, Spans: map[string][]string{}, Attributes: map[string]map[string]string{},
		TraceState: map[string]string{}, Metrics: map[string]map[string]int64{}}
	ids := map[string]bool{}
	for _, b := range sent {
		raw, _ := json.Marshal(map[string]any{"resourceSpans": b.ResourceSpans})
		traces, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(raw)
		must(err)
		for _, rs := range traces.ResourceSpans().All() {
			for _, span := range rs.ScopeSpans().At(0).Spans().All() {
				came[span.SpanID().String()] = span.TraceState().AsRaw()
				ids[span.TraceID().String()] = true
			}
		}
		time.Sleep(time.Until(began.Add(time.Duration(b.AtMs) * time.Millisecond)))
		must(sampler.ConsumeTraces(ctx, traces))
	}
	time.Sleep(time.Until(began.Add(time.Duration(stopMs) * time.Millisecond)))
	must(sampler.Shutdown(ctx))
	for _, traces := range sink.AllTraces() {
		for _, rs := range traces.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					trace, id := span.TraceID().String(), span.SpanID().String()
					told.Spans[trace] = append(told.Spans[trace], id)
					if state := span.TraceState().AsRaw(); state != came[id] {
						told.TraceState[id] = state
					}
					for key, value := range ss.Scope().Attributes().All() {
						if told.Attributes[id] == nil {
							told.Attributes[id] = map[string]string{}
						}
						told.Attributes[id][key] = value.AsString()
					}
				}
			}
		}
	}
	for id := range ids {
		if told.Spans[id] != nil {
			told.Sampled = append(told.Sampled, id)
		} else {
			told.NotSampled = append(told.NotSampled, id)
		}
	}
	sort.Strings(told.Sampled)
	sort.Strings(told.NotSampled)
	count(ctx, telemetry, told.Metrics)
	return told
}

func count(ctx context.Context, telemetry *componenttest.Telemetry, into map[string]map[string]int64) {
	var metrics metricdata.ResourceMetrics
	must(telemetry.Reader.Collect(ctx, &metrics))
	for _, scope := range metrics.ScopeMetrics {
		for _, metric := range scope.Metrics {
			sum, ok := metric.Data.(metricdata.Sum[int64])
			name := strings.TrimPrefix(metric.Name, "otelcol_processor_")
			if !ok || strings.HasSuffix(name, "_sum") {
				continue
			}
			for _, point := range sum.DataPoints {
				if point.Value == 0 {
					continue
				}
				labels := []string{}
				for _, label := range point.Attributes.ToSlice() {
					labels = append(labels, string(label.Key)+"="+label.Value.Emit())
				}
				sort.Strings(labels)
				if into[name] == nil {
					into[name] = map[string]int64{}
				}
				into[name][strings.Join(labels, ",")] = point.Value
			}
		}
	}
}

func record(c testCase, directory string) {
	config := "tail_sampling:\n  " + c.settings + "\n  policies:\n  - " + c.policies + "\n"
	sent := batches(c.traces)
	if c.stopMs == 0 {
		c.stopMs = sent[len(sent)-1].AtMs + 200
	}
	answers := make([]expected, runs)
	var wait sync.WaitGroup
	for i := range answers {
		wait.Add(1)
		go func() {
			defer wait.Done()
			answers[i] = run(config, sent, c.stopMs)
		}()
	}
	wait.Wait()
	first, _ := json.Marshal(answers[0])
	for _, answer := range answers[1:] {
		if other, _ := json.Marshal(answer); !bytes.Equal(first, other) {
			fmt.Fprintf(os.Stderr, "%s: runs differ, nothing is recorded\n%s\n%s\n", c.name, first, other)
			return
		}
	}
	name := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString("usetracestate "+c.name, "-"), "-")
	file, err := os.Create(filepath.Join(directory, name+".json.gz"))
	must(err)
	zipped, _ := gzip.NewWriterLevel(file, gzip.BestCompression)
	encoder := json.NewEncoder(zipped)
	encoder.SetEscapeHTML(false)
	must(encoder.Encode(map[string]any{"name": "usetracestate: " + c.name, "covers": []string{"feature-gate:usetracestate", "rate"},
		"processor_version": "v0.161.0", "config": config, "feature_gates": []string{gate}, "batches": sent,
		"shutdown_ms": c.stopMs, "expected": answers[0]}))
	must(zipped.Close())
	must(file.Close())
	fmt.Println(name, len(answers[0].Sampled), len(answers[0].NotSampled), answers[0].TraceState)
}

func main() {
	must(featuregate.GlobalRegistry().Set(gate, true))
	must(featuregate.GlobalRegistry().Set(recordPolicy, true))
	for seed := range uint64(12) {
		cases = append(cases, random(seed+1))
	}
	for _, c := range cases {
		record(c, os.Args[1])
	}
}
