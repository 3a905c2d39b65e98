"""The quick look that spares most records the walk: when it says clean, the walk replaces nothing."""

from __future__ import annotations

import json
import random
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from engine.documents.canonical import canonical
from engine.model import Finding, Level, Limits
from engine.record.chain import encode, parse
from engine.record.model import CoveredEvents, DecisionRecord
from engine.secrets import patterns, prefilter
from engine.secrets.forms import UNKNOWN_FORMS, Form, SecretForms
from engine.secrets.prefilter import clean
from engine.secrets.redaction import DEPTH, TEXT_CHARACTERS, redact, replaced
from tests.record.samples import TIME, VERSIONS, decision, taken
from tests.secrets.test_redaction import ORDINARY, SCRAPS, SECRETS, WORDS, letters

DIGEST = "9f86d081" * 8
UUID = "00000000-0000-4000-8000-411111111111"

PIECES = [
    *SECRETS.values(),
    *ORDINARY,
    *(DIGEST, DIGEST[:32], "4111" * 8, UUID, f"sha256:{DIGEST}", f"sha1:{DIGEST[:40]}", f"sha512:{DIGEST * 2}"),
    *("4111111111111111", "4111 1111 1111 1111", "3782-822463-10005", "411111111111", "1111"),
    *("password", "secret", "token", "access", "api", "key", "_key"),
    *("Authorization", "Cookie", "X-Api-Key", "credentials"),
    *("Bearer ", "bearer", "Basic ", "basic", "sk-", "eyJ", "AKIA", "Q~", "glpat-", "xoxb-", "hf_", "SG."),
    *("=", ":", " ", "-", "/", "+", ".", "@", "://", '"', "'", "\\", "\n", "\t"),
    *(",", ";", "&", "[redacted:0123456789ab]"),
    *("a", "Z", "7", "abc1", "é", "\u017f", "\u212a", "contacts-2026-11", "aB3x9Q", "x" * 40, "aZ9" * 11),
]  # fmt: skip
NUMBERS = [0, -1, 1.5, 1e300, 4111111111111111, 378282246310005, -4111111111111111, 10**18]


def text(chance: random.Random) -> str:
    """A text of a few pieces and of letters of no meaning."""
    return "".join(
        chance.choice(PIECES)
        if chance.random() < 0.7
        else "".join(chance.choices(string.printable, k=chance.randrange(7)))
        for _ in range(chance.randrange(6))
    )


def made(chance: random.Random, levels: int = 3) -> Any:
    """A value of JSON. Hypothesis takes fifty times as long as the test to make one of so many pieces."""
    kind = chance.randrange(10 if levels else 7)
    if kind < 5:
        return text(chance)
    if kind == 5:
        return chance.choice([None, True, False])
    if kind == 6:
        return chance.choice(NUMBERS) if chance.random() < 0.7 else chance.randrange(-(10**19), 10**19)
    if kind == 7:
        return [made(chance, levels - 1) for _ in range(chance.randrange(5))]
    return {text(chance): made(chance, levels - 1) for _ in range(chance.randrange(5))}


CHANCE = st.integers(0, 1 << 32).map(random.Random)


def leaves_as_it_is(value: Any) -> bool:
    """Whether the value is called clean; if so, the walk has to leave it as it is."""
    found = clean(canonical(value))
    if found:
        assert redact(value) == (json.loads(json.dumps(value)), ())
    return found


@pytest.mark.parametrize(
    "value",
    [
        {"a": f"4111111111111111.{UUID}"},
        {"a": f"{DIGEST}/aB3x9QaB3x9QaB3x9QaB3x9QaB3x9QaB3x9Q"},
        {"a": f"sha256:{DIGEST}/aB3x9QaB3x9QaB3x9QaB3x9QaB3x9QaB3x9Q"},
        {"db_password": 5},
        {"X-Api-Key": ["short"]},
        {"AUTHORIZATION": "short"},
        [4111111111111111],
        {"coo\u212aie": "a: b"},
    ],
)
def test_known_false_negatives_stay_fixed(value: Any) -> None:
    prefilter._inert.clear()
    for _ in range(2):
        leaves_as_it_is(value)


