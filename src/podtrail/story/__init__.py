"""The story of a Pod as a pure function of spans and verdicts; page, terminal and reports only render it."""

from podtrail.otlp import Rejection, Why
from podtrail.story.answer import Answer, Question, answer_query, trace_id
from podtrail.story.attempt import AttemptStory
from podtrail.story.decisions import DecisionRing, Entry, votes_of
from podtrail.story.explain_trace import verdict_words
from podtrail.story.library import DecisionStory, Library, selector
from podtrail.story.lines import Explanation, Line, Piece, plain
from podtrail.story.link import NOT_RECEIVED, BackLink, Fate, LinkStory, is_back_link, link_type
from podtrail.story.pod import PodState, PodStory, answer
from podtrail.story.policies import Cost, SamplerView
from podtrail.story.sentence import sentence
from podtrail.story.span import SpanStory
from podtrail.story.store import TraceStore
from podtrail.story.stories import Stories
from podtrail.story.summary import LedgerLine, Summary, Waiting, summarize
from podtrail.story.tree import SpanRow, TraceStory, tell_trace
from podtrail.story.view import to_json
from podtrail.story.words import ago, clip, clock, duration, several, shell_word, stamp, visible

__all__ = [
    "NOT_RECEIVED",
    "Answer",
    "AttemptStory",
    "BackLink",
    "Cost",
    "DecisionRing",
    "DecisionStory",
    "Entry",
    "Explanation",
    "Fate",
    "LedgerLine",
    "Library",
    "Line",
    "LinkStory",
    "Piece",
    "PodState",
    "PodStory",
    "Question",
    "Rejection",
    "SamplerView",
    "SpanRow",
    "SpanStory",
    "Stories",
    "Summary",
    "TraceStore",
    "TraceStory",
    "Waiting",
    "Why",
    "ago",
    "answer",
    "answer_query",
    "clip",
    "clock",
    "duration",
    "is_back_link",
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
]
