"""The story of a Pod as a pure function of spans and verdicts; page, terminal and reports only render it."""

from podtrail.otlp import Rejection, Why
from podtrail.story.answer import WhyAnswer, WhyQuestion, answer_query, trace_id
from podtrail.story.attempt import AttemptStory
from podtrail.story.attempt_comparison import AttemptComparison
from podtrail.story.decisions import DecisionEntry, DecisionRing, votes_of
from podtrail.story.explain_trace import verdict_words
from podtrail.story.folded_links import FoldedLinks, fold_links
from podtrail.story.held_attempts import (
    AttemptsNotHeld,
    attempt_numbered,
    attempts_not_held,
    nearest_held,
    why_not_held,
)
from podtrail.story.library import DecisionStory, Library, selector
from podtrail.story.lifetime import LifeMoment, lifetime
from podtrail.story.lines import Explanation, Line, TextPiece, plain
from podtrail.story.link import NOT_RECEIVED, BackLink, LinkStory, SpanFate, is_back_link, link_type, unresolved
from podtrail.story.overview import OverviewAnswer, OverviewQuestion
from podtrail.story.own_time import TimeShare, time_shares
from podtrail.story.pending_question import WaitingPods, waiting_pods
from podtrail.story.pod import PodStory, answer, begun
from podtrail.story.pod_search import (
    ANY_STATE,
    POD_LANGUAGE,
    SLOW_STATE,
    STATES_ASKED,
    TO_LOOK_AT,
    in_state,
    read_pod_search,
)
from podtrail.story.pod_state import POD_STATES, SLOW, PodState
from podtrail.story.policies import PolicyCost, SamplerView
from podtrail.story.search import NOTHING, RANGE_KEYS, HeardBetween, Language, Search, SearchError, quoted
from podtrail.story.sentence import sentence
from podtrail.story.shape import AttemptsShape, of_plugin, tried_during
from podtrail.story.span import SpanStory
from podtrail.story.span_place import SpanPlace
from podtrail.story.store import TraceStore
from podtrail.story.stories import Stories
from podtrail.story.suggestions import PodSuggestions, SearchSuggestion
from podtrail.story.summary import LedgerLine, RunSummary, summarize
from podtrail.story.time_to_start import where_in_a_line
from podtrail.story.top import ExporterNow, PipelineNow, TopView, hold_top, look_top
from podtrail.story.tree import SpanRow, TraceRows, TraceStory, tell_trace, trace_rows
from podtrail.story.view import to_json
from podtrail.story.waiting import waits_for
from podtrail.story.way import PodWay
from podtrail.story.way_steps import WayStep
from podtrail.story.why_node import why_node
from podtrail.story.words import (
    DECISION_WORDS,
    VOTE_WORDS,
    ago,
    clip,
    clock,
    duration,
    several,
    shell_word,
    stamp,
    visible,
)

__all__ = [
    "ANY_STATE",
    "DECISION_WORDS",
    "NOTHING",
    "NOT_RECEIVED",
    "POD_LANGUAGE",
    "POD_STATES",
    "RANGE_KEYS",
    "SLOW",
    "SLOW_STATE",
    "STATES_ASKED",
    "TO_LOOK_AT",
    "VOTE_WORDS",
    "AttemptComparison",
    "AttemptStory",
    "AttemptsNotHeld",
    "AttemptsShape",
    "BackLink",
    "DecisionEntry",
    "DecisionRing",
    "DecisionStory",
    "Explanation",
    "ExporterNow",
    "FoldedLinks",
    "HeardBetween",
    "Language",
    "LedgerLine",
    "Library",
    "LifeMoment",
    "Line",
    "LinkStory",
    "OverviewAnswer",
    "OverviewQuestion",
    "PipelineNow",
    "PodState",
    "PodStory",
    "PodSuggestions",
    "PodWay",
    "PolicyCost",
    "Rejection",
    "RunSummary",
    "SamplerView",
    "Search",
    "SearchError",
    "SearchSuggestion",
    "SpanFate",
    "SpanPlace",
    "SpanRow",
    "SpanStory",
    "Stories",
    "TextPiece",
    "TimeShare",
    "TopView",
    "TraceRows",
    "TraceStore",
    "TraceStory",
    "WaitingPods",
    "WayStep",
    "Why",
    "WhyAnswer",
    "WhyQuestion",
    "ago",
    "answer",
    "answer_query",
    "attempt_numbered",
    "attempts_not_held",
    "begun",
    "clip",
    "clock",
    "duration",
    "fold_links",
    "hold_top",
    "in_state",
    "is_back_link",
    "lifetime",
    "link_type",
    "look_top",
    "nearest_held",
    "of_plugin",
    "plain",
    "quoted",
    "read_pod_search",
    "selector",
    "sentence",
    "several",
    "shell_word",
    "stamp",
    "summarize",
    "tell_trace",
    "time_shares",
    "to_json",
    "trace_id",
    "trace_rows",
    "tried_during",
    "unresolved",
    "verdict_words",
    "visible",
    "votes_of",
    "waiting_pods",
    "waits_for",
    "where_in_a_line",
    "why_node",
    "why_not_held",
]
