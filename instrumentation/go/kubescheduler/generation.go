package kubescheduler

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf16"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	configv1 "k8s.io/kube-scheduler/config/v1"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	conversionv1 "k8s.io/kubernetes/pkg/scheduler/apis/config/v1"

	"podtrail/instrumentation/tracecontext"
)

// decidesNothing are the fields of a configuration that no decision depends on.
var decidesNothing = []string{
	"kind", "apiVersion", "parallelism", "leaderElection", "clientConnection", "enableProfiling",
	"enableContentionProfiling", "delayCacheUntilActive", "tracing",
}

// Generation returns twelve hexadecimal digits that change with what a configuration decides. They are those that
// podtrail computes from the scheduler's /configz, so attempts from both sources can be compared.
func Generation(configuration *schedulerconfig.KubeSchedulerConfiguration) (string, error) {
	external := &configv1.KubeSchedulerConfiguration{}
	if err := conversionv1.Convert_config_KubeSchedulerConfiguration_To_v1_KubeSchedulerConfiguration(configuration, external, nil); err != nil {
		return "", fmt.Errorf("generation of the configuration: %w", err)
	}
	document, err := json.Marshal(external)
	if err != nil {
		return "", fmt.Errorf("generation of the configuration: %w", err)
	}
	var fields map[string]any
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	if err := decoder.Decode(&fields); err != nil {
		return "", fmt.Errorf("generation of the configuration: %w", err)
	}
	for _, name := range decidesNothing {
		delete(fields, name)
	}
	var canonical bytes.Buffer
	encoder := json.NewEncoder(&canonical) // sorts the keys
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(fields); err != nil {
		return "", fmt.Errorf("generation of the configuration: %w", err)
	}
	digest := sha256.Sum256([]byte(ascii(strings.TrimSuffix(canonical.String(), "\n"))))
	return hex.EncodeToString(digest[:])[:12], nil
}

// ascii escapes what is not ASCII as Python's json does.
func ascii(text string) string {
	var escaped strings.Builder
	for _, char := range text {
		switch {
		case char < 0x80:
			escaped.WriteRune(char)
		case char > 0xffff:
			high, low := utf16.EncodeRune(char)
			fmt.Fprintf(&escaped, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&escaped, `\u%04x`, char)
		}
	}
	return escaped.String()
}

var claimed = regexp.MustCompile(`^#[ \t]*(tracing\.k8s\.io/(?:traceparent|tracestate)):[ \t]*(\S{1,512})[ \t]*$`)

// ClaimedContext returns the trace context that a configuration file carries in comments above its first field, by
// annotation key. A KubeSchedulerConfiguration has no annotations; a comment comes and goes with the file.
func ClaimedContext(content []byte) map[string]string {
	found := map[string]string{}
	head := string(content[:min(len(content), 8192)])
	for _, line := range strings.Split(strings.ReplaceAll(head, "\r\n", "\n"), "\n") {
		if trimmed := strings.TrimSpace(line); trimmed != "" && trimmed != "---" && !strings.HasPrefix(line, "#") {
			break
		}
		if match := claimed.FindStringSubmatch(line); match != nil && found[match[1]] == "" {
			found[match[1]] = match[2]
		}
	}
	return found
}

// configurationLinks links attempts to the change that made their configuration.
func configurationLinks(propagates bool, head map[string]string) []trace.Link {
	if !propagates {
		return nil
	}
	link, result := tracecontext.Link(head, tracecontext.DefaultPrefix)
	if result != tracecontext.Success {
		return nil
	}
	link.Attributes = []attribute.KeyValue{
		linkTypeKey.String("configuration"),
		tracecontext.LinkSource.String("configuration"),
		tracecontext.LinkTrusted.Bool(false),
	}
	return []trace.Link{link}
}
