"""What an extender is sent for each verb, and what becomes of its answer."""

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from podtrail_scheduler.configuration.types import ExtenderManagedResource, ExtenderTLSConfig
from podtrail_scheduler.extenders import ExtenderError, FilterAnswer, Victims
from podtrail_scheduler.objects import Pod

from tests.certificates import Authority, Identity

POD = Pod("a", uid="u-a", requests={"example.com/gpu": 1})
NODES = ("n1", "n2", "n3")
MANIFEST = {"metadata": {"name": "a", "namespace": "default", "uid": "u-a"}}

Ask = Callable[..., Any]


def test_sends_the_nodes_and_keeps_those_that_come_back(ask: Ask) -> None:
    async def scenario(asking: Any) -> Any:
        (extender,) = asking.made()
        return await extender.filter(POD, NODES), asking.server.asked

    answer = {
        "Nodes": {"items": [{"metadata": {"name": "n2"}}]},
        "FailedNodes": {"n1": "too small"},
        "FailedAndUnresolvableNodes": {"n3": "never"},
    }
    filtered, asked = ask({"filter": answer}, scenario)

    assert filtered == FilterAnswer(("n2",), {"n1": "too small"}, {"n3": "never"})
    items = [{"metadata": {"name": name}} for name in NODES]
    assert asked == [("filter", {"Pod": MANIFEST, "Nodes": {"metadata": {}, "items": items}, "NodeNames": None})]


def test_sends_only_names_to_one_that_has_a_cache_of_nodes(ask: Ask) -> None:
    async def scenario(asking: Any) -> Any:
        (extender,) = asking.made(asking.extender(node_cache_capable=True))
        return await extender.filter(POD, NODES), asking.server.asked

    filtered, asked = ask({"filter": {"nodenames": ["n3", "n1"]}}, scenario)

    assert filtered.nodes == ("n3", "n1")
    assert asked == [("filter", {"Pod": MANIFEST, "Nodes": None, "NodeNames": ["n1", "n2", "n3"]})]


def test_brings_scores_to_the_scale_of_plugins_times_the_weight(ask: Ask) -> None:
    async def scenario(asking: Any) -> Any:
        (extender,) = asking.made(asking.extender(weight=3))
        return await extender.prioritize(POD, NODES)

    scores = ask({"prioritize": [{"Host": "n1", "Score": 10}, {"host": "n2", "score": 1}]}, scenario)

    assert scores == {"n1": 300, "n2": 30}


def test_names_pod_and_node_to_bind(ask: Ask) -> None:
    async def scenario(asking: Any) -> Any:
        (extender,) = asking.made()
        await extender.bind(POD, "n2")
        return asking.server.asked

    asked = ask({"bind": {"Error": ""}}, scenario)

    assert asked == [("bind", {"PodName": "a", "PodNamespace": "default", "PodUID": "u-a", "Node": "n2"})]


@pytest.mark.parametrize("cached", [False, True], ids=["whole Pods", "uids"])
def test_takes_the_victims_that_preemption_is_left_with_from_the_node(ask: Ask, cached: bool) -> None:
    one, two = Pod("v1", uid="u-1"), Pod("v2", uid="u-2")

    async def scenario(asking: Any) -> Any:
        (extender,) = asking.made(asking.extender(node_cache_capable=cached))
        victims = {"n1": Victims((one, two), 1), "n2": Victims((two,))}
        return await extender.preempt(POD, victims, {"n1": [one, two]}.get), asking.server.asked

    answer = {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "u-2"}], "NumPDBViolations": 1}}}
    left, ((_, sent),) = ask({"preempt": answer}, scenario)

    assert left == {"n1": Victims((two,), 1)}
    whole = [
        {"metadata": {"name": name, "namespace": "default", "uid": uid}} for name, uid in (("v1", "u-1"), ("v2", "u-2"))
    ]
    assert sent["NodeNameToMetaVictims" if cached else "NodeNameToVictims"]["n1"] == {
        "Pods": [{"UID": "u-1"}, {"UID": "u-2"}] if cached else whole,
        "NumPDBViolations": 1,
    }
    assert sent["NodeNameToVictims" if cached else "NodeNameToMetaVictims"] is None


