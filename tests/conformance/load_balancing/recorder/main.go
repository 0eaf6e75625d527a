// Asks contrib's exporter for the backend of many keys, and for the routing keys of spans; record.sh builds it.
package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"math/rand"
	"os"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Which of the backends gets each key.
type choice struct {
	Backends []string `json:"backends"`
	Keys     []string `json:"keys"`
	Chosen   []int    `json:"chosen"`
}

// The routing keys of a request with one span.
type routed struct {
	Request    json.RawMessage `json:"request"`
	Attributes []string        `json:"attributes"`
	CRC        uint32          `json:"crc"`
	Key        string          `json:"key"`
}

func numbered(format string, count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf(format, i)
	}
	return names
}

func keys(random *rand.Rand, count int) [][]byte {
	found := make([][]byte, count)
	for i := range found {
		found[i] = make([]byte, 16)
		random.Read(found[i])
	}
	return found
}

func choose(random *rand.Rand, backends []string, count int) choice {
	at := map[string]int{}
	for i, backend := range backends {
		at[backend] = i
	}
	answer := choice{Backends: backends}
	ring := newHashRing(backends)
	for _, key := range keys(random, count) {
		answer.Keys = append(answer.Keys, hex.EncodeToString(key))
		answer.Chosen = append(answer.Chosen, at[ring.endpointFor(key)])
	}
	return answer
}

func values() map[string]func(pcommon.Value) {
	return map[string]func(pcommon.Value){
		"text":      func(v pcommon.Value) { v.SetStr("kube-scheduler") },
		"umlauts":   func(v pcommon.Value) { v.SetStr("größer|=") },
		"empty":     func(v pcommon.Value) { v.SetStr("") },
		"nothing":   func(pcommon.Value) {},
		"integer":   func(v pcommon.Value) { v.SetInt(-1234567890123) },
		"true":      func(v pcommon.Value) { v.SetBool(true) },
		"bytes":     func(v pcommon.Value) { v.SetEmptyBytes().FromRaw([]byte{0, 255, 16}) },
		"zero":      func(v pcommon.Value) { v.SetDouble(0) },
		"minus":     func(v pcommon.Value) { v.SetDouble(math.Copysign(0, -1)) },
		"half":      func(v pcommon.Value) { v.SetDouble(0.5) },
		"small":     func(v pcommon.Value) { v.SetDouble(0.00012) },
		"smaller":   func(v pcommon.Value) { v.SetDouble(0.000012) },
		"large":     func(v pcommon.Value) { v.SetDouble(999999) },
		"larger":    func(v pcommon.Value) { v.SetDouble(1000000) },
		"fraction":  func(v pcommon.Value) { v.SetDouble(-123456.789) },
		"digits":    func(v pcommon.Value) { v.SetDouble(1234567.875) },
		"tiny":      func(v pcommon.Value) { v.SetDouble(5e-324) },
		"huge":      func(v pcommon.Value) { v.SetDouble(math.MaxFloat64) },
		"infinite":  func(v pcommon.Value) { v.SetDouble(math.Inf(1)) },
		"infinite-": func(v pcommon.Value) { v.SetDouble(math.Inf(-1)) },
		"nan":       func(v pcommon.Value) { v.SetDouble(math.NaN()) },
		"list": func(v pcommon.Value) {
			list := v.SetEmptySlice()
			list.AppendEmpty().SetStr("a")
			list.AppendEmpty().SetDouble(1.5)
			list.AppendEmpty().SetEmptySlice().AppendEmpty().SetBool(false)
		},
		"json": func(v pcommon.Value) {
			list := v.SetEmptySlice()
			list.AppendEmpty()
			list.AppendEmpty().SetStr("<&>\"\\\b\f\u2028\u0001\u007f")
			list.AppendEmpty().SetDouble(1e21)
			list.AppendEmpty().SetEmptyBytes().FromRaw([]byte("raw"))
		},
		"nan in a list": func(v pcommon.Value) { v.SetEmptySlice().AppendEmpty().SetDouble(math.NaN()) },
		"map": func(v pcommon.Value) {
			entries := v.SetEmptyMap()
			entries.PutStr("z", "last")
			entries.PutInt("a", 1)
			entries.PutStr("Ä", "beyond")
		},
	}
}

func span(kind ptrace.SpanKind) (ptrace.Traces, pcommon.Map, pcommon.Map, pcommon.Map) {
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	scope := resource.ScopeSpans().AppendEmpty()
	one := scope.Spans().AppendEmpty()
	one.SetTraceID([16]byte{1})
	one.SetSpanID([8]byte{2})
	one.SetName("Schedule|Pod")
	one.SetKind(kind)
	return traces, resource.Resource().Attributes(), scope.Scope().Attributes(), one.Attributes()
}

func route(traces ptrace.Traces, routing routingKey, attributes ...string) routed {
	raw, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(traces)
	if err != nil {
		panic(err)
	}
	request, _ := json.Marshal(hex.EncodeToString(raw))
	found, err := routingIdentifiersFromTraces(traces, routing, attributes)
	if err != nil || len(found) != 1 {
		panic(fmt.Sprint(err, found))
	}
	for key := range found {
		return routed{Request: request, Attributes: attributes, CRC: crc32.ChecksumIEEE([]byte(key)), Key: key}
	}
	return routed{}
}

func routes() []routed {
	found := []routed{}
	kinds := values()
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		for level := range 3 {
			traces, resource, scope, own := span(ptrace.SpanKindServer)
			attributes := []pcommon.Map{resource, scope, own}[level]
			value := attributes.PutEmpty(name)
			kinds[name](value)
			found = append(found, route(traces, attrRouting, name, "absent", "span.kind", "span.name"))
		}
	}
	for kind := range 7 {
		traces, resource, scope, own := span(ptrace.SpanKind(kind))
		resource.PutStr("a", "resource")
		scope.PutStr("a", "scope")
		scope.PutStr("b", "scope")
		own.PutStr("b", "span")
		own.PutStr("c", "span")
		own.PutStr("span.name", "not this one")
		found = append(found, route(traces, attrRouting, "span.kind", "c", "b", "a", "span.name"))
	}
	traces, resource, _, _ := span(ptrace.SpanKindClient)
	resource.PutStr("span.kind", "the resource goes before")
	found = append(found, route(traces, attrRouting, "span.kind"))
	traces, resource, _, _ = span(ptrace.SpanKindClient)
	resource.PutStr("service.name", "apiserver")
	found = append(found, route(traces, svcRouting))
	traces, _, _, _ = span(ptrace.SpanKindClient)
	return append(found, route(traces, svcRouting))
}

func main() {
	random := rand.New(rand.NewSource(161))
	choices := []choice{}
	for _, backends := range [][]string{
		{"backend-1:4317"},
		{"backend-1:4317", "backend-2:4317"},
		{"b:4317", "a:4317", "c"},
		numbered("10.0.0.%d", 5),
		numbered("10.0.0.%d:4317", 5),
		numbered("localhost:%d", 7),
		numbered("[fd00::%x]:4317", 16),
		numbered("gateway-%d.gateway.observability:4317", 30),
		numbered("10.1.2.%d:4317", 200),
		numbered("10.1.%d.1:4317", 600),
	} {
		choices = append(choices, choose(random, backends, 500))
	}
	if err := json.NewEncoder(os.Stdout).Encode(map[string]any{"choices": choices, "routes": routes()}); err != nil {
		panic(err)
	}
}
