package reconcile

import (
	"maps"
	"reflect"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// place is where an object has annotations: itself, or a Pod or Job template in it.
type place struct {
	path        string
	annotations func() map[string]string
	// write replaces the annotations. It changes no map and no template that another object may share.
	write func(map[string]string)
	// content is what a change of the specification changes: of the object all but metadata and status.
	content any
}

// placesOf returns the object's own place and those of the templates in it, which are found by their type or, in an
// unstructured object, by the containers in them.
func placesOf(object client.Object) []place {
	found := []place{{annotations: object.GetAnnotations, write: object.SetAnnotations, content: contentOf(object)}}
	if free, ok := object.(*unstructured.Unstructured); ok {
		return append(found, placesIn(free.Object)...)
	}
	whole := reflect.ValueOf(object)
	if whole.Kind() != reflect.Pointer || whole.Elem().Kind() != reflect.Struct {
		return found
	}
	if template, ok := object.(*corev1.PodTemplate); ok {
		return append(found, templatePlaces("template", reflect.ValueOf(&template.Template).Elem())...)
	}
	spec := whole.Elem().FieldByName("Spec")
	if spec.Kind() == reflect.Pointer {
		spec = spec.Elem()
	}
	if spec.Kind() != reflect.Struct {
		return found
	}
	found = append(found, templatePlaces("spec.template", spec.FieldByName("Template"))...)
	return append(found, templatePlaces("spec.jobTemplate", spec.FieldByName("JobTemplate"))...)
}

func templatePlaces(path string, field reflect.Value) []place {
	if !field.IsValid() || !field.CanSet() {
		return nil
	}
	of := func(path string, meta func() *metav1.ObjectMeta, content any) place {
		return place{
			path:        path,
			annotations: func() map[string]string { return meta().Annotations },
			write:       func(annotations map[string]string) { meta().Annotations = annotations },
			content:     content,
		}
	}
	switch at := field.Addr().Interface().(type) {
	case *corev1.PodTemplateSpec:
		return []place{of(path, func() *metav1.ObjectMeta { return &at.ObjectMeta }, *at)}
	case **corev1.PodTemplateSpec:
		if *at == nil {
			return nil
		}
		shared := of(path, func() *metav1.ObjectMeta { return &(*at).ObjectMeta }, **at)
		shared.write = func(annotations map[string]string) {
			own := **at
			own.Annotations = annotations
			*at = &own
		}
		return []place{shared}
	case *batchv1.JobTemplateSpec:
		return []place{
			of(path, func() *metav1.ObjectMeta { return &at.ObjectMeta }, *at),
			of(path+".spec.template", func() *metav1.ObjectMeta { return &at.Spec.Template.ObjectMeta }, at.Spec.Template),
		}
	}
	return nil
}

// placesIn returns the places of the templates of an unstructured object.
func placesIn(object map[string]any) []place {
	var found []place
	add := func(path string, fields ...string) {
		content := mapAt(object, fields...)
		found = append(found, place{
			path:        path,
			annotations: func() map[string]string { return textsOf(mapAt(object, append(fields, "metadata", "annotations")...)) },
			write: func(annotations map[string]string) {
				setAt(object, annotations, append(fields, "metadata", "annotations")...)
			},
			content: content,
		})
	}
	if isPodTemplate(mapAt(object, "spec", "template")) {
		add("spec.template", "spec", "template")
	}
	if isPodTemplate(mapAt(object, "template")) {
		add("template", "template")
	}
	if isPodTemplate(mapAt(object, "spec", "jobTemplate", "spec", "template")) {
		add("spec.jobTemplate", "spec", "jobTemplate")
		add("spec.jobTemplate.spec.template", "spec", "jobTemplate", "spec", "template")
	}
	return found
}

func isPodTemplate(template map[string]any) bool {
	containers, _ := mapAt(template, "spec")["containers"].([]any)
	return len(containers) > 0
}

func mapAt(object map[string]any, path ...string) map[string]any {
	for _, field := range path {
		object, _ = object[field].(map[string]any)
	}
	return object
}

// setAt writes annotations below path; the maps on the way are copied, because others may hold them, too.
func setAt(object map[string]any, annotations map[string]string, path ...string) {
	for _, field := range path[:len(path)-1] {
		inner, _ := object[field].(map[string]any)
		inner = maps.Clone(inner)
		if inner == nil {
			inner = map[string]any{}
		}
		object[field] = inner
		object = inner
	}
	last := path[len(path)-1]
	if annotations == nil {
		delete(object, last)
		return
	}
	values := make(map[string]any, len(annotations))
	for key, value := range annotations {
		values[key] = value
	}
	object[last] = values
}

func textsOf(values map[string]any) map[string]string {
	if values == nil {
		return nil
	}
	texts := make(map[string]string, len(values))
	for key, value := range values {
		if text, ok := value.(string); ok {
			texts[key] = text
		}
	}
	return texts
}

// contentOf returns the fields of an object besides type, metadata and status.
func contentOf(object client.Object) any {
	if free, ok := object.(*unstructured.Unstructured); ok {
		return withoutMetadata(free.Object)
	}
	whole := reflect.ValueOf(object)
	if whole.Kind() != reflect.Pointer || whole.Elem().Kind() != reflect.Struct {
		return nil
	}
	fields := map[string]any{}
	for _, field := range reflect.VisibleFields(whole.Elem().Type()) {
		if len(field.Index) > 1 || !field.IsExported() || field.Name == "Status" ||
			field.Type == reflect.TypeFor[metav1.TypeMeta]() || field.Type == reflect.TypeFor[metav1.ObjectMeta]() {
			continue
		}
		if value := whole.Elem().FieldByIndex(field.Index); !value.IsZero() { // as in a struct: nothing is wanted of it
			fields[field.Name] = value.Interface()
		}
	}
	return fields
}

func withoutMetadata(object map[string]any) map[string]any {
	content := maps.Clone(object)
	for _, field := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(content, field)
	}
	return content
}
