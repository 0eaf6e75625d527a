"""The story of a Pod as a pure function of spans and verdicts; page, terminal and reports only render it."""

from podtrail.otlp import Rejection, Why
from podtrail.story.attempt import AttemptStory
from podtrail.story.link import NOT_RECEIVED, BackLink, Fate, LinkStory, is_back_link, link_type
from podtrail.story.pod import PodState, PodStory, answer
from podtrail.story.sentence import sentence
from podtrail.story.span import SpanStory
from podtrail.story.stories import Stories
from podtrail.story.summary import Ledger, Summary, Waiting, summarize
from podtrail.story.tree import SpanRow, TraceStory, tell_trace
from podtrail.story.view import to_json
from podtrail.story.words import ago, clip, duration, visible

__all__ = [
    "NOT_RECEIVED",
    "AttemptStory",
    "BackLink",
    "Fate",
    "Ledger",
    "LinkStory",
    "PodState",
    "PodStory",
    "Rejection",
    "SpanRow",
    "SpanStory",
    "Stories",
    "Summary",
    "TraceStory",
    "Waiting",
    "Why",
    "ago",
    "answer",
    "clip",
    "duration",
    "is_back_link",
    "link_type",
    "sentence",
    "summarize",
    "tell_trace",
    "to_json",
    "visible",
]
