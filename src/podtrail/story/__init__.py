"""The story of a Pod as a pure function of spans and verdicts; page, terminal and reports only render it."""

from podtrail.otlp import Rejection, Why
from podtrail.story.answer import WhyAnswer, WhyQuestion, answer_query, trace_id
from podtrail.story.attempt import AttemptStory
from podtrail.story.decisions import DecisionEntry, DecisionRing, votes_of
from podtrail.story.explain_trace import verdict_words
from podtrail.story.folded_links import FoldedLinks, fold_links
from podtrail.story.library import DecisionStory, Library, selector
from podtrail.story.lifetime import LifeMoment, lifetime, where_in_a_line
from podtrail.story.lines import Explanation, Line, TextPiece, plain
from podtrail.story.link import NOT_RECEIVED, BackLink, LinkStory, SpanFate, is_back_link, link_type
from podtrail.story.pod import PodStory, answer
from podtrail.story.pod_state import POD_STATES, SLOW, PodState
from podtrail.story.policies import PolicyCost, SamplerView
from podtrail.story.sentence import sentence
from podtrail.story.span import SpanStory
from podtrail.story.store import TraceStore
from podtrail.story.stories import Stories
from podtrail.story.summary import LedgerLine, RunSummary, WaitingPods, summarize
from podtrail.story.tree import SpanRow, TraceStory, tell_trace
from podtrail.story.view import to_json
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
    "DECISION_WORDS",
    "NOT_RECEIVED",
    "POD_STATES",
    "SLOW",
    "VOTE_WORDS",
    "AttemptStory",
    "BackLink",
    "DecisionEntry",
    "DecisionRing",
    "DecisionStory",
    "Explanation",
    "FoldedLinks",
    "LedgerLine",
    "Library",
    "LifeMoment",
    "Line",
    "LinkStory",
    "PodState",
    "PodStory",
    "PolicyCost",
    "Rejection",
    "RunSummary",
    "SamplerView",
    "SpanFate",
    "SpanRow",
    "SpanStory",
    "Stories",
    "TextPiece",
    "TraceStore",
    "TraceStory",
    "WaitingPods",
    "Why",
    "WhyAnswer",
    "WhyQuestion",
    "ago",
    "answer",
    "answer_query",
    "clip",
    "clock",
    "duration",
    "fold_links",
    "is_back_link",
    "lifetime",
    "link_type",
    "plain",
    "selector",
    "sentence",
    "several",
    "shell_word",
    "stamp",
    "summarize",
    "tell_trace",
    "to_json",
    "trace_id",
    "verdict_words",
    "visible",
    "votes_of",
    "where_in_a_line",
    "why_node",
]
