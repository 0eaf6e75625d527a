package reconcile

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// comparison finds out whether all that is wanted is so already.
//
// The API server fills in defaults, so a field that is not set wants nothing. A reconciler that sets a whole
// specification anew at each call would otherwise change its objects for ever, by the trace context alone.
type comparison struct {
	// ignored are the keys of the annotations with trace context.
	ignored [2]string
}

// has compares what is live with what is wanted; both are of one type.
func (c comparison) has(live, wanted any) bool {
	return c.value(reflect.ValueOf(live), reflect.ValueOf(wanted), true)
}

// value compares two values; unset says whether a zero value wants nothing.
func (c comparison) value(live, wanted reflect.Value, unset bool) bool {
	if !wanted.IsValid() || (unset && wanted.IsZero()) {
		return true
	}
	if !live.IsValid() || live.Type() != wanted.Type() {
		return false
	}
	switch wanted.Kind() {
	case reflect.Pointer, reflect.Interface:
		if wanted.IsNil() || live.IsNil() {
			return wanted.IsNil()
		}
		return c.value(live.Elem(), wanted.Elem(), false)
	case reflect.Struct:
		return c.fields(live, wanted)
	case reflect.Slice, reflect.Array:
		if live.Len() != wanted.Len() {
			return false
		}
		for index := range wanted.Len() {
			if !c.value(live.Index(index), wanted.Index(index), false) {
				return false
			}
		}
		return true
	case reflect.Map:
		return c.entries(live, wanted)
	}
	return live.Equal(wanted)
}

func (c comparison) fields(live, wanted reflect.Value) bool {
	switch wanted.Interface().(type) {
	case resource.Quantity, metav1.Time, metav1.MicroTime:
		return equality.Semantic.DeepEqual(live.Interface(), wanted.Interface())
	}
	for index := range wanted.NumField() {
		if !wanted.Type().Field(index).IsExported() {
			return equality.Semantic.DeepEqual(live.Interface(), wanted.Interface())
		}
		if !c.value(live.Field(index), wanted.Field(index), true) {
			return false
		}
	}
	return true
}

// entries compares maps. The API server adds no entry to a map of texts, such as labels or data; an unstructured object,
// whose fields are entries, gets defaults.
func (c comparison) entries(live, wanted reflect.Value) bool {
	fields := wanted.Type().Elem().Kind() == reflect.Interface
	own := 0
	for each := wanted.MapRange(); each.Next(); {
		if c.isContext(each.Key()) {
			continue
		}
		own++
		there := live.MapIndex(each.Key())
		if fields && each.Value().IsNil() {
			continue
		}
		if !there.IsValid() || !c.value(there, each.Value(), false) {
			return false
		}
	}
	for each := live.MapRange(); each.Next(); {
		if !c.isContext(each.Key()) {
			own--
		}
	}
	return fields || own == 0
}

func (c comparison) isContext(key reflect.Value) bool {
	return key.Kind() == reflect.String && (key.String() == c.ignored[0] || key.String() == c.ignored[1])
}
