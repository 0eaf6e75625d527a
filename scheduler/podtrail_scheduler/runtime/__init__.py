"""Runs the extension points of a profile: calls its plugins, makes the spans, remembers answers, sums scores.

The spans of an attempt, as KEP-5927 proposes them (in brackets: only when it happens):

    SchedulePod                 k8s.pod.name, k8s.pod.namespace, k8s.namespace.name, k8s.pod.uid,
      |                         scheduler.queue_wait_ms (in the active queue), scheduler.profile, scheduler.attempts,
      |                         scheduler.result, scheduler.selected_node or scheduler.nominated_node;
      |                         kind CONSUMER, a link to the Pod's creation, on failure status Error with the message
      +- schedulingCycle        every cycle and phase: scheduler.phase, scheduler.profile, scheduler.result
      |    +- preFilter         scheduler.plugins.skipped: those that had nothing to do (preScore as well)
      |    +- filter            scheduler.nodes.total, scheduler.nodes.evaluated, scheduler.nodes.feasible
      |    +- [postFilter]
      |    +- [preScore, score] with more than one feasible node; on score: scheduler.nodes.evaluated,
      |    |                     scheduler.score.nodes, .totals, .selected, .margin, .ties, .plugin.<Name>, .extenders
      |    +- reserve, permit, [unreserve]
      +- [bindingCycle]         scheduler.selected_node
           +- [waitOnPermit], preBind, bind (scheduler.selected_node), postBind, [unreserve]

Below each phase stands `plugin: <Name>` for each plugin that had something to do: scheduler.plugin.name,
scheduler.plugin.extension_point, for filter and score scheduler.nodes.evaluated (answers that were remembered count)
and scheduler.duration_ns (the summed time of its calls), for filter scheduler.nodes.rejected. A plugin of others has a
span also when it answered Skip (scheduler.plugin.status). Its events are `plugin rejected` (scheduler.result,
scheduler.reason; for filter one for each reason, with scheduler.nodes.count, at most ten scheduler.nodes.names and
scheduler.nodes.names_cut when there were more) and `preemption` (scheduler.nominated_node, scheduler.victims.count, at
most ten scheduler.victims.names).
"""
