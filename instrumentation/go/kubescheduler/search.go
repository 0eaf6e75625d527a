package kubescheduler

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

const (
	// measuredNodes is up to how many nodes the time of each plugin on each node is measured. Beyond, it is measured on
	// one of everyNth nodes: reading the clock twice takes longer than many plugins take.
	measuredNodes = 128
	everyNth      = 8
)

// nodeSearch is the search for a node of a sampled attempt: the phases filter, preScore and score.
type nodeSearch struct {
	attempt *attempt
	filter  *filterPhase
	score   *scorePhase
}

// verdict is what the filters said of one node that they rejected.
type verdict struct {
	node   string
	status *fwk.Status
}

// filterPhase collects what the Filter plugins say of nodes. Several goroutines add to it.
type filterPhase struct {
	phase    *phase
	profile  *profile
	skipped  sets.Set[string]
	total    int
	began    time.Time
	ended    time.Time
	calls    atomic.Int64
	measured atomic.Int64
	times    []pluginTimes

	mu       sync.Mutex
	verdicts []verdict
}

// pluginTimes are the calls of one plugin in a phase, in nanoseconds after the phase began.
type pluginTimes struct {
	took, last atomic.Int64
	calls      atomic.Int64
	once       sync.Once
	// span is open while the plugin may start spans of its own; nil for kube-scheduler's plugins.
	span trace.Span
}

func (t *pluginTimes) add(began, ended time.Duration) {
	t.calls.Add(1)
	t.took.Add(int64(ended - began))
	for {
		last := t.last.Load()
		if int64(ended) <= last || t.last.CompareAndSwap(last, int64(ended)) {
			return
		}
	}
}

func (s *nodeSearch) beginFilter(ctx context.Context, p *profile, state fwk.CycleState, at time.Time) {
	defer s.attempt.i.recovered()
	f := &filterPhase{
		phase:   newPhase(ctx, s.attempt, filter, s.attempt.cycle, at),
		profile: p,
		skipped: state.GetSkipFilterPlugins(),
		began:   at,
		times:   make([]pluginTimes, len(p.filters)),
	}
	if nodes, err := p.SnapshotSharedLister().NodeInfos().List(); err == nil {
		f.total = len(nodes)
	}
	s.filter = f
}

// run filters one node.
func (f *filterPhase) run(ctx context.Context, p *profile, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	inner := p.Framework
	if calls := f.calls.Add(1); p.traced != nil && (calls <= measuredNodes || p.nests || calls%everyNth == 0) {
		inner = p.traced
		f.measured.Add(1)
	}
	status := inner.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
	if !status.IsSuccess() {
		f.mu.Lock()
		f.verdicts = append(f.verdicts, verdict{node.Node().Name, status})
		f.mu.Unlock()
	}
	return status
}

// filtered notes that all nodes have been filtered.
func (s *nodeSearch) filtered() {
	if s.filter != nil && s.filter.ended.IsZero() {
		s.filter.ended = time.Now()
	}
}

// end ends the spans of the search, with what is known once the node has been chosen.
func (s *nodeSearch) end(result scheduler.ScheduleResult, err error) {
	if s.filter != nil {
		var failure error
		if s.filter.ended.IsZero() && !isRejection(err) {
			failure = err
		}
		s.filtered()
		s.filter.end(result, failure)
	}
	if s.score != nil {
		s.score.end(result.SuggestedHost)
	}
	if s.score != nil && err == nil {
		s.attempt.cycle.AddEvent(eventPrioritized)
	}
}

// rejection is one reason of one plugin, and the nodes that it rejected for it.
type rejection struct {
	plugin, code, message string
	nodes                 []string
}

func (f *filterPhase) rejections() []*rejection {
	found := map[[3]string]*rejection{}
	var ordered []*rejection
	for _, verdict := range f.verdicts {
		status := verdict.status
		key := [3]string{status.Plugin(), status.Code().String(), status.Message()}
		one := found[key]
		if one == nil {
			one = &rejection{plugin: key[0], code: key[1], message: key[2]}
			found[key] = one
			ordered = append(ordered, one)
		}
		one.nodes = append(one.nodes, verdict.node)
	}
	return ordered
}

