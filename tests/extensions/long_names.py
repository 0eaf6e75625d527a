"""What is hard to lay out: names as long as Kubernetes lets them be, without a place to break, on every page."""

from collections.abc import Sequence
from urllib.parse import quote

from podtrail.component import GatedPod
from podtrail.otlp import (
    Batch,
    Decision,
    Event,
    Group,
    Link,
    PolicyVote,
    Shadow,
    Status,
    Verdict,
    encode_span,
    frame,
    resource_header,
    scope_header,
)
from podtrail.testing.attempts import START, MadeAttempt, No, no_room

SECOND = 1_000_000_000
NAME, NAMESPACE, NODE = "w" * 253, "n" * 63, "ip-10-0-0-1." + "m" * 241
PLUGIN = "CapacityReservationAndTopologyAwareGangSchedulingOfTheVendor" * 2
SENTENCE = "0/5000 nodes are available: " + "x" * 600
POLICY = "keeps-what-nobody-else-would-ever-have-thought-of-keeping-" * 2
LINKED = {"podtrail.link.type": "previous-attempt"}
UIDS = {"unschedulable": "u" * 36, "slow": "s" * 36, "refused": "r" * 36}
OTHER = bytes(range(16))
_DEPTH = 24

UNSCHEDULABLE = [
    no_room(
        uid=UIDS["unschedulable"],
        namespace=NAMESPACE,
        name=NAME,
        number=number,
        start=START + number * SECOND,
        message=SENTENCE,
        nominated=NODE,
        refusals=[
            No(plugin=PLUGIN, reason=SENTENCE, nodes=[NODE, NODE + "2"], status="UnschedulableAndUnresolvable"),
            No(plugin="NodeResourcesFit", reason="Insufficient cpu", nodes=["tight0"]),
        ],
        links=[Link(OTHER, bytes(range(8)), LINKED)],
    )
    for number in range(1, 8)
]
SLOW = MadeAttempt(uid=UIDS["slow"], namespace=NAMESPACE, name="s" * 253, node=NODE, duration=5 * SECOND)
REFUSED = MadeAttempt(
    uid=UIDS["refused"], namespace=NAMESPACE, name="r" * 253, node=NODE, result="Error", bind_error=SENTENCE
)
GATED = GatedPod("g" * 36, NAMESPACE, "g" * 253, (f"example.com/{'q' * 200}",), START)

PAGES = {
    "pods": "/?state=all",
    "pods that none matches": f"/?state=slow&q={'z' * 256}",
    "pods that a name finds": f"/?q={NAME[:200]}&sort=last",
    **{state: f"/pods/{uid}" for state, uid in UIDS.items()},
    "gated": f"/pods/{GATED.uid}",
    "attempts": f"/pods/{UIDS['unschedulable']}/attempts",
    "an attempt": f"/pods/{UIDS['unschedulable']}/attempts/2",
    "an attempt not held": f"/pods/{UIDS['unschedulable']}/attempts/99",
    "attempts compared": f"/pods/{UIDS['unschedulable']}/compare?a=1&b=2",
    "trace": f"/traces/{UNSCHEDULABLE[0].trace_id.hex()}",
    "other trace": f"/traces/{OTHER.hex()}?span={(5).to_bytes(8, 'big').hex()}",
    "traces": "/traces",
    "nodes": "/nodes",
    "node": f"/nodes/{quote(NODE, safe='')}",
    "plugins": "/plugins",
    "policies": "/policies",
    "decisions that none is": f"/policies?q={'z' * 256}&policy={quote(POLICY)}",
    "decision": f"/decisions/{UNSCHEDULABLE[0].trace_id.hex()}",
    "other decision": f"/decisions/{OTHER.hex()}",
    "no pod": f"/pods/{NAME}",
    "no trace": f"/traces/{'f' * 32}",
    "no decision": f"/decisions/{'f' * 32}",
    "no page": "/nowhere",
}


class Says:
    """Explains every vote with a long sentence."""

    shadow = Shadow({f"tried-{POLICY}": "sampled"})

    def explain(self, verdict: Verdict) -> Sequence[PolicyVote]:
        """Return votes of all policies."""
        votes = [PolicyVote(policy, "string_attribute", vote, SENTENCE) for policy, vote in verdict.votes.items()]
        return [*votes, PolicyVote("tried", "ottl_condition", "sampled", SENTENCE, shadow=True)]


def batches() -> list[Batch]:
    """Return all of it as it leaves a sampler."""
    made = [*(attempt.batch("sampled", POLICY, SENTENCE) for attempt in UNSCHEDULABLE[:5])]
    made += [attempt.batch("dropped", POLICY, SENTENCE) for attempt in UNSCHEDULABLE[5:]]
    made += [SLOW.batch("sampled", POLICY, SENTENCE), REFUSED.batch("sampled", POLICY, SENTENCE), _other()]
    votes: dict[str, Decision] = {f"{number}-{POLICY}": "not_sampled" for number in range(8)}
    for batch in made:
        batch.verdicts[0].votes = {POLICY: "sampled", **votes}
        batch.verdicts[0].explainer = Says()
    return made


def _other() -> Batch:
    """Return a trace of another component, deep, with attributes, events and a status that no line holds."""
    spans = [
        encode_span(
            trace_id=OTHER,
            span_id=at.to_bytes(8, "big"),
            parent_span_id=b"" if at == 1 else (at - 1).to_bytes(8, "big"),
            name=f"POST /api/v1/namespaces/{NAMESPACE}/pods/{NAME}/binding",
            start=START,
            end=START + SECOND,
            status=Status(2, SENTENCE),
            attributes={"url.full": f"https://{NODE}/{'p' * 800}", "k" * 120: '{"a":"' + "v" * 800 + '"}'},
            events=[Event(START, "e" * 120, {"exception.stacktrace": SENTENCE})],
        )
        for at in range(1, _DEPTH)
    ]
    resource = resource_header({"service.name": "kube-apiserver-of-" + "c" * 120})
    group = Group(resource, scope_header("s" * 150), OTHER, frame(spans), len(spans))
    verdict = Verdict(OTHER, "sampled", POLICY, SENTENCE, START + SECOND, START, len(spans), groups=[group])
    return Batch([group], START + SECOND, [verdict])
