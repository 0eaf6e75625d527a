// Records what OTTL's comparisons answer: `go run . | gzip -9n > ../comparisons.json.gz`, with pkg/ottl v0.161.0.
package main

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"strings"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottlspan"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/ottlfuncs"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

var operators = []string{"==", "!=", "<", "<=", ">", ">="}

// An operand as an attribute (in OTLP/JSON, nil: the attribute is absent) and as a literal ("": none writes it).
type operand struct {
	Attribute any    `json:"attribute"`
	Literal   string `json:"literal,omitempty"`
}

func integer(text string) operand {
	return operand{map[string]any{"intValue": text}, text}
}

func double(number float64, literal string) operand {
	var value any = number
	switch {
	case math.IsNaN(number):
		value = "NaN"
	case math.IsInf(number, 1):
		value = "Infinity"
	case math.IsInf(number, -1):
		value = "-Infinity"
	case number == 0 && math.Signbit(number):
		value = json.RawMessage("-0.0")
	}
	return operand{map[string]any{"doubleValue": value}, literal}
}

func list(literal string, items ...any) operand {
	return operand{map[string]any{"arrayValue": map[string]any{"values": items}}, literal}
}

func mapping(literal string, items ...any) operand {
	values := []any{}
	for i := 0; i < len(items); i += 2 {
		values = append(values, map[string]any{"key": items[i], "value": items[i+1]})
	}
	return operand{map[string]any{"kvlistValue": map[string]any{"values": values}}, literal}
}

func one(kind string, value any) map[string]any { return map[string]any{kind: value} }

var operands = []operand{
	{nil, ""},
	{map[string]any{}, "nil"},
	integer("0"), integer("1"), integer("-1"),
	integer("9007199254740991"), integer("9007199254740992"), integer("9007199254740993"),
	integer("-9007199254740993"),
	integer("9223372036854775295"), integer("9223372036854775807"), integer("-9223372036854775807"),
	{map[string]any{"intValue": "-9223372036854775808"}, "-9223372036854775808"},
	double(0, "0.0"), double(math.Copysign(0, -1), "-0.0"), double(1, "1.0"), double(-1, "-1.0"), double(0.5, "0.5"),
	double(1<<53, "9007199254740992.0"), double(1<<53-1, "9007199254740991.0"), double(-(1 << 53), "-9007199254740992.0"),
	double(1<<53+2, "9007199254740994.0"),
	double(1<<63, "9223372036854775808.0"), double(-(1 << 63), "-9223372036854775808.0"),
	double(9223372036854774784, "9223372036854774784.0"),
	double(math.SmallestNonzeroFloat64, "4.9e-324"), double(-math.SmallestNonzeroFloat64, ""),
	double(2.2250738585072014e-308, "2.2250738585072014e-308"),
	double(math.MaxFloat64, "1.7976931348623157e308"), double(-math.MaxFloat64, ""),
	double(math.NaN(), ""), double(math.Inf(1), ""), double(math.Inf(-1), ""),
	{one("boolValue", false), "false"}, {one("boolValue", true), "true"},
	{one("stringValue", ""), `""`}, {one("stringValue", "1"), `"1"`}, {one("stringValue", "a"), `"a"`},
	{one("stringValue", "ab"), `"ab"`}, {one("stringValue", "é"), `"é"`}, {one("stringValue", "😀"), `"😀"`},
	{one("stringValue", "\uffff"), "\"\uffff\""},
	{one("bytesValue", ""), ""}, {one("bytesValue", "AA=="), "0x00"}, {one("bytesValue", "YQ=="), "0x61"},
	{one("bytesValue", "/w=="), "0xff"}, {one("bytesValue", "YQA="), "0x6100"},
	list("[]"), list("[1]", one("intValue", "1")), list("[1.0]", one("doubleValue", 1)), list("[nil]", map[string]any{}),
	list(`["a", true]`, one("stringValue", "a"), one("boolValue", true)),
	list("[[1]]", one("arrayValue", map[string]any{"values": []any{one("intValue", "1")}})),
	list("[0x61]", one("bytesValue", "YQ==")),
	list("", one("doubleValue", "NaN")),
	mapping("{}"), mapping(`{"a": 1}`, "a", one("intValue", "1")), mapping(`{"a": 1.0}`, "a", one("doubleValue", 1)),
	mapping(`{"a": nil}`, "a", map[string]any{}), mapping(`{"b": "a"}`, "b", one("stringValue", "a")),
	mapping(`{"a": {"a": [1]}}`, "a", one("kvlistValue", map[string]any{"values": []any{
		map[string]any{"key": "a", "value": one("arrayValue", map[string]any{"values": []any{one("intValue", "1")}})}}})),
	mapping("", "a", one("doubleValue", "NaN")),
}

