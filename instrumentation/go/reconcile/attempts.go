package reconcile

import (
	"container/list"
	"sync"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
)

// attempt is a call that is to be repeated.
type attempt struct {
	// span is invalid if the call was not sampled.
	span trace.SpanContext
	// uid is that of the handled object; empty if it was not read.
	uid types.UID
	// number says how many calls in a row asked for a repetition, this one included.
	number int
}

// attempts remembers the latest calls that are to be repeated, by their request; it forgets the oldest.
type attempts struct {
	mu     sync.Mutex
	byKey  map[any]*list.Element
	oldest list.List
}

type remembered struct {
	key any
	attempt
}

// take returns the call before and forgets it. A call about another object of the same name does not count.
func (a *attempts) take(key any, uid types.UID) attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	element := a.byKey[key]
	if element == nil {
		return attempt{}
	}
	delete(a.byKey, key)
	found := a.oldest.Remove(element).(remembered).attempt
	if uid != "" && found.uid != "" && uid != found.uid {
		return attempt{}
	}
	return found
}

func (a *attempts) remember(key any, made attempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byKey == nil {
		a.byKey = map[any]*list.Element{}
	}
	if element := a.byKey[key]; element != nil {
		a.oldest.Remove(element)
	}
	a.byKey[key] = a.oldest.PushBack(remembered{key, made})
	if len(a.byKey) > maxAttempts {
		delete(a.byKey, a.oldest.Remove(a.oldest.Front()).(remembered).key)
	}
}
