"""Reports: a line to grep, the place, what would be right."""

from typing import Annotated, Literal, Self

import pytest
from pydantic import Field, model_validator

from podtrail.config import ConfigError, Document, printable
from podtrail.config.problem import Position, Problem, Source
from podtrail.config.types import DeliverySettings, Duration, Endpoint, Headers, Model, PositiveDuration, parse_duration
from podtrail.config.validation import Validator


class Latency(Model):
    threshold_ms: int = Field(description="Milliseconds.")


class LatencyPolicy(Model):
    type: Literal["latency"]
    name: str
    latency: Latency


class AlwaysPolicy(Model):
    type: Literal["always_sample"]
    name: str


class Sampler(Model):
    decision_wait: PositiveDuration = 30_000_000_000
    num_traces: int = Field(50_000, ge=0)
    mode: Literal["one", "two"] = "one"
    salt: str = ""
    enabled: bool = True
    limit: int | Literal["none"] = "none"
    endpoint: Endpoint = "localhost:0"
    headers: Headers = Field(default_factory=dict)
    delivery: DeliverySettings = Field(default_factory=DeliverySettings)
    policies: tuple[Annotated[LatencyPolicy | AlwaysPolicy, Field(discriminator="type")], ...] = ()
    grace: Duration | None = None
    codes: tuple[str, ...] = ()
    version: Literal["1.2", "1.3"] = "1.2"

    @model_validator(mode="after")
    def _check_codes(self) -> Self:
        for code in self.codes:
            if code not in ("OK", "ERROR"):
                raise ValueError(f"unknown code {code!r}; there are OK and ERROR")
        if self.grace is not None and self.grace > self.decision_wait:
            raise ValueError("grace must not be longer than decision_wait")
        return self

    def warnings(self) -> list[tuple[tuple[str | int, ...], str]]:
        return [(("mode",), "two is slow")] if self.mode == "two" else []


def reports(text: str, **environ: str) -> list[str]:
    """Return the reports on a sampler configuration."""
    check = Validator(Document.from_text(text, "c.yaml", environ).root)
    assert check.read(Sampler, ("s",)) is None
    return [str(problem) for problem in ConfigError(check.problems).problems]


def headlines(text: str, **environ: str) -> list[str]:
    """Return the first lines of the reports on a sampler configuration."""
    return [report.splitlines()[0] for report in reports(text, **environ)]


def test_a_report_shows_the_place_and_what_would_be_right() -> None:
    (report,) = reports("s:\n  decison_wait: 5s\n")

    assert report == (
        "c.yaml:2:3: s::decison_wait: unknown key 'decison_wait'\n"
        "    2 |   decison_wait: 5s\n"
        "      |   ^^^^^^^^^^^^\n"
        "  did you mean decision_wait? keys here: decision_wait, num_traces, mode, salt, enabled, limit, endpoint, "
        "headers, delivery, policies, grace, codes, version"
    )


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("num_consumers", "keys here: "),  # two levels below
        ("sending_queue", "it stands under delivery"),
        ("retry_on_failure", "it stands under delivery"),
    ],
)
def test_a_key_that_is_known_one_level_below_is_said_to_stand_there(key: str, hint: str) -> None:
    (report,) = reports(f"s: {{{key}: 5}}")
    assert report.splitlines()[-1].startswith(f"  {hint}")


def test_a_key_that_is_known_in_two_places_below_is_not_said_to_stand_in_one() -> None:
    class One(Model):
        speed: int = 0

    class Two(Model):
        one: One = One()
        other: One = One()

    check = Validator(Document.from_text("s: {speed: 1}", "c.yaml").root)
    assert check.read(Two, ("s",)) is None
    assert [problem.hint for problem in check.problems] == ["keys here: one, other"]


@pytest.mark.parametrize(
    ("text", "headline"),
    [
        ("s: {num_traces: '10'}", "c.yaml:1:17: s::num_traces: must be a whole number, not the text '10'"),
        ("s: {num_traces: 1.5}", "c.yaml:1:17: s::num_traces: must be a whole number, not the number 1.5"),
        ("s: {num_traces: -1}", "c.yaml:1:17: s::num_traces: must be at least 0, not the number -1"),
        ("s: {num_traces: [1]}", "c.yaml:1:5: s::num_traces: must be a whole number, not a list"),
        ("s: {enabled: yes}", "c.yaml:1:14: s::enabled: must be true or false, not the text 'yes'"),
        ("s: {salt: 0x10}", "c.yaml:1:11: s::salt: must be text, not the number 16"),
        ("s: {mode: tow}", "c.yaml:1:11: s::mode: must be one of one, two, not 'tow'"),
        ("s: {decision_wait: 0s}", "c.yaml:1:20: s::decision_wait: must be more than 0s, not the text '0s'"),
        ("s: {decision_wait: 10}", ""),
        ("s: {policies: {}}", "c.yaml:1:5: s::policies: must be a list, not a map"),
        ("s: {policies: [x]}", "c.yaml:1:16: s::policies::0: must be a map of settings"),
        ("s: {policies: [{name: a}]}", "c.yaml:1:16: s::policies::0::type: is required"),
        ("s: {policies: [{type: latencies}]}", "c.yaml:1:23: s::policies::0::type: unknown type 'latencies'"),
        ("s: {policies: [{type: always_sample}]}", "c.yaml:1:16: s::policies::0::name: is required"),
        (
            "s: {delivery: {sending_queue: {wait_for_result: true}}}",
            "c.yaml:1:49: s::delivery::sending_queue::wait_for_result: can't be true",
        ),
        ("s: {endpoint: localhost}", "c.yaml:1:15: s::endpoint: 'localhost' lacks a port"),
        ("s: 5", "c.yaml:1:4: s: must be a map of settings"),
        ("s: [a]", "c.yaml:1:1: s: must be a map of settings"),
    ],
)
def test_every_mistake_is_named_at_its_place(text: str, headline: str) -> None:
    if not headline:
        assert Validator(Document.from_text(text).root).read(Sampler, ("s",)) is not None
        return
    (found,) = headlines(text)

    assert found.startswith(headline)