// Conditions of which some have no answer, alone and beside others.
var failing = [][]string{
	{`attributes["int"] == Int("x")`}, {`not attributes["int"] == Int("x")`},
	{`attributes["text"] + 1 > 2`}, {`attributes["absent"] + 1 > 2`}, {`attributes["int"] + nil == nil`},
	{`1 / attributes["zero"] == 1`}, {`attributes["text"]["x"] == nil`}, {`attributes["text"]["x"] != 1`},
	{`attributes["list"][5] == nil`}, {`attributes["list"]["x"] == nil`}, {`attributes["int"][0] == nil`},
	{`Len(attributes["int"]) > 0`}, {`IsMatch(attributes["text"], "^t")`}, {`IsMatch(attributes["absent"], "")`},
	{`true or 1 / attributes["zero"] == 1`}, {`1 / attributes["zero"] == 1 or true`},
	{`false and 1 / attributes["zero"] == 1`}, {`1 / attributes["zero"] == 1 and false`},
	{`1 / attributes["zero"] == 1`, `true`}, {`true`, `1 / attributes["zero"] == 1`},
	{`false`, `1 / attributes["zero"] == 1`}, {`1 / attributes["zero"] == 1`, `false`},
	{`not (1 / attributes["zero"] == 1)`}, {`attributes["int"] == 5 and not (attributes["absent"] > 1)`},
}

func span(attributes ...any) *ottlspan.TransformContext {
	keyed := []any{}
	for i := 0; i < len(attributes); i += 2 {
		if attributes[i+1] != nil {
			keyed = append(keyed, map[string]any{"key": attributes[i], "value": attributes[i+1]})
		}
	}
	one := map[string]any{"name": "s", "attributes": keyed}
	raw, _ := json.Marshal(map[string]any{"resourceSpans": []any{map[string]any{"scopeSpans": []any{map[string]any{"spans": []any{one}}}}}})
	traces, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(raw)
	if err != nil {
		panic(string(raw) + err.Error())
	}
	rs := traces.ResourceSpans().At(0)
	ss := rs.ScopeSpans().At(0)
	return ottlspan.NewTransformContext(rs, ss, ss.Spans().At(0))
}

var settings = componenttest.NewNopTelemetrySettings()

func sequence(mode ottl.ErrorMode, conditions ...string) (*ottl.ConditionSequence[*ottlspan.TransformContext], error) {
	parser, err := ottlspan.NewParser(ottlfuncs.StandardConverters[*ottlspan.TransformContext](), settings)
	if err != nil {
		panic(err)
	}
	parsed, err := parser.ParseConditions(conditions)
	if err != nil {
		return nil, err
	}
	made := ottlspan.NewConditionSequence(parsed, settings, ottlspan.WithConditionSequenceErrorMode(mode))
	return &made, nil
}

func answer(mode ottl.ErrorMode, spans []*ottlspan.TransformContext, conditions ...string) string {
	var told strings.Builder
	made, err := sequence(mode, conditions...)
	for i := range spans {
		if err != nil {
			told.WriteByte('!')
			continue
		}
		met, err := made.Eval(context.Background(), spans[i])
		told.WriteByte(map[bool]byte{false: '0', true: '1'}[met])
		if err != nil {
			return strings.Repeat("E", len(spans))
		}
	}
	return told.String()
}


func main() {
	none := []*ottlspan.TransformContext{span()}
	var lefts, pairs []*ottlspan.TransformContext
	for _, left := range operands {
		lefts = append(lefts, span("a", left.Attribute))
		for _, right := range operands {
			pairs = append(pairs, span("a", left.Attribute, "b", right.Attribute))
		}
	}
	attributes, right, left, literals := map[string]string{}, map[string][]string{}, map[string][]string{}, map[string][]string{}
	for _, sign := range operators {
		attributes[sign] = answer(ottl.PropagateError, pairs, `attributes["a"] `+sign+` attributes["b"]`)
		for _, one := range operands {
			if one.Literal == "" {
				continue
			}
			right[sign] = append(right[sign], answer(ottl.PropagateError, lefts, `attributes["a"] `+sign+" "+one.Literal))
			left[sign] = append(left[sign], answer(ottl.PropagateError, lefts, one.Literal+" "+sign+` attributes["a"]`))
			row := ""
			for _, other := range operands {
				if other.Literal != "" {
					row += answer(ottl.PropagateError, none, one.Literal+" "+sign+" "+other.Literal)
				}
			}
			literals[sign] = append(literals[sign], row)
		}
	}
	given := span("int", one("intValue", "5"), "zero", one("intValue", "0"), "text", one("stringValue", "text"),
		"list", list("", one("intValue", "1")).Attribute)
	modes := []map[string]any{}
	for _, conditions := range failing {
		told := map[string]any{"conditions": conditions}
		for _, mode := range []ottl.ErrorMode{ottl.IgnoreError, ottl.SilentError, ottl.PropagateError} {
			told[string(mode)] = answer(mode, []*ottlspan.TransformContext{given}, conditions...)
		}
		modes = append(modes, told)
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	_ = encoder.Encode(map[string]any{"version": "pkg/ottl v0.161.0", "operands": operands, "attributes": attributes,
		"literal_right": right, "literal_left": left, "literals": literals, "error_modes": modes})
}
