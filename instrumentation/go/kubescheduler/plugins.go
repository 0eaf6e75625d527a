package kubescheduler

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// newProfile instruments the framework of one profile.
//
// The lists of plugins are unexported fields of the framework. The copy gets lists of plugins with spans, and only
// sampled attempts run the copy: all others pay nothing for the spans of plugins.
func newProfile(i *instrumentation, inner framework.Framework) *profile {
	p := &profile{Framework: inner, i: i}
	traced, err := p.copyWithSpans()
	if err != nil {
		i.warned.Do(func() {
			klog.ErrorS(err, "Spans of single plugins are missing or incomplete, those of extension points are there", "profile", inner.ProfileName())
		})
	}
	p.traced = traced
	if traced == nil {
		p.filters, p.scores = nil, nil
		for _, plugin := range inner.ListPlugins().Score.Enabled {
			p.scores = append(p.scores, plugin.Name)
		}
	}
	return p
}

func (p *profile) copyWithSpans() (traced framework.Framework, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			traced, err = nil, fmt.Errorf("copy of %T: %v", p.Framework, problem)
		}
	}()
	original := reflect.ValueOf(p.Framework)
	if original.Kind() != reflect.Pointer || original.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("%T is not the framework of kube-scheduler", p.Framework)
	}
	fresh := reflect.New(original.Elem().Type())
	fresh.Elem().Set(original.Elem())
	problems := []error{
		wrap(fresh, "preFilterPlugins", func(_ int, inner fwk.PreFilterPlugin) fwk.PreFilterPlugin {
			return &preFilterPlugin{inner, p.plugin(inner, preFilter)}
		}),
		wrap(fresh, "filterPlugins", func(index int, inner fwk.FilterPlugin) fwk.FilterPlugin {
			p.filters = append(p.filters, inner.Name())
			return &filterPlugin{inner, p.nodePlugin(inner, filter, index)}
		}),
		wrap(fresh, "postFilterPlugins", func(_ int, inner fwk.PostFilterPlugin) fwk.PostFilterPlugin {
			return &postFilterPlugin{inner, p.plugin(inner, postFilter)}
		}),
		wrap(fresh, "preScorePlugins", func(_ int, inner fwk.PreScorePlugin) fwk.PreScorePlugin {
			return &preScorePlugin{inner, p.plugin(inner, preScore)}
		}),
		wrap(fresh, "scorePlugins", func(index int, inner fwk.ScorePlugin) fwk.ScorePlugin {
			p.scores = append(p.scores, inner.Name())
			return &scorePlugin{inner, p.nodePlugin(inner, score, index)}
		}),
		wrap(fresh, "reservePlugins", func(_ int, inner fwk.ReservePlugin) fwk.ReservePlugin {
			return &reservePlugin{inner, p.plugin(inner, reserve), p.plugin(inner, unreserve)}
		}),
		wrap(fresh, "permitPlugins", func(_ int, inner fwk.PermitPlugin) fwk.PermitPlugin {
			return &permitPlugin{inner, p.plugin(inner, permit)}
		}),
		wrap(fresh, "preBindPlugins", func(_ int, inner fwk.PreBindPlugin) fwk.PreBindPlugin {
			return &preBindPlugin{inner, p.plugin(inner, preBind)}
		}),
		wrap(fresh, "bindPlugins", func(_ int, inner fwk.BindPlugin) fwk.BindPlugin {
			return &bindPlugin{p.binder(inner), p.plugin(inner, bind)}
		}),
		wrap(fresh, "postBindPlugins", func(_ int, inner fwk.PostBindPlugin) fwk.PostBindPlugin {
			return &postBindPlugin{inner, p.plugin(inner, postBind)}
		}),
	}
	traced, ok := fresh.Interface().(framework.Framework)
	if !ok {
		return nil, fmt.Errorf("%T is no framework", fresh.Interface())
	}
	return traced, errors.Join(problems...)
}

// wrap replaces the plugins in a field of a copied framework.
func wrap[P fwk.Plugin](copied reflect.Value, name string, wrapped func(int, P) P) error {
	field := copied.Elem().FieldByName(name)
	if !field.IsValid() || field.Type() != reflect.TypeFor[[]P]() {
		return fmt.Errorf("%s has no field %s of type %s", copied.Elem().Type(), name, reflect.TypeFor[[]P]())
	}
	plugins := (*[]P)(field.Addr().UnsafePointer())
	replaced := make([]P, len(*plugins))
	for index, inner := range *plugins {
		replaced[index] = wrapped(index, inner)
	}
	*plugins = replaced
	return nil
}

