package kubescheduler

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
	tracingapi "k8s.io/component-base/tracing/api/v1"
)

// Feature gates of KEP-5927 and KEP-5915.
const (
	GateTracing     = "SchedulerTracing"
	GatePropagation = "AsyncTraceContextPropagation"
)

// Settings are the content of the file that --tracing-config names. The zero value traces nothing.
type Settings struct {
	Gates map[string]bool
	// Tracing is nil without a section `tracing`: then no spans are made, and contexts pass through.
	Tracing *tracingapi.TracingConfiguration
}

const settingsExample = `apiVersion: podtrail/v1alpha1
kind: SchedulerTracing
featureGates: {SchedulerTracing: true, AsyncTraceContextPropagation: true}
tracing: {endpoint: "localhost:4317", samplingRatePerMillion: 10000}`

// LoadSettings reads a file of kind SchedulerTracing. An error has one line for each mistake, with file, line, column
// and path.
func LoadSettings(name string) (Settings, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return Settings{}, fmt.Errorf("--tracing-config: %w", err)
	}
	return parseSettings(name, content)
}

func parseSettings(name string, content []byte) (Settings, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return Settings{}, fmt.Errorf("%s: %w", name, err)
	}
	if len(document.Content) == 0 {
		return Settings{}, fmt.Errorf("%s: the file is empty; it looks like this:\n%s", name, settingsExample)
	}
	r := settingsReader{name: name}
	settings := r.read(document.Content[0])
	return settings, errors.Join(r.problems...)
}

type settingsReader struct {
	name     string
	problems []error
}

func (r *settingsReader) complain(at *yaml.Node, path, format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf("%s:%d:%d: %s: %s", r.name, at.Line, at.Column, path, fmt.Sprintf(format, args...)))
}

// fields calls read for each field of a mapping, once a name.
func (r *settingsReader) fields(node *yaml.Node, path string, known []string, read func(name, path string, value *yaml.Node)) {
	if node.Kind != yaml.MappingNode {
		r.complain(node, cmpPath(path), "expected a mapping of %s", strings.Join(known, ", "))
		return
	}
	seen := map[string]bool{}
	for index := 0; index+1 < len(node.Content); index += 2 {
		key, value := node.Content[index], node.Content[index+1]
		place := strings.TrimPrefix(path+"."+key.Value, ".")
		switch {
		case seen[key.Value]:
			r.complain(key, place, "the field is there twice")
		case !slices.Contains(known, key.Value):
			r.complain(key, place, "unknown field; known are %s", strings.Join(known, ", "))
		default:
			read(key.Value, place, value)
		}
		seen[key.Value] = true
	}
}

func cmpPath(path string) string {
	if path == "" {
		return "the document"
	}
	return path
}

func (r *settingsReader) read(root *yaml.Node) Settings {
	settings := Settings{Gates: map[string]bool{}}
	version, kind := "", ""
	r.fields(root, "", []string{"apiVersion", "kind", "featureGates", "tracing"}, func(name, path string, value *yaml.Node) {
		switch name {
		case "apiVersion":
			version = value.Value
		case "kind":
			kind = value.Value
		case "featureGates":
			r.fields(value, path, []string{GateTracing, GatePropagation}, func(gate, path string, value *yaml.Node) {
				var enabled bool
				if value.Tag != "!!bool" || value.Decode(&enabled) != nil {
					r.complain(value, path, "expected true or false, not %q", value.Value)
				}
				settings.Gates[gate] = enabled
			})
		case "tracing":
			settings.Tracing = r.tracing(value, path)
		}
	})
	if root.Kind == yaml.MappingNode && (version != "podtrail/v1alpha1" || kind != "SchedulerTracing") {
		r.complain(root, "kind", "expected apiVersion podtrail/v1alpha1 and kind SchedulerTracing, not %q and %q", version, kind)
	}
	return settings
}

func (r *settingsReader) tracing(node *yaml.Node, path string) *tracingapi.TracingConfiguration {
	tracing := &tracingapi.TracingConfiguration{}
	if node.Tag == "!!null" {
		return tracing
	}
	places := map[string]*yaml.Node{}
	r.fields(node, path, []string{"endpoint", "samplingRatePerMillion"}, func(name, path string, value *yaml.Node) {
		places[path] = value
		switch {
		case value.Tag == "!!null":
		case name == "endpoint" && value.Tag == "!!str":
			tracing.Endpoint = &value.Value
		case name == "samplingRatePerMillion" && value.Tag == "!!int":
			var rate int32
			if value.Decode(&rate) != nil {
				r.complain(value, path, "expected a whole number from 0 to 1000000, not %s", value.Value)
				return
			}
			tracing.SamplingRatePerMillion = &rate
		case name == "endpoint":
			r.complain(value, path, "expected an address such as localhost:4317, not %q", value.Value)
		default:
			r.complain(value, path, "expected a whole number from 0 to 1000000, not %q", value.Value)
		}
	})
	for _, problem := range tracingapi.ValidateTracingConfiguration(tracing, nil, field.NewPath(path)) {
		r.complain(places[problem.Field], problem.Field, "%s", problem.ErrorBody())
	}
	return tracing
}
