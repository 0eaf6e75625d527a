package reconcile

import (
	"context"
	"maps"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	runtimereconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const older = "00-11111111111111111111111111111111-2222222222222222-01"

// mark is what the object carries once it was written by the call of ctx.
func mark(ctx context.Context, object client.Object) string {
	switch object.GetAnnotations()[annotation] {
	case "":
		return "nothing"
	case older:
		return "older"
	case Annotations(ctx)[annotation]:
		return "this call"
	}
	return "another"
}

func TestAClientWritesTheCallIntoWhatItCreatesAndChanges(t *testing.T) {
	named := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	}
	get := func(ctx context.Context, c client.Client, name string) (*corev1.ConfigMap, error) {
		object := named(name)
		return object, c.Get(ctx, client.ObjectKeyFromObject(object), object)
	}
	changed := map[string]string{"color": "red"}
	cases := map[string]struct {
		does func(context.Context, client.Client) error
		of   string
		want string
	}{
		"create": {func(ctx context.Context, c client.Client) error { return c.Create(ctx, named("new")) }, "new", "this call"},
		"update that changes": {func(ctx context.Context, c client.Client) error {
			object, err := get(ctx, c, "old")
			object.Data = changed
			object.Annotations = nil // as a reconciler that builds the whole object
			if err != nil {
				return err
			}
			return c.Update(ctx, object)
		}, "old", "this call"},
		"update of the same": {func(ctx context.Context, c client.Client) error {
			object, err := get(ctx, c, "old")
			object.Annotations = nil
			if err != nil {
				return err
			}
			return c.Update(ctx, object)
		}, "old", "older"},
		"second update": {func(ctx context.Context, c client.Client) error {
			object, err := get(ctx, c, "old")
			if err != nil || c.Update(ctx, object) != nil {
				return err
			}
			object.Data = changed
			return c.Update(ctx, object)
		}, "old", "this call"},
		"update of a listed object": {func(ctx context.Context, c client.Client) error {
			var list corev1.ConfigMapList
			if err := c.List(ctx, &list); err != nil {
				return err
			}
			list.Items[0].Data = changed
			return c.Update(ctx, &list.Items[0])
		}, "old", "older"},
		"merge patch": {func(ctx context.Context, c client.Client) error {
			object, err := get(ctx, c, "old")
			before := client.MergeFrom(object.DeepCopy())
			object.Data = changed
			if err != nil {
				return err
			}
			return c.Patch(ctx, object, before)
		}, "old", "this call"},
		"raw patch": {func(ctx context.Context, c client.Client) error {
			return c.Patch(ctx, named("old"), client.RawPatch("application/merge-patch+json", []byte(`{"data":{"a":"b"}}`)))
		}, "old", "older"},
		"update outside of a reconcile": {func(_ context.Context, c client.Client) error {
			object, err := get(context.Background(), c, "old")
			object.Data = changed
			if err != nil {
				return err
			}
			return c.Update(context.Background(), object)
		}, "old", "older"},
	}
	for name, one := range cases {
		t.Run(name, func(t *testing.T) {
			existing := named("old")
			existing.Annotations = map[string]string{annotation: older}
			inner := fake.NewClientBuilder().WithObjects(existing).Build()
			_, provider := recorder()
			traced := Trace[runtimereconcile.Request](runtimereconcile.Func(func(ctx context.Context, _ runtimereconcile.Request) (runtimereconcile.Result, error) {
				if err := one.does(ctx, Client(inner)); err != nil {
					return runtimereconcile.Result{}, err
				}
				object, err := get(ctx, inner, one.of)
				if got := mark(ctx, object); got != one.want {
					t.Errorf("the object carries %s, not %s", got, one.want)
				}
				return runtimereconcile.Result{}, err
			}), Named("shop"), ForRequest(handled), provider)
			if _, err := traced.Reconcile(context.Background(), request); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestARequestThatFailsLeavesTheObjectAsItWas(t *testing.T) {
	_, provider := recorder()
	traced := Trace[runtimereconcile.Request](runtimereconcile.Func(func(ctx context.Context, _ runtimereconcile.Request) (runtimereconcile.Result, error) {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "old", Annotations: map[string]string{"a": "b"}}}
		inner := fake.NewClientBuilder().WithObjects(object.DeepCopy()).Build()
		if Client(inner).Create(ctx, object) == nil || !maps.Equal(object.Annotations, map[string]string{"a": "b"}) {
			t.Errorf("%v", object.Annotations)
		}
		return runtimereconcile.Result{}, nil
	}), Named("shop"), ForRequest(handled), provider)
	if _, err := traced.Reconcile(context.Background(), request); err != nil {
		t.Error(err)
	}
}

// hanging is an exporter whose endpoint never answers.
type hanging struct{ begun, over chan struct{} }

func (h hanging) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error {
	select {
	case h.begun <- struct{}{}:
	default:
	}
	<-h.over
	return nil
}

func (hanging) Shutdown(context.Context) error { return nil }

func TestNoCallWaitsForAnEndpointThatHangs(t *testing.T) {
	endpoint := hanging{make(chan struct{}, 1), make(chan struct{})}
	defer close(endpoint.over)
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(endpoint, sdktrace.WithMaxQueueSize(10), sdktrace.WithMaxExportBatchSize(1)))
	traced := Sync(func(context.Context, string) error { return nil }, Named("loop"), WithTracerProvider(provider))
	call := func() {
		if err := traced(context.Background(), "shop/blue"); err != nil {
			t.Fatal(err)
		}
	}
	call()
	<-endpoint.begun
	for range 1000 { // more than the queue holds
		call()
	}
}