func (r *rejection) attributes() []attribute.KeyValue {
	attributes := []attribute.KeyValue{
		resultKey.String(r.code), reasonKey.String(r.message), nodesCountKey.Int(len(r.nodes)),
	}
	slices.Sort(r.nodes)
	if len(r.nodes) > maxNamesOfRejectedNodes {
		return append(attributes, nodesNamesKey.StringSlice(r.nodes[:maxNamesOfRejectedNodes]), nodesNamesCutKey.Bool(true))
	}
	return append(attributes, nodesNamesKey.StringSlice(r.nodes))
}

func (f *filterPhase) end(result scheduler.ScheduleResult, failure error) {
	evaluated, feasible := result.EvaluatedNodes, result.FeasibleNodes
	if feasible == 0 {
		evaluated, feasible = int(f.calls.Load()), int(f.calls.Load())-len(f.verdicts)
	}
	rejected := map[string][]*rejection{}
	for _, one := range f.rejections() {
		rejected[one.plugin] = append(rejected[one.plugin], one)
	}
	left := evaluated
	for index, plugin := range f.profile.filters {
		if !f.skipped.Has(plugin) {
			left -= f.endPlugin(plugin, &f.times[index], left, rejected[plugin])
			delete(rejected, plugin)
		}
	}
	for plugin, reasons := range rejected {
		if plugin != "" { // without the single plugins' spans, those that rejected nodes still have one
			f.endPlugin(plugin, &pluginTimes{}, 0, reasons)
		}
	}
	span := f.phase.span
	span.SetAttributes(nodesTotalKey.Int(f.total), nodesEvaluatedKey.Int(evaluated), nodesFeasibleKey.Int(feasible))
	switch {
	case failure != nil:
		f.phase.endAt(fwk.AsStatus(failure), f.ended)
	case feasible == 0:
		f.phase.endAt(fwk.NewStatus(fwk.Unschedulable), f.ended)
	default:
		span.AddEvent(eventFiltered, trace.WithTimestamp(f.ended))
		f.phase.endAt(nil, f.ended)
	}
}

// endPlugin records what one plugin did in the phase, and returns how many nodes it rejected.
func (f *filterPhase) endPlugin(plugin string, times *pluginTimes, evaluated int, reasons []*rejection) int {
	took, calls := times.took.Load(), f.calls.Load()
	if evaluated <= 0 && took == 0 && len(reasons) == 0 {
		return 0
	}
	ended := f.began.Add(time.Duration(times.last.Load()))
	span := times.span
	if span == nil {
		span = f.phase.a.startPlugin(f.phase.ctx, plugin, filter, f.began)
	}
	rejected := 0
	for _, reason := range reasons {
		rejected += len(reason.nodes)
	}
	evaluated = max(evaluated, rejected)
	if measured := f.measured.Load(); measured > 0 && measured < calls {
		took = took * calls / measured
		span.SetAttributes(estimatedKey.Bool(true))
	}
	span.SetAttributes(nodesEvaluatedKey.Int(evaluated), nodesRejectedKey.Int(rejected), durationKey.Int64(took))
	for _, reason := range reasons {
		span.AddEvent(eventRejected, trace.WithTimestamp(ended), trace.WithAttributes(reason.attributes()...))
		if reason.code == resultError {
			span.SetStatus(codes.Error, reason.message)
		}
	}
	span.End(trace.WithTimestamp(ended))
	return rejected
}

// scorePhase collects what Score plugins gave to nodes.
type scorePhase struct {
	phase   *phase
	profile *profile
	nodes   int
	began   time.Time
	ended   time.Time
	// measuresAll is false where calls are measured by chance.
	measuresAll bool
	times       []pluginTimes
	status      *fwk.Status
	// scores is the scheduler's own list, to which extenders add before the node is chosen.
	scores []fwk.NodePluginScores
}

func (s *nodeSearch) beginScore(phase *phase, p *profile, nodes int) {
	s.score = &scorePhase{
		phase: phase, profile: p, nodes: nodes, began: time.Now(),
		measuresAll: nodes <= measuredNodes || p.nests,
		times:       make([]pluginTimes, len(p.scores)),
	}
}