def test_a_complaint_about_the_whole_stands_at_the_value_that_it_quotes() -> None:
    (report,) = reports("s: {codes: [OK, ERR]}")

    assert report == (
        "c.yaml:1:17: s::codes::1: unknown code 'ERR'\n"
        "    1 | s: {codes: [OK, ERR]}\n"
        "      |                 ^^^\n"
        "  there are OK and ERROR"
    )


def test_a_complaint_about_the_whole_stands_at_the_key_that_it_names() -> None:
    assert headlines("s: {grace: 1m, decision_wait: 1s}") == [
        "c.yaml:1:5: s::grace: must not be longer than decision_wait"
    ]


def test_the_alternatives_of_a_value_are_one_problem() -> None:
    assert headlines("s: {limit: all}") == [
        "c.yaml:1:12: s::limit: must be a whole number, not the text 'all' or must be none, not 'all'"
    ]


def test_a_policy_whose_settings_are_called_like_its_type_is_told_apart() -> None:
    text = "s: {policies: [{type: latency, latency: {threshold: 5}}]}"

    assert headlines(text) == [
        "c.yaml:1:16: s::policies::0::name: is required",
        "c.yaml:1:32: s::policies::0::latency::threshold_ms: is required",
        "c.yaml:1:42: s::policies::0::latency::threshold: unknown key 'threshold'",
    ]


def test_all_mistakes_are_reported_at_once_in_order_of_place() -> None:
    text = (
        "s:\n  salt: 1\n  foo: 1\n  num_traces: x\n"
        "  policies:\n    - {type: nope}\n    - {type: always_sample, name: 1}\n"
    )

    assert [line.split(": ")[1] for line in headlines(text)] == [
        "s::salt",
        "s::foo",
        "s::num_traces",
        "s::policies::0::type",
        "s::policies::1::name",
    ]


def test_what_comes_from_the_environment_is_named_but_not_shown() -> None:
    (report,) = reports("s: {num_traces: '${env:PASSWORD}'}", PASSWORD="hunter2")

    assert "must be a whole number, not what ${env:PASSWORD} gives" in report
    assert "hunter2" not in report


def test_a_secret_is_not_shown_in_its_report() -> None:
    (report,) = reports("s: {headers: {authorization: 123456}}")

    assert report == "c.yaml:1:30: s::headers::authorization: must be text\n  quote it"


def test_a_number_from_the_environment_is_text_where_text_is_wanted() -> None:
    text = "s: {salt: '${env:S}', headers: {a: '${env:S}'}, version: '${env:V}'}"
    check = Validator(Document.from_text(text, environ={"S": "0x10", "V": "1.3"}).root)
    sampler = check.read(Sampler, ("s",))

    assert sampler is not None
    assert (sampler.salt, sampler.headers["a"].get_secret_value(), sampler.version) == ("0x10", "0x10", "1.3")


def test_a_choice_from_the_environment_is_named_but_not_shown() -> None:
    assert headlines("s: {mode: '${env:MODE}'}", MODE="hunter2") == [
        "c.yaml:1:11: s::mode: must be one of one, two, not what ${env:MODE} gives"
    ]


def test_warnings_stand_at_their_key() -> None:
    check = Validator(Document.from_text("s: {mode: two, grace: 5}\n", "c.yaml").root)
    check.read(Sampler, ("s",))

    assert [warning.headline for warning in check.warnings] == [
        "c.yaml:1:5: s::mode: two is slow",
        "c.yaml:1:16: s::grace: 5 without a unit is 5 nanoseconds",
    ]


def test_a_report_can_not_move_the_cursor_or_turn_text_around() -> None:
    source = Source("c\x1b[2J.yaml", ("key: \u202eevil\x07",))
    problem = Problem(Position(source, 1, 6, 5), ("k\ney",), "is \x9b31m wrong", "write\ttabs")

    assert str(problem) == (
        "c\\x1b[2J.yaml:1:6: k\\ney: is \\x9b31m wrong\n"
        "    1 | key: \\u202eevil\\x07\n"
        "      |      ^^^^^\n"
        "  write\\ttabs"
    )


def test_printable_text_stays_as_it_is() -> None:
    assert printable("größe ✓ 日本") == "größe ✓ 日本"


@pytest.mark.parametrize(
    ("default", "written", "meant"),
    [("200ms", 200, "200ms"), ("30s", 30, "30s"), ("5s", 5000, "5000ms"), ("0s", 10, "10s"), ("0s", 500, "500ms")],
)
def test_a_number_without_a_unit_is_taken_for_what_is_near_the_default(default: str, written: int, meant: str) -> None:
    class Waiting(Model):
        wait: Duration = parse_duration(default)

    check = Validator(Document.from_text(f"s: {{wait: {written}}}\n", "c.yaml").root)
    check.read(Waiting, ("s",))
    assert [warning.hint for warning in check.warnings] == [f"did you mean {meant}?"]
