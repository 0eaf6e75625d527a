package reconcile

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// subject is what a call is about, as far as request and object say.
type subject struct {
	kind            schema.GroupVersionKind
	name            types.NamespacedName
	uid             types.UID
	resourceVersion string
	// key is the text of a request that names no object.
	key string
}

func subjectOf(key any, object client.Object, kind schema.GroupVersionKind) subject {
	if !isNil(object) {
		about := subject{
			kind:            kindOf(nil, object),
			name:            client.ObjectKeyFromObject(object),
			uid:             object.GetUID(),
			resourceVersion: object.GetResourceVersion(),
		}
		if kind.Kind != "" {
			about.kind = kind
		}
		return about
	}
	if _, isText := text(key); isText && kind.Kind == "" {
		// Sync loops that look at everything have a key that stands for no object.
		return subject{key: fmt.Sprint(identity(key))}
	}
	if name, ok := namespacedName(key); ok {
		return subject{kind: kind, name: name}
	}
	return subject{kind: kind, key: fmt.Sprint(identity(key))}
}

// attributes returns what is known of the subject. k8s.object.* are the Collector's names for an object.
func (s subject) attributes() []attribute.KeyValue {
	var found []attribute.KeyValue
	add := func(key attribute.Key, value string) {
		if value != "" {
			found = append(found, key.String(cut(value, maxCharacters)))
		}
	}
	add(requestKey, s.key)
	version, kind := s.kind.ToAPIVersionAndKind()
	add(apiVersionKey, version)
	add(kindKey, kind)
	add(nameKey, s.name.Name)
	add(namespaceKey, s.name.Namespace)
	add(uidKey, string(s.uid))
	add(resourceVersionKey, s.resourceVersion)
	if own := ownAttributes[s.kind.Group][kind]; own != "" {
		add(attribute.Key(own+".name"), s.name.Name)
		add(attribute.Key(own+".uid"), string(s.uid))
	}
	return found
}

// kindOf returns the kind of an object: as it says itself, as reader knows its type, or the type's name.
func kindOf(reader any, object client.Object) schema.GroupVersionKind {
	if kind := object.GetObjectKind().GroupVersionKind(); kind.Kind != "" {
		return kind
	}
	if knows, ok := reader.(interface {
		GroupVersionKindFor(object runtime.Object) (schema.GroupVersionKind, error)
	}); ok {
		if kind, err := knows.GroupVersionKindFor(object); err == nil {
			return kind
		}
	}
	of := reflect.TypeOf(object)
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return schema.GroupVersionKind{Kind: of.Name()}
}

// text returns the key of a request that is a text: a string, or the key of a library-go SyncContext.
func text(key any) (string, bool) {
	switch given := key.(type) {
	case string:
		return given, true
	case interface{ QueueKey() string }:
		return given.QueueKey(), true
	}
	return "", false
}

// identity returns what two calls for the same object have in common. It can be compared.
func identity(key any) any {
	if key, ok := text(key); ok {
		return key
	}
	if object, ok := key.(client.Object); ok && !isNil(object) {
		return client.ObjectKeyFromObject(object)
	}
	if value := reflect.ValueOf(key); value.IsValid() && value.Comparable() {
		return key
	}
	return fmt.Sprint(key)
}

// namespacedName returns the object that a request names: by its fields Namespace and Name, or as "namespace/name".
func namespacedName(key any) (types.NamespacedName, bool) {
	if key, ok := text(key); ok {
		namespace, name, both := strings.Cut(key, "/")
		if !both {
			namespace, name = "", namespace
		}
		return types.NamespacedName{Namespace: namespace, Name: name}, name != "" && !strings.Contains(name, "/")
	}
	if object, ok := key.(client.Object); ok && !isNil(object) {
		return client.ObjectKeyFromObject(object), true
	}
	value := reflect.ValueOf(key)
	if value.Kind() != reflect.Struct {
		return types.NamespacedName{}, false
	}
	name, namespace := value.FieldByName("Name"), value.FieldByName("Namespace")
	if name.Kind() != reflect.String || name.String() == "" {
		return types.NamespacedName{}, false
	}
	found := types.NamespacedName{Name: name.String()}
	if namespace.Kind() == reflect.String {
		found.Namespace = namespace.String()
	}
	return found, true
}

// reconcileID returns the id that controller-runtime's logs have of a call.
func reconcileID(ctx context.Context) string {
	return string(controller.ReconcileIDFromContext(ctx))
}