func (s *nodeSearch) scored(scores []fwk.NodePluginScores, status *fwk.Status) {
	s.score.scores, s.score.status, s.score.ended = scores, status, time.Now()
}

// measures draws whether a call is measured.
func (s *scorePhase) measures() bool {
	return s.measuresAll || rand.Uint32()%everyNth == 0
}

func (s *scorePhase) end(winner string) {
	for index, plugin := range s.profile.scores {
		times := &s.times[index]
		calls := times.calls.Load()
		if calls == 0 {
			continue
		}
		span := times.span
		if span == nil {
			span = s.phase.a.startPlugin(s.phase.ctx, plugin, score, s.began)
		}
		took := times.took.Load()
		if !s.measuresAll {
			took = took * int64(s.nodes) / calls
			span.SetAttributes(estimatedKey.Bool(true))
		}
		span.SetAttributes(nodesEvaluatedKey.Int(s.nodes), durationKey.Int64(took))
		span.End(trace.WithTimestamp(s.began.Add(time.Duration(times.last.Load()))))
	}
	if s.status.IsSuccess() && winner != "" {
		s.phase.span.SetAttributes(explain(s.scores, winner, s.profile.scores)...)
	}
	s.phase.endAt(s.status, s.ended)
}

// explain returns why a node won: the best nodes, the winner first, and what each plugin gave to them.
func explain(scores []fwk.NodePluginScores, winner string, plugins []string) []attribute.KeyValue {
	best := make([]*fwk.NodePluginScores, 1, maxScoredNodes+1) // the winner, then the others from the best on
	for index := range scores {
		one := &scores[index]
		if one.Name == winner {
			best[0] = one
			continue
		}
		place := len(best)
		for place > 1 && best[place-1].TotalScore < one.TotalScore {
			place--
		}
		if place < maxScoredNodes {
			best = slices.Insert(best, place, one)
			best = best[:min(len(best), maxScoredNodes)]
		}
	}
	if best[0] == nil || len(best) < 2 {
		return nil
	}
	highest, ties := best[0].TotalScore, 0
	for index := range scores {
		if scores[index].TotalScore == highest {
			ties++
		}
	}
	names, totals := make([]string, len(best)), make([]int64, len(best))
	shares := map[string][]int64{}
	for index, one := range best {
		names[index], totals[index] = one.Name, one.TotalScore
		for _, share := range one.Scores {
			key := string(scoreExtendersKey)
			if slices.Contains(plugins, share.Name) {
				key = scorePluginPrefix + share.Name[:min(len(share.Name), maxPluginName)]
			}
			if shares[key] == nil {
				shares[key] = make([]int64, len(best))
			}
			shares[key][index] += share.Score
		}
	}
	attributes := []attribute.KeyValue{
		nodesEvaluatedKey.Int(len(scores)),
		scoreNodesKey.StringSlice(names),
		scoreTotalsKey.Int64Slice(totals),
		scoreSelectedKey.Int64(totals[0]),
		scoreMarginKey.Int64(totals[0] - totals[1]),
		scoreTiesKey.Int(ties),
	}
	return append(attributes, shareAttributes(shares)...)
}

// shareAttributes returns the shares of those that gave something, of more than maxScoringPlugins those that differ most.
func shareAttributes(shares map[string][]int64) []attribute.KeyValue {
	var keys []string
	for key, given := range shares {
		if slices.ContainsFunc(given, func(points int64) bool { return points != 0 }) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var attributes []attribute.KeyValue
	if cut := len(keys) - maxScoringPlugins; cut > 0 {
		slices.SortStableFunc(keys, func(a, b string) int {
			return cmp.Compare(slices.Max(shares[b])-slices.Min(shares[b]), slices.Max(shares[a])-slices.Min(shares[a]))
		})
		keys = keys[:maxScoringPlugins]
		attributes = append(attributes, scorePluginsCutKey.Int(cut))
	}
	for _, key := range keys {
		attributes = append(attributes, attribute.Key(key).Int64Slice(shares[key]))
	}
	return attributes
}