@pytest.mark.parametrize(
    ("resources", "interested"), [((), True), (("example.com/gpu",), True), (("example.com/nic",), False)]
)
def test_is_interested_in_pods_that_request_what_it_manages(ask: Ask, resources: Any, interested: bool) -> None:
    async def scenario(asking: Any) -> Any:
        managed = tuple(ExtenderManagedResource(name) for name in resources)
        (extender,) = asking.made(asking.extender(managed_resources=managed))
        return extender.interested(POD)

    assert ask({}, scenario) is interested


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (503, "failed filter with extender at URL {url}/filter, code 503"),
        ({"Error": "no licence"}, "no licence"),
        (
            {"NodeNames": ["n9"]},
            'extender "{url}/" claims a filtered node "n9" which is not found in the input node list',
        ),
        ([1], "an object with Error was wanted from the extender, got list"),
        ({"FailedNodes": 3}, "FailedNodes was wanted from the extender, got int"),
    ],
    ids=["status", "error", "unknown node", "no object", "wrong field"],
)
def test_says_what_is_wrong_with_an_answer(ask: Ask, answer: Any, text: str) -> None:
    async def scenario(asking: Any) -> Any:
        (extender,) = asking.made(asking.extender(node_cache_capable=True))
        with pytest.raises(ExtenderError) as failed:
            await extender.filter(POD, NODES)
        return str(failed.value), asking.server.url

    said, url = ask({"filter": answer}, scenario)

    assert said == text.format(url=url)


def test_gives_up_after_its_timeout(ask: Ask) -> None:
    async def scenario(asking: Any) -> Any:
        (extender,) = asking.made(asking.extender(http_timeout=50_000_000))
        with pytest.raises(ExtenderError, match="context deadline exceeded"):
            await extender.filter(POD, NODES)

    ask({"filter": "hang"}, scenario)


def test_says_that_nobody_listens(ask: Ask) -> None:
    async def scenario(asking: Any) -> Any:
        (extender,) = asking.made(asking.extender(url_prefix="http://127.0.0.1:1"))
        with pytest.raises(ExtenderError, match=r'^Post "http://127\.0\.0\.1:1/filter": '):
            await extender.filter(POD, NODES)

    ask({}, scenario)


def test_refuses_victims_that_are_not_on_the_node(ask: Ask) -> None:
    async def scenario(asking: Any) -> Any:
        (extender,) = asking.made()
        with pytest.raises(ExtenderError) as failed:
            await extender.preempt(POD, {"n1": Victims((POD,))}, {"n1": [POD]}.get)
        return str(failed.value).replace(asking.server.url, "URL")

    said = ask({"preempt": {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "x"}]}}}}, scenario)

    assert said == (
        "extender: URL/ claims to preempt pod (UID: &{x}) on node: n1, but the pod is not found on that node"
    )


class Certified(NamedTuple):
    """A server's certificate for `extender.test`, and who signed it."""

    authority: bytes
    identity: Identity

    def tls(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.identity.cert_file, self.identity.key_file)
        return context


@pytest.fixture
def certified(tmp_path: Path) -> Certified:
    authority = Authority(tmp_path)
    return Certified(authority.certificate, authority.issue("server", "extender.test"))


def test_checks_the_certificate_against_its_authority_and_name(ask: Ask, certified: Certified) -> None:
    tls = certified.tls()

    async def scenario(asking: Any) -> Any:
        trusted = ExtenderTLSConfig(ca_data=certified.authority, server_name="extender.test")
        (extender,) = asking.made(asking.extender(enable_https=True, tls_config=trusted))
        answer = await extender.prioritize(POD, NODES)
        nameless = ExtenderTLSConfig(ca_data=certified.authority)
        (other,) = asking.made(asking.extender(enable_https=True, tls_config=nameless))
        with pytest.raises(ExtenderError, match="certificate"):
            await other.prioritize(POD, NODES)
        return answer

    assert ask({"prioritize": [{"Host": "n1", "Score": 1}]}, scenario, tls) == {"n1": 20}


def test_checks_no_certificate_without_an_authority(ask: Ask, certified: Certified) -> None:
    tls = certified.tls()

    async def scenario(asking: Any) -> Any:
        (extender,) = asking.made(asking.extender(enable_https=True))
        return await extender.prioritize(POD, NODES)

    assert ask({"prioritize": []}, scenario, tls) == {}


def test_shows_its_own_certificate(ask: Ask, certified: Certified) -> None:
    tls = certified.tls()
    tls.load_verify_locations(cadata=certified.authority.decode())
    tls.verify_mode = ssl.CERT_REQUIRED

    async def scenario(asking: Any) -> Any:
        shown = ExtenderTLSConfig(cert_data=certified.identity.certificate, key_data=certified.identity.key)
        (extender,) = asking.made(asking.extender(enable_https=True, tls_config=shown))
        answer = await extender.prioritize(POD, NODES)
        (without,) = asking.made(asking.extender(enable_https=True))
        with pytest.raises(ExtenderError):
            await without.prioritize(POD, NODES)
        return answer

    assert ask({"prioritize": []}, scenario, tls) == {}


def test_names_a_certificate_that_cannot_be_read(ask: Ask) -> None:
    async def scenario(asking: Any) -> Any:
        with pytest.raises(ExtenderError, match=r"tlsConfig: .*No such file"):
            asking.made(asking.extender(tls_config=ExtenderTLSConfig(ca_file="/nowhere/ca.crt")))

    ask({}, scenario)