@given(CHANCE)
def test_redaction_leaves_a_clean_value_unchanged(chance: random.Random) -> None:
    for value in [made(chance) for _ in range(50)]:
        prefilter._inert.clear()
        first = leaves_as_it_is(value)
        assert leaves_as_it_is(value) or not first  # the second time with what the first one remembered


@given(CHANCE)
def test_the_cache_of_harmless_strings_hides_no_secret(chance: random.Random) -> None:
    for _ in range(20):
        leaves_as_it_is(made(chance))


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize(
    "place",
    [
        lambda secret: secret,
        lambda secret: {secret: 1},
        lambda secret: {"note": f"see {secret} there"},
        lambda secret: [{"a": [secret]}],
    ],
    ids=["alone", "key", "within", "deep"],
)
def test_no_known_secret_is_called_clean(name: str, place: Any) -> None:
    value = place(SECRETS[name])
    assert redact(value)[1]  # the control: there is something to find
    assert not clean(canonical(value))


# covers: A63.1
@pytest.mark.parametrize("key", [DIGEST[:32], "lower_case_words", 'with"quotes', "Zq7+planted/key"])
def test_a_known_key_is_a_secret_in_any_form(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values: list[Any] = [key, {key: 1}, {"note": f"see {key} there"}, [{"a": [f"x{key}"]}]]
    for value in values:
        leaves_as_it_is(value)  # its words count as harmless from now on
    monkeypatch.setattr(patterns, "_keys", frozenset())
    patterns.know_key(key)
    for value in values:
        assert not clean(canonical(value))
        assert key not in canonical(redact(value)[0]).decode()
    hidden = f"{key[:4]}\u200b{key[4:]}"
    for text, clean_text in ((f"a {key} b {key}", "a … b …"), (hidden, "…")):
        assert replaced(text, patterns.find_secrets(text), lambda _: "…") == clean_text
    assert patterns.is_secret(f"a{key}", SecretForms())


PHRASE = SECRETS["seed phrase"].split()


@pytest.mark.parametrize(
    "words",
    [
        ["login", "--password", "swordfish"],
        ["deploy", "--token", "swordfish", "-v"],
        ["--token", "swordfish"],
        ["curl", "-u", "bob:swordfish", "localhost"],
        ["-v", "--password", "swordfish"],
        PHRASE,
        [word.upper() for word in PHRASE],
        ["1", *PHRASE, "2"],
        [f" {PHRASE[0]}", *PHRASE[1:]],
        [*PHRASE[:4], "", *PHRASE[4:]],
        [f"{word}," for word in PHRASE],
        [" ".join(PHRASE[:2]), *PHRASE[2:]],
        [" ".join(PHRASE[:6]), " ".join(PHRASE[6:])],
        [",", ",", ", ".join(PHRASE[:6]), ",", ",".join(PHRASE[6:])],
    ],
)
def test_a_word_list_forming_a_secret_is_not_clean(words: list[str]) -> None:
    """Nor when each word was seen alone before, and is remembered."""
    prefilter._inert.clear()
    for value in (words, *words, {"a": [words]}):
        assert not redact(value)[1] or not clean(canonical(value))
    assert redact(words)[1]
    assert not clean(canonical(words))


@pytest.mark.parametrize(
    "value",
    [
        "4111111111111111th",
        "id4111111111111111",
        "1.4111111111111111",
        "9111111111111111",
        "42" * 10,
        [10**13, 10**19],
        "1111:2222:3333:4444",
        "contacts@1.2.3 (see notes)",
        "use --token",
        "token pwd a=b",
        "add missing tests, for the parser; and make them run every night",
        ["add", "missing", "tests", "for", "the", "parser", "and", "make", "them", "run", "at"],
        ["add", "missing", "tests", "for", "the", "parser", "and", "make", "them", "run", "at", "night", "1"],
        dict.fromkeys(PHRASE),
        DIGEST,
        f"{DIGEST}/{DIGEST[:40]} {'able-' * 9}",
    ],
    ids=str,
)
def test_a_secret_lookalike_skips_the_full_walk(value: Any) -> None:
    prefilter._inert.clear()
    assert redact(value) == (value, ())
    assert clean(canonical(value))


def test_a_value_at_the_size_or_depth_bound_skips_the_full_walk() -> None:
    for more in (0, 1):
        text = b'"' + b"x " * (prefilter.TEXT_BYTES // 2 - 1) + b" " * more + b'"'
        assert clean(text) == (not more)
        below = prefilter._NESTED - 1 + more
        deep = b"[{}," + b"[" * below + b"]" * below + b"]"
        assert clean(deep) == (not more)


def test_short_strings_are_remembered_up_to_a_bound() -> None:
    prefilter._inert.clear()
    full = [f"word{number}" for number in range(prefilter._REMEMBERED)]
    assert clean(canonical(full))
    assert prefilter._inert == set(full)
    short, long = "x" * prefilter._SHORT, "x" * (prefilter._SHORT + 1)
    assert clean(canonical([short, long]))
    assert prefilter._inert == {*full, short}
    assert clean(canonical("another"))
    assert prefilter._inert == {"another"}


@pytest.mark.parametrize(
    "value",
    [
        {"password": 5},
        {"AUTHORIZATION": "x"},
        {"card": 4222222222222},
        4111111111111111,
        {"password": "x"},
        {"a": {"api_key": ["x"]}},
        {"card": 4111111111111111},
        "x " * TEXT_CHARACTERS,
        "sha512:" + "1" * 128 + "/" + letters(33, "aB3x9Qe7Kdap2Wo5Tgi8Rv4Hu1oYc6Jau"),
        letters(66, SCRAPS + WORDS) + "/sha256:" + DIGEST,
    ],
    ids=["number", "capitals", "short card", "card alone", "word", "list", "card", "long", "behind", "before"],
)
def test_a_secret_by_name_form_or_length_is_not_clean(value: Any) -> None:
    assert redact(value)[1]
    assert not clean(canonical(value))


def test_a_value_that_is_nested_too_deeply_is_not_clean() -> None:
    for opening in ("", "]" * 100, "}" * 100):
        value: Any = opening
        for _ in range(DEPTH + 1):
            value = [opening, value]
        assert redact(value)[1]
        assert not clean(canonical(value))
    wide: Any = [[{}] for _ in range(300)]
    assert clean(canonical(wide))


def test_most_ordinary_records_skip_the_full_walk() -> None:
    """Not safety but the reason for it all: were it never to say clean, it would be of no use."""
    spared = [value for value in ORDINARY if value.isascii() and clean(canonical({"value": value}))]
    assert len(spared) > 0.7 * len(ORDINARY)
    assert clean(encode(1, "a" * 64, decision(1)))


def test_adjacent_strings_do_not_form_a_secret_name() -> None:
    prefilter._inert.clear()
    assert clean(canonical({"caller": {"via": "token"}, "id": "access", "api": ["auth", "session", "key"]}))
    assert not clean(canonical({"id-token": "x"}))


def slow(value: dict[str, Any], **more: Any) -> DecisionRecord:
    """The record as pydantic and the walk make it, every value checked and walked over."""
    made = taken(1).model_copy(update=more)
    return DecisionRecord.model_validate(
        {
            "time": TIME,
            "decision_id": made.decision_id,
            "point": made.point,
            "mode": made.mode,
            "input_digest": made.input_digest,
            "input": value,
            "outcome": made.outcome,
            "findings": [{"code": one.code, "level": one.level, "subject": one.subject} for one in made.findings],
            "limits": None,
            "policy": made.policy,
            "versions": VERSIONS,
            "durations": {"gather": 1200, "decide": 3400},
        }
    )


@given(CHANCE)
def test_the_fast_and_slow_paths_produce_the_same_record(chance: random.Random) -> None:
    for _ in range(5):
        quick_as_slow({text(chance): made(chance) for _ in range(chance.randrange(5))}, text(chance))


def quick_as_slow(value: dict[str, Any], subject: str) -> None:
    """Assert that both ways make the same record and that its line is read as it was written."""
    finding = Finding(code="license_unknown", level=Level.DENY, requirement="m", subject=subject, remedy="r")
    quick = DecisionRecord.of(
        taken(1).model_copy(update={"findings": (finding,)}),
        time=TIME,
        document=value,
        versions=VERSIONS,
        durations={"gather": 1200, "decide": 3400},
    )
    assert quick == slow(value, findings=(finding,))
    line = encode(1, "a" * 64, quick)
    assert encode(1, "a" * 64, parse(line).body) == line


@pytest.mark.parametrize("field", ["principal", "run", "request_id", "approval"])
def test_a_secret_in_a_field_of_its_own_is_taken_out(field: str) -> None:
    secret = SECRETS["github"]
    fields: dict[str, Any] = {field: secret}
    made = DecisionRecord.of(taken(1), time=TIME, document=None, versions=VERSIONS, durations={}, **fields)
    assert secret not in made.model_dump_json()
    assert made.redactions == (field,)


@pytest.mark.parametrize(
    "wrong", [{"time": "2026"}, {"trace": "f" * 31}, {"trace": "F" * 32}, {"trace": "f" * 32 + "\n"}]
)
def test_a_time_or_trace_of_another_form_is_refused(wrong: dict[str, str]) -> None:
    fields: dict[str, Any] = {"time": TIME, "trace": "f" * 32}
    DecisionRecord.of(taken(1), document=None, versions=VERSIONS, durations={}, **fields)
    with pytest.raises(ValueError, match=r"time|trace"):
        DecisionRecord.of(taken(1), document=None, versions=VERSIONS, durations={}, **fields | wrong)


class SomeLimits(Limits):
    """Limits of a point that only this test has."""

    seconds: int


@pytest.mark.parametrize(
    "document", [None, {"point": "source"}, {"a": SECRETS["github"]}], ids=["none", "clean", "not"]
)
def test_a_record_has_null_for_values_missing_in_its_decision(document: dict[str, Any] | None) -> None:
    full = taken(1).model_copy(update={"limits": SomeLimits(seconds=7)})
    lacks = taken(1).model_copy(update={"limits": None, "policy": None, "input_digest": None})
    events = CoveredEvents(bytes=5, count=1, sha256="a" * 64)
    policy = full.policy and full.policy.model_dump()
    for made, limits, revisions in ((full, {"seconds": 7}, policy), (lacks, None, None)):
        record = DecisionRecord.of(made, time=TIME, document=document, versions=VERSIONS, durations={"gather": 5})
        for covered in (None, events):
            written = json.loads(encode(1, "a" * 64, record.model_copy(update={"source_events": covered})))
            assert (written["limits"], written["policy"]) == (limits, revisions)
            assert (written["input_digest"], written["versions"]) == (made.input_digest, VERSIONS)
            assert written["source_events"] == (covered and covered.model_dump())
            assert written["input"] == redact(document)[0]
            assert written["durations"] == {"gather": 5, "decide": None}


@pytest.mark.parametrize(
    "wrong", [{"principal": 5}, {"run": b"x"}, {"request_id": ["x"]}, {"approval": True}, {"document": ["x"]}], ids=str
)
def test_a_field_of_another_type_is_refused(wrong: dict[str, Any]) -> None:
    fields: dict[str, Any] = {"document": None, "time": TIME, "versions": VERSIONS, "durations": {}}
    DecisionRecord.of(taken(1), **fields)
    with pytest.raises(ValidationError):
        DecisionRecord.of(taken(1), **fields | wrong)


@pytest.mark.parametrize("more", [{}, {"principal": "jane", "trace": "f" * 32}], ids=["little", "more"])
def test_an_ordinary_record_takes_the_fast_path(more: dict[str, Any]) -> None:
    """It sets every field; validation, which takes several times as long, sets only those that it was given."""
    fields: dict[str, Any] = {"time": TIME, "versions": VERSIONS, "durations": {}, **more}
    quick = DecisionRecord.of(taken(1), document={"point": "source"}, **fields)
    slow = DecisionRecord.of(taken(1), document={"card": 4111111111111111}, **fields)
    assert quick.model_fields_set == set(DecisionRecord.model_fields)
    assert "source_events" not in slow.model_fields_set


def test_strings_that_were_seen_are_judged_again_once_the_forms_change(monkeypatch: pytest.MonkeyPatch) -> None:
    text = canonical(["zorknet-qwerty"])
    assert clean(text)
    own = SecretForms(frozenset({Form(("zorknet-",), "[a-z]{6}")}))
    for forms in (patterns.known_forms() | own, UNKNOWN_FORMS):
        monkeypatch.setattr(patterns, "_known", forms)
        assert not clean(text)
    assert not clean(b"[]")  # without any policy nothing is certain
