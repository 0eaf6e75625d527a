package reconcile

import (
	"context"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client returns a client whose created and changed objects carry the span of the reconcile, as with Carry.
//
// Create always writes it. Update and a Patch that client.MergeFrom or client.StrategicMergeFrom computes write it where
// the content changes, compared with what Get, Create, Update or Patch returned in the same reconcile; of an object that
// was found otherwise, by List for example, nothing is written. Other patches, Apply, subresources such as the status,
// and requests outside of a reconcile pass unchanged. The client sends no request of its own, and leaves an object as it
// was if the request fails.
func Client(inner client.Client) client.Client {
	return &carryingClient{inner}
}

type carryingClient struct{ client.Client }

// mergeFrom is the type of the patches that are computed from the object as it was and as it is.
var mergeFrom = reflect.TypeOf(client.MergeFrom(&metav1.PartialObjectMetadata{}))

// Get implements client.Client.
func (c *carryingClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := c.Client.Get(ctx, key, object, options...)
	return c.after(ctx, object, nil, err)
}

// Create implements client.Client.
func (c *carryingClient) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	var undo func()
	if made := current(ctx); made != nil {
		made.tracing.guard(ctx, func() { undo = made.carry(object) })
	}
	return c.after(ctx, object, undo, c.Client.Create(ctx, object, options...))
}

// Update implements client.Client.
func (c *carryingClient) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	undo := change(ctx, object)
	return c.after(ctx, object, undo, c.Client.Update(ctx, object, options...))
}

// Patch implements client.Client.
func (c *carryingClient) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	var undo func()
	if reflect.TypeOf(patch) == mergeFrom {
		undo = change(ctx, object)
	}
	return c.after(ctx, object, undo, c.Client.Patch(ctx, object, patch, options...))
}

// change prepares an object that replaces one that the reconcile has read.
func change(ctx context.Context, object client.Object) (undo func()) {
	made := current(ctx)
	if made == nil {
		return nil
	}
	made.tracing.guard(ctx, func() {
		if live := made.recall(object); live != nil {
			undo = made.carryChange(object, live)
		}
	})
	return undo
}

// after remembers an object as the API server has it, or takes back what was written into it.
func (c *carryingClient) after(ctx context.Context, object client.Object, undo func(), err error) error {
	made := current(ctx)
	switch {
	case made == nil:
	case err == nil:
		made.tracing.guard(ctx, func() { made.learn(object) })
	case undo != nil:
		made.tracing.guard(ctx, undo)
	}
	return err
}

// known are the latest objects that a call got from the API server, by what they are; it forgets the oldest.
type known struct {
	objects map[objectKey]client.Object
	order   []objectKey
}

type objectKey struct {
	of   reflect.Type
	kind schema.GroupVersionKind
	name types.NamespacedName
}

func keyOf(object client.Object) objectKey {
	return objectKey{reflect.TypeOf(object), object.GetObjectKind().GroupVersionKind(), client.ObjectKeyFromObject(object)}
}

func (c *call) learn(object client.Object) {
	if _, hasNoContent := object.(*metav1.PartialObjectMetadata); hasNoContent || !c.carried.IsValid() {
		return
	}
	copied, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return
	}
	key := keyOf(object)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	if c.known.objects == nil {
		c.known.objects = map[objectKey]client.Object{}
	}
	if _, there := c.known.objects[key]; !there {
		c.known.order = append(c.known.order, key)
	}
	c.known.objects[key] = copied
	if len(c.known.order) > maxObjectsOfCall {
		delete(c.known.objects, c.known.order[0])
		c.known.order = c.known.order[1:]
	}
}

// recall returns what the object was when the call got it; nil if it did not, or if another version is to be changed.
func (c *call) recall(object client.Object) client.Object {
	c.mu.Lock()
	live := c.known.objects[keyOf(object)]
	c.mu.Unlock()
	if live == nil || (object.GetResourceVersion() != "" && object.GetResourceVersion() != live.GetResourceVersion()) {
		return nil
	}
	return live
}
