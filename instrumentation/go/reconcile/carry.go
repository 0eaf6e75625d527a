package reconcile

import (
	"context"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"podtrail/instrumentation/tracecontext"
)

// Carry writes the span of the reconcile that ctx belongs to into the annotations of objects that are about to be
// created, and of the Pod templates in them. An annotation that is there stays. Outside of a reconcile nothing is written.
//
// A reconcile that is not sampled hands on what the handled object carries.
func Carry(ctx context.Context, objects ...client.Object) {
	made := current(ctx)
	for _, object := range objects {
		if made == nil {
			counts.injected("", kindOf(nil, object).Kind, string(tracecontext.NoContext))
			continue
		}
		made.tracing.guard(ctx, func() { made.carry(object) })
	}
}

// CarryChange is Carry for an object that is about to replace live, the object in the cluster. Where live has all that is
// wanted, it keeps the annotations that it has: another annotation in a Pod template would be a rollout.
func CarryChange(ctx context.Context, wanted, live client.Object) {
	if isNil(live) {
		Carry(ctx, wanted)
		return
	}
	if made := current(ctx); made != nil {
		made.tracing.guard(ctx, func() { made.carryChange(wanted, live) })
	}
}

// Annotations returns what Carry writes, for a file or a message; nil outside of a reconcile.
func Annotations(ctx context.Context) map[string]string {
	made := current(ctx)
	if made == nil {
		return nil
	}
	return made.annotations()
}

func (c *call) annotations() map[string]string {
	changes, _ := tracecontext.Inject(nil, c.carried, c.tracing.prefix)
	return changes
}

func (c *call) keys() [2]string {
	return [2]string{c.tracing.prefix + "traceparent", c.tracing.prefix + "tracestate"}
}

// carry writes into an object that is about to be created. The function that it returns takes that back.
func (c *call) carry(object client.Object) (undo func()) {
	made := &writing{call: c, kind: kindOf(nil, object).Kind}
	for _, at := range placesOf(object) {
		if len(made.context(at)) > 0 {
			made.count(tracecontext.Unchanged)
		} else {
			made.write(at, c.annotations())
		}
	}
	return made.undo
}

// carryChange writes into an object that is about to replace another, wherever its content changes.
func (c *call) carryChange(wanted, live client.Object) (undo func()) {
	made := &writing{call: c, kind: kindOf(nil, wanted).Kind}
	compare := comparison{ignored: c.keys()}
	there := map[string]place{}
	same := reflect.TypeOf(wanted) == reflect.TypeOf(live)
	for _, at := range placesOf(like(live, same)) {
		there[at.path] = at
	}
	contents := map[string]any{}
	for _, at := range placesOf(like(wanted, same)) {
		contents[at.path] = at.content
	}
	for _, at := range placesOf(wanted) {
		carried, before := made.context(at), map[string]string{}
		if old, found := there[at.path]; found {
			before = made.context(old)
			if compare.has(old.content, contents[at.path]) {
				made.keep(at, carried, before)
				continue
			}
		}
		if len(carried) > 0 && !maps.Equal(carried, before) {
			made.count(tracecontext.Unchanged) // the reconciler chose it
		} else {
			made.write(at, c.annotations())
		}
	}
	return made.undo
}

// like returns the object, or its unstructured form if it is compared with one of another type.
func like(object client.Object, same bool) client.Object {
	if _, free := object.(*unstructured.Unstructured); same || free {
		return object
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return object
	}
	return &unstructured.Unstructured{Object: fields}
}

// writing is what is written into the annotations of one object.
type writing struct {
	call *call
	kind string
	back []func()
}

// context returns the annotations of a place that carry trace context.
func (w *writing) context(at place) map[string]string {
	found := map[string]string{}
	all := at.annotations()
	for _, key := range w.call.keys() {
		if value := all[key]; value != "" {
			found[key] = value
		}
	}
	return found
}

// keep puts back what the object in the cluster carries, if the reconciler left it out.
func (w *writing) keep(at place, carried, before map[string]string) {
	w.count(tracecontext.Unchanged)
	if len(carried) == 0 && len(before) > 0 {
		w.set(at, before)
	}
}

func (w *writing) write(at place, context map[string]string) {
	switch {
	case len(context) == 0:
		w.count(tracecontext.NoContext)
	case maps.Equal(w.context(at), context):
		w.count(tracecontext.Unchanged)
	default:
		w.count(tracecontext.Success)
		w.set(at, context)
	}
}

func (w *writing) set(at place, context map[string]string) {
	old := at.annotations()
	all := maps.Clone(old)
	if all == nil {
		all = map[string]string{}
	}
	for _, key := range w.call.keys() {
		delete(all, key)
	}
	maps.Copy(all, context)
	at.write(all)
	w.back = append(w.back, func() { at.write(old) })
}

func (w *writing) undo() {
	for _, back := range w.back {
		back()
	}
}

func (w *writing) count(result tracecontext.Result) {
	counts.injected(w.call.tracing.name, w.kind, string(result))
}