// binder makes kube-scheduler's own binder carry the attempt's context; others bind as they do.
func (p *profile) binder(inner fwk.BindPlugin) fwk.BindPlugin {
	if !p.i.propagates || inner.Name() != defaultbinder.Name {
		return inner
	}
	handle, err := newAnnotatingHandle(p.i, p.Framework)
	if err != nil {
		klog.ErrorS(err, "Bound Pods carry no trace context", "profile", p.ProfileName())
		return inner
	}
	binder, err := defaultbinder.New(context.Background(), nil, handle)
	if err != nil {
		klog.ErrorS(err, "Bound Pods carry no trace context", "profile", p.ProfileName())
		return inner
	}
	return binder.(fwk.BindPlugin)
}

// plugin makes the spans of one plugin at one extension point.
type plugin struct {
	p     *profile
	name  string
	point string
	// ours is true for kube-scheduler's own plugins.
	ours bool
	// quiet plugins start no spans and leave none where they had nothing to do.
	quiet bool
}

func (p *profile) plugin(inner fwk.Plugin, point string) plugin {
	ours := p.i.inTree[inner.Name()]
	quiet := point == preFilter || point == preScore || point == reserve || point == unreserve
	return plugin{p: p, name: inner.Name(), point: point, ours: ours, quiet: ours && quiet}
}

// startPlugin starts the span of a plugin; ctx is that of its phase.
func (a *attempt) startPlugin(ctx context.Context, name, point string, at time.Time) trace.Span {
	_, span := a.i.tracer.Start(ctx, spanPlugin+name,
		trace.WithTimestamp(at),
		trace.WithAttributes(pluginKey.String(name), extensionPointKey.String(point)),
	)
	return span
}

// call is one call of a plugin.
type call struct {
	plugin *plugin
	phase  *phase
	began  time.Time
	span   trace.Span
}

// begin notes that the plugin is called; nil if its attempt is not sampled.
func (l *plugin) begin(ctx context.Context) (_ context.Context, begun *call) {
	defer l.p.i.recovered()
	phase := phaseOf(ctx)
	if phase == nil || l.p.i.off.Load() {
		return ctx, nil
	}
	begun = &call{plugin: l, phase: phase, began: time.Now()}
	if l.quiet {
		return ctx, begun
	}
	begun.span = phase.a.startPlugin(phase.ctx, l.name, l.point, begun.began)
	return trace.ContextWithSpan(ctx, begun.span), begun
}

// end records the plugin's answer.
func (c *call) end(status *fwk.Status) {
	if c == nil {
		return
	}
	defer c.plugin.p.i.recovered()
	now := trace.WithTimestamp(time.Now())
	if c.span == nil {
		if status.IsSkip() {
			c.phase.skip(c.plugin.name)
			return
		}
		c.span = c.phase.a.startPlugin(c.phase.ctx, c.plugin.name, c.plugin.point, c.began)
	}
	switch {
	case status.IsSkip():
		c.span.SetAttributes(pluginStatusKey.String(status.Code().String()))
	case !status.IsSuccess() && !status.IsWait():
		c.span.AddEvent(eventRejected, now, trace.WithAttributes(
			resultKey.String(status.Code().String()), reasonKey.String(status.Message())))
		if status.Code() == fwk.Error {
			c.span.SetStatus(codes.Error, status.Message())
		}
	}
	c.span.End(now)
}

type preFilterPlugin struct {
	fwk.PreFilterPlugin
	plugin
}

func (w *preFilterPlugin) Name() string { return w.name }

func (w *preFilterPlugin) PreFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	ctx, call := w.begin(ctx)
	result, status := w.PreFilterPlugin.PreFilter(ctx, state, pod, nodes)
	call.end(status)
	return result, status
}

type postFilterPlugin struct {
	fwk.PostFilterPlugin
	plugin
}

func (w *postFilterPlugin) Name() string { return w.name }

func (w *postFilterPlugin) PostFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	ctx, call := w.begin(ctx)
	result, status := w.PostFilterPlugin.PostFilter(ctx, state, pod, nodes)
	call.end(status)
	return result, status
}

type preScorePlugin struct {
	fwk.PreScorePlugin
	plugin
}

func (w *preScorePlugin) Name() string { return w.name }

func (w *preScorePlugin) PreScore(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	ctx, call := w.begin(ctx)
	status := w.PreScorePlugin.PreScore(ctx, state, pod, nodes)
	call.end(status)
	return status
}

type reservePlugin struct {
	fwk.ReservePlugin
	plugin
	giveBack plugin
}

