package reconcile

import (
	"context"
	"errors"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimereconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	annotation  = "tracing.k8s.io/traceparent"
	traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

var request = runtimereconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "blue"}}

func recorder() (*tracetest.SpanRecorder, Option) {
	spans := tracetest.NewSpanRecorder()
	return spans, WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))
}

func handled(context.Context, runtimereconcile.Request) (client.Object, error) {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "blue", UID: "u", Annotations: map[string]string{annotation: traceparent},
	}}, nil
}

func TestARepeatedCallIsARootWithLinksToTheAnnotationAndTheCallBefore(t *testing.T) {
	spans, provider := recorder()
	answers := []struct {
		result runtimereconcile.Result
		err    error
		name   string
	}{
		{runtimereconcile.Result{RequeueAfter: time.Second}, nil, retry},
		{runtimereconcile.Result{}, errors.New("refused"), errored},
		{runtimereconcile.Result{}, runtimereconcile.TerminalError(errors.New("never")), failed},
		{runtimereconcile.Result{}, nil, succeeded},
	}
	call := 0
	traced := Trace[runtimereconcile.Request](runtimereconcile.Func(func(ctx context.Context, _ runtimereconcile.Request) (runtimereconcile.Result, error) {
		pod := &corev1.Pod{}
		Carry(ctx, pod)
		if want := Annotations(ctx)[annotation]; want == "" || pod.Annotations[annotation] != want {
			t.Errorf("the Pod carries %v", pod.Annotations)
		}
		call++
		return answers[call-1].result, answers[call-1].err
	}), Named("shop"), ForRequest(handled), provider)
	for index, answer := range answers {
		if result, err := traced.Reconcile(context.Background(), request); result != answer.result || !errors.Is(err, answer.err) {
			t.Errorf("call %d: %v %v", index, result, err)
		}
	}
	for index, span := range spans.Ended() {
		outcome := ""
		for _, each := range span.Attributes() {
			if each.Key == outcomeKey {
				outcome = each.Value.AsString()
			}
		}
		links := map[bool]int{false: 1, true: 2}[index == 1 || index == 2]
		if span.Name() != "reconcile shop" || span.SpanKind() != trace.SpanKindConsumer || span.Parent().IsValid() ||
			outcome != answers[index].name || len(span.Links()) != links {
			t.Errorf("call %d: %s %s %v", index, span.Name(), outcome, span.Links())
		}
	}
	if len(spans.Ended()) != len(answers) {
		t.Errorf("%d spans", len(spans.Ended()))
	}
}

func TestAPanicOfTheReconcilerPassesWithItsSpanEndedAndOursDoesNot(t *testing.T) {
	spans, provider := recorder()
	calls := 0
	work := func(context.Context, string) error {
		calls++
		if calls == 1 {
			panic("theirs")
		}
		return nil
	}
	traced := Sync(work, Named("loop"), provider)
	func() {
		defer func() {
			if recover() != "theirs" {
				t.Error("the panic did not pass")
			}
		}()
		_ = traced(context.Background(), "shop/blue")
	}()
	if len(spans.Ended()) != 1 {
		t.Errorf("%d spans", len(spans.Ended()))
	}
	broken := ForRequest(func(context.Context, string) (client.Object, error) { panic("ours") })
	if err := Sync(work, Named("broken"), provider, broken)(context.Background(), "shop/blue"); err != nil || calls != 2 {
		t.Errorf("%v, %d calls", err, calls)
	}
}

func TestRepeatedCallsAreForgottenBeyondTheBound(t *testing.T) {
	var kept attempts
	for key := range 2 * maxAttempts {
		kept.remember(key, attempt{number: 1})
	}
	if len(kept.byKey) != maxAttempts || kept.oldest.Len() != maxAttempts || kept.take(0, "").number != 0 {
		t.Errorf("%d are kept", len(kept.byKey))
	}
}

func TestAChangeKeepsItsAnnotationsWhereLiveHasAllThatIsWanted(t *testing.T) {
	_, provider := recorder()
	old := map[string]string{annotation: "00-" + "1111111111111111" + "1111111111111111" + "-2222222222222222-01"}
	cases := map[string]struct {
		wanted, live *corev1.ServiceAccount
		keeps        bool
	}{
		"the same":                 {&corev1.ServiceAccount{}, &corev1.ServiceAccount{}, true},
		"a field that others fill": {&corev1.ServiceAccount{}, &corev1.ServiceAccount{Secrets: []corev1.ObjectReference{{Name: "s"}}}, true},
		"a change":                 {&corev1.ServiceAccount{Secrets: []corev1.ObjectReference{{Name: "s"}}}, &corev1.ServiceAccount{}, false},
	}
	for name, one := range cases {
		one.live.Annotations = old
		traced := Trace[runtimereconcile.Request](runtimereconcile.Func(func(ctx context.Context, _ runtimereconcile.Request) (runtimereconcile.Result, error) {
			CarryChange(ctx, one.wanted, one.live)
			kept := one.wanted.Annotations[annotation] == old[annotation]
			if kept != one.keeps || (!kept && one.wanted.Annotations[annotation] != Annotations(ctx)[annotation]) {
				t.Errorf("%s: %v", name, one.wanted.Annotations)
			}
			return runtimereconcile.Result{}, nil
		}), Named("shop"), ForRequest(handled), provider)
		if _, err := traced.Reconcile(context.Background(), request); err != nil {
			t.Error(err)
		}
	}
}
