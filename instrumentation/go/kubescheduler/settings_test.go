package kubescheduler

import (
	"testing"
)

func TestSettingsAreReadOrEachMistakeIsNamedWithItsPlace(t *testing.T) {
	head := "apiVersion: podtrail/v1alpha1\nkind: SchedulerTracing\n"
	for text, problem := range map[string]string{
		settingsExample:                    "",
		head:                               "",
		head + "tracing:\n":                "",
		head + "tracing: {}":               "",
		"":                                 "t.yaml: the file is empty; it looks like this:\n" + settingsExample,
		"[1]":                              "t.yaml:1:1: the document: expected a mapping of apiVersion, kind, featureGates, tracing",
		head + "tracing: {endpont: x}":     "t.yaml:3:11: tracing.endpont: unknown field; known are endpoint, samplingRatePerMillion",
		head + "tracing: {endpoint: 4317}": "t.yaml:3:21: tracing.endpoint: expected an address such as localhost:4317, not \"4317\"",
		head + "tracing: {endpoint: 'http://a'}": "t.yaml:3:21: tracing.endpoint: Invalid value: \"http://a\": unsupported scheme: http.  " +
			"Options are none, dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md",
		head + "tracing: {samplingRatePerMillion: 1000001}": "t.yaml:3:35: tracing.samplingRatePerMillion: Invalid value: 1000001: " +
			"sampling rate per million must be less than or equal to one million",
		head + "tracing: {samplingRatePerMillion: -1}":  "t.yaml:3:35: tracing.samplingRatePerMillion: Invalid value: -1: sampling rate must be positive",
		head + "tracing: {samplingRatePerMillion: 9e9}": "t.yaml:3:35: tracing.samplingRatePerMillion: expected a whole number from 0 to 1000000, not \"9e9\"",
		head + "featureGates: {SchedulerTracing: yes}":  "t.yaml:3:34: featureGates.SchedulerTracing: expected true or false, not \"yes\"",
		head + "featureGates: {Tracing: true}":          "t.yaml:3:16: featureGates.Tracing: unknown field; known are SchedulerTracing, AsyncTraceContextPropagation",
		head + "kind: SchedulerTracing":                 "t.yaml:3:1: kind: the field is there twice",
		"kind: Other\n":                                 "t.yaml:1:1: kind: expected apiVersion podtrail/v1alpha1 and kind SchedulerTracing, not \"\" and \"Other\"",
	} {
		_, err := parseSettings("t.yaml", []byte(text))
		if found := ""; err != nil {
			found = err.Error()
			if found != problem {
				t.Errorf("%s\n  is     %q\n  wanted %q", text, found, problem)
			}
		} else if problem != "" {
			t.Errorf("%s\n  is accepted, wanted %q", text, problem)
		}
	}
	if _, err := LoadSettings("missing.yaml"); err == nil {
		t.Error("a missing file is accepted")
	}
}

func TestTheClaimedContextStandsAboveTheFirstField(t *testing.T) {
	line := "# tracing.k8s.io/traceparent: " + creation
	for text, found := range map[string]bool{
		line + "\nkind: X\n":                    true,
		"---\r\n\r\n# more\r\n" + line + "\r\n": true,
		"kind: X\n" + line:                      false,
		" " + line:                              false,
		"# tracing.k8s.io/baggage: a=b":         false,
	} {
		if claimed := ClaimedContext([]byte(text)); (claimed["tracing.k8s.io/traceparent"] == creation) != found {
			t.Errorf("%q: %v", text, claimed)
		}
	}
}