func (w *reservePlugin) Name() string { return w.name }

func (w *reservePlugin) Reserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	if w.hadNothingToFilter(state) {
		return w.ReservePlugin.Reserve(ctx, state, pod, node)
	}
	ctx, call := w.begin(ctx)
	status := w.ReservePlugin.Reserve(ctx, state, pod, node)
	call.end(status)
	return status
}

func (w *reservePlugin) Unreserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) {
	if w.hadNothingToFilter(state) {
		w.ReservePlugin.Unreserve(ctx, state, pod, node)
		return
	}
	ctx, call := w.giveBack.begin(ctx)
	w.ReservePlugin.Unreserve(ctx, state, pod, node)
	call.end(nil)
}

// hadNothingToFilter is true for a plugin of kube-scheduler that has nothing to reserve either.
func (w *reservePlugin) hadNothingToFilter(state fwk.CycleState) bool {
	return w.ours && state.GetSkipFilterPlugins().Has(w.name)
}

type permitPlugin struct {
	fwk.PermitPlugin
	plugin
}

func (w *permitPlugin) Name() string { return w.name }

func (w *permitPlugin) Permit(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) (*fwk.Status, time.Duration) {
	ctx, call := w.begin(ctx)
	status, wait := w.PermitPlugin.Permit(ctx, state, pod, node)
	call.end(status)
	return status, wait
}

type preBindPlugin struct {
	fwk.PreBindPlugin
	plugin
}

func (w *preBindPlugin) Name() string { return w.name }

func (w *preBindPlugin) PreBind(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	ctx, call := w.begin(ctx)
	status := w.PreBindPlugin.PreBind(ctx, state, pod, node)
	call.end(status)
	return status
}

type bindPlugin struct {
	fwk.BindPlugin
	plugin
}

func (w *bindPlugin) Name() string { return w.name }

func (w *bindPlugin) Bind(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	ctx, call := w.begin(ctx)
	status := w.BindPlugin.Bind(ctx, state, pod, node)
	call.end(status)
	return status
}

type postBindPlugin struct {
	fwk.PostBindPlugin
	plugin
}

func (w *postBindPlugin) Name() string { return w.name }

func (w *postBindPlugin) PostBind(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) {
	ctx, call := w.begin(ctx)
	w.PostBindPlugin.PostBind(ctx, state, pod, node)
	call.end(nil)
}

// nodePlugin measures a plugin that is called for each node: its calls share one span.
type nodePlugin struct {
	p     *profile
	name  string
	point string
	index int
	ours  bool
}

func (p *profile) nodePlugin(inner fwk.Plugin, point string, index int) nodePlugin {
	ours := p.i.inTree[inner.Name()]
	p.nests = p.nests || !ours
	return nodePlugin{p: p, name: inner.Name(), point: point, index: index, ours: ours}
}

// nested returns ctx with the plugin's span, which others than kube-scheduler's plugins may start spans under.
func (n *nodePlugin) nested(ctx context.Context, times *pluginTimes, phase *phase) context.Context {
	if n.ours {
		return ctx
	}
	defer n.p.i.recovered()
	times.once.Do(func() { times.span = phase.a.startPlugin(phase.ctx, n.name, n.point, time.Now()) })
	return trace.ContextWithSpan(ctx, times.span)
}

type filterPlugin struct {
	fwk.FilterPlugin
	nodePlugin
}

func (w *filterPlugin) Name() string { return w.name }

func (w *filterPlugin) Filter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	a := w.p.i.searching.Load()
	if a == nil || a.search.filter == nil {
		return w.FilterPlugin.Filter(ctx, state, pod, node)
	}
	f := a.search.filter
	times := &f.times[w.index]
	ctx = w.nested(ctx, times, f.phase)
	began := time.Since(f.began)
	status := w.FilterPlugin.Filter(ctx, state, pod, node)
	times.add(began, time.Since(f.began))
	return status
}

type scorePlugin struct {
	fwk.ScorePlugin
	nodePlugin
}

func (w *scorePlugin) Name() string { return w.name }

func (w *scorePlugin) Score(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	a := w.p.i.searching.Load()
	if a == nil || a.search.score == nil || !a.search.score.measures() {
		return w.ScorePlugin.Score(ctx, state, pod, node)
	}
	s := a.search.score
	times := &s.times[w.index]
	ctx = w.nested(ctx, times, s.phase)
	began := time.Since(s.began)
	points, status := w.ScorePlugin.Score(ctx, state, pod, node)
	times.add(began, time.Since(s.began))
	return points, status
}
