"""Law 8: what is planted anywhere reaches no record, source event, metric or log of OPA, and nobody sees content.

What is promised, and to whom:
- what the engine keeps (everything in the state folder) and what OPA writes: no secret, and none of the texts
  that are not facts, such as content, a URL's path, names of people, fields and files;
- what the requester is shown: ids, paths and places of what he himself submitted, but never content;
- ids and aliases are facts and stay readable in the record, unless they look like a secret.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.engine import Engine
from engine.opa.generation import Generation
from engine.record.layout import DECISIONS, EVENTS
from engine.secrets.patterns import find_secrets
from engine.secrets.redaction import redact_text, replaced
from engine.settings import OpaLimits, Settings
from tests.command import Command, decisions, edited, written
from tests.conftest import NOW

WORD = f"quokka{secrets.token_hex(6)}"
"""A word that nobody could guess or know; new in each run, so that it is in no cache either."""

PRIVATE_KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAquokka\n-----END RSA PRIVATE KEY-----"
SHAPES = {
    "aws key": "AKIAIOSFODNN7QUOKKAX",
    "github token": "ghp_quokka0123456789abcdefghijABCDEFGH",
    "openai key": "sk-proj-quokka0123456789abcdefABCDEF",
    "slack token": "xoxb-123456789012-quokka0123456789",
    "google key": "AIzaSyQuokka0123456789abcdefghijklmnopq",
    "json web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJxdW9ra2EifQ.quokkaSflKxwRJSMeKKF2QT4f",
    "authorization header": "Authorization: Bearer quokka0123456789abcdef",
    "basic credentials": "Basic cXVva2thOmh1bnRlcjI=",
    "password": "password=quokka-hunter2",
    "private key": PRIVATE_KEY,
    "mail address": "jane.quokka@mail.example.org",
    "card number": "4111 1111 1111 1111",
    "user and password in a url": "https://quokka:hunter2@db.example.org/x",
    "new relic key": "NRAK-QUOKKA0123456789ABCDEFGHIJK",
    "heroku key": "HRKU-quokka0123456789abcdefABCDEFGHIJ",
    "vault token": "hvs.quokka0123456789abcdefABCDEF",
    "twilio key": "SK0123456789abcdef0123456789abcdef",
    "data source": "root:quokka-hunter2@tcp(db.example.org:3306)/contacts",
    "netrc": "machine db.example.org login quokka password hunter2",
    "seed phrase": "legal winner thank year wave sausage worth useful legal winner thank yellow",
    "option": "sshpass -p quokka-hunter2 ssh host",
    "password of words": "password is correct quokka battery staple",
    "random key": "qU0kKa9fK3xLz8Wm2RtY7bNc4VhJ6sDp1GqE5aXo",
}
"""Secrets and private data in the forms that they really have."""

AS_IDS = {
    "openai key": "sk-proj-quokka0123456789abcdef0123",
    "github token": "ghp_quokka0123456789abcdefghij01234567",
    "gitlab token": "glpat-quokka0123456789abcdef",
    "slack token": "xoxb-123456789012-quokka0123456789",
    "npm token": "npm_quokka0123456789abcdefghij0123456789",
    "databricks token": "dapi0123456789abcdef0123456789abcdef",
    "card number": "4111111111111111",
    "random key": "k3x9q0z7w2v8u1t6s5r4p3n2m1l0j9h8g7f6d5",
}
"""Secrets that fit the format of an id."""


@pytest.fixture(scope="module")
def engine(module_settings: Settings) -> Iterator[Engine]:
    with Engine(module_settings, now=lambda: datetime(2026, 11, 21, tzinfo=UTC)) as running:
        yield running


def kept(state: Path) -> str:
    """Everything in the state folder as one text."""
    assert all((state / name).is_file() for name in (DECISIONS, EVENTS))
    return written(state).decode("utf-8", "replace")


def absent(planted: str, text: str) -> None:
    """Neither as it is nor as JSON writes it, in any case of its letters."""
    low = text.lower()
    assert planted.lower() not in low
    assert json.dumps(planted)[1:-1].lower() not in low
    for piece in planted.splitlines():
        assert piece.lower() not in low


def everywhere(text: str, bundle: dict[str, Any]) -> None:
    """Put the text wherever a source bundle takes one, whether or not it fits there."""
    bundle[text] = {text: [text]}
    bundle["note"] = text
    bundle["network"][text] = text
    bundle["network"]["allowed_hosts"].append(text)
    first, second = bundle["records"]
    first.update({"headers": {"Authorization": text}, text: text, "path": f"content/{text}", "url": f"https://{text}/"})
    first["retention"]["basis"] = text
    second.update({"license": text, "media_type": text, "retrieved_at": text, "sha256": text, "export": text})
    bundle["license_decisions"][0]["decided_by"] = text
    bundle["license_decisions"][1].update({"decision": text, "decided_at": text, "comment": text})


@pytest.mark.parametrize("before", ["line\n", "a\tb ", "she said \u201e", 'C:\\\\t "'])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_secret_behind_an_escape_of_JSON_within_JSON_is_found(shape: str, before: str) -> None:  # noqa: N802
    text = json.dumps({"log": f"{before}{SHAPES[shape]}\nend"})
    for within in (text, json.dumps([text])):
        absent(SHAPES[shape], redact_text(within))


@pytest.mark.parametrize("escape", [r"\b", r"\f", r"\n", r"\r", r"\t", r"\u000A", r"\u003C", r"\\u003c", r"\ud83d"])
def test_a_key_behind_any_escape_is_found(escape: str) -> None:
    absent(SHAPES["aws key"], redact_text(f'{{"log": "a{escape}{SHAPES["aws key"]}"}}'))


def test_a_secret_with_an_escape_in_it_is_found() -> None:
    for text in (r'"postgres:\/\/me:quokka@db\/x"', r'"{\"password\": \"quokka hunter2\"}"'):
        absent("quokka", redact_text(text))


def test_text_around_an_escape_stays() -> None:
    text = r'{"log": "a\u003cpassword\u003dquokka-hunter2\u003e\nend"}'
    assert replaced(text, find_secrets(text), lambda _: "-") == r'{"log": "a\u003c-\nend"}'


@pytest.mark.parametrize("shape", SHAPES)
def test_a_secret_put_everywhere_is_kept_nowhere(shape: str, engine: Engine, tmp_path: Path) -> None:
    planted = SHAPES[shape]
    bundle = edited("external_contacts", tmp_path / "bundle", lambda document: everywhere(planted, document))
    (bundle / "content" / "contacts.json").write_text(planted, encoding="utf-8")
    answer = engine.decide("source", {"path": str(bundle), "digest": None})
    assert {finding.code for finding in answer.decision.findings} >= {"bundle_invalid"}
    absent(planted, kept(engine.settings.state))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_secret_in_the_place_of_a_name_is_kept_nowhere(shape: str, engine: Engine, tmp_path: Path) -> None:
    for field in ("id", "environment"):
        bundle = edited("external_contacts", tmp_path / field)
        document = json.loads((bundle / "bundle.yaml").read_text(encoding="utf-8"))
        (bundle / "bundle.yaml").write_text(json.dumps(document | {field: SHAPES[shape]}), encoding="utf-8")
        engine.check("source", {"path": str(bundle), "digest": None})
    absent(SHAPES[shape], kept(engine.settings.state))


@pytest.mark.parametrize("shape", AS_IDS)
def test_a_secret_that_fits_the_format_of_an_id_is_kept_nowhere(shape: str, engine: Engine, tmp_path: Path) -> None:
    planted = AS_IDS[shape]

    def edit(bundle: dict[str, Any]) -> None:
        bundle.update(id=planted, environment=planted)
        bundle["records"][0].update(id=planted, origin_alias=planted, license=f"LicenseRef-{planted}")
        bundle["license_decisions"][0]["record"] = planted
        bundle["network"]["allowed_hosts"].append(f"{planted.replace('_', '-')}.example.org")

    answer = engine.decide("source", {"path": str(edited("external_contacts", tmp_path / "b", edit)), "digest": None})
    assert "bundle_invalid" not in {finding.code for finding in answer.decision.findings}  # it does fit
    written = kept(engine.settings.state)
    absent(planted, written)
    absent(f"{planted.replace('_', '-')}.example.org", written)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_secret_in_a_license_request_is_kept_nowhere(shape: str, engine: Engine) -> None:
    planted = SHAPES[shape]
    request = {
        "purpose": "train",
        "export_license": planted,
        "license": f"MIT OR LicenseRef-{planted}",
        "sha256": "0" * 64,
        "decisions": [],
    }
    for changed in (
        request,
        request | {"license": planted},
        request | {planted: planted},
        request | {"purpose": planted},
    ):
        assert engine.decide("license", changed).decision.outcome == "deny"
    absent(planted, kept(engine.settings.state))


def test_harmless_ids_aliases_and_hosts_are_recorded(engine: Engine, tmp_path: Path) -> None:
    """The control of the tests above: ids, aliases and hosts do reach the record when they are harmless."""
    bundle = edited("external_contacts", tmp_path / "b", lambda document: document.update(id=f"contacts-{WORD}"))
    engine.check("source", {"path": str(bundle), "digest": None})
    written = kept(engine.settings.state)
    assert f"contacts-{WORD}" in written
    assert "partner-directory" in written
    assert "data.example.org" in written


@dataclass(frozen=True, slots=True)
class Shown:
    """What one source bundle full of canaries left with the requester, in the state folder and beside."""

    kept: str
    told: dict[str, str]


def spoiled(folder: Path) -> Path:
    """A source bundle with the canary word, in turn with secrets, in everything that is no fact."""

    def edit(bundle: dict[str, Any]) -> None:
        first, second = bundle["records"]
        first.update(url=f"https://data.example.org/{WORD}/{SHAPES['github token']}?token={WORD}&key={WORD}")
        second.update(path=f"content/{WORD}.csv", url=f"https://data.example.org/gazetteer#{WORD}")
        second[f"{WORD}_token"] = SHAPES["openai key"]
        second["response"] = {"body": f"Dear {WORD}"}
        bundle[WORD] = [WORD]
        for decision in bundle["license_decisions"]:
            decision["decided_by"] = f"{WORD}.person@mail.example.org"

    bundle = edited("external_contacts", folder, edit)
    (bundle / "content" / "contacts.json").write_text(
        f"{WORD}text {SHAPES['aws key']}\n{PRIVATE_KEY}", encoding="utf-8"
    )
    (bundle / "content" / f"{WORD}.csv").write_text(f"{WORD}text;1\n", encoding="utf-8")
    return bundle


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Shown:
    folder = tmp_path_factory.mktemp("shown")
    command = Command.of(folder, cache)
    bundle = spoiled(folder / f"{WORD}-folder")
    archive = Path(shutil.make_archive(str(folder / f"{WORD}-archive"), "zip", bundle))
    broken = folder / f"{WORD}-broken"
    broken.mkdir()
    (broken / "bundle.yaml").write_text(f"id: [{WORD}\nkey: {SHAPES['password']}\n", encoding="utf-8")
    formats = ("json", "sarif", "junit", "github")
    outputs = [part for name in formats for part in ("--output", f"{name}={folder / name}")]
    environment = {"OPENAI_API_KEY": f"{WORD}-environment", "HTTPS_PROXY": f"http://{WORD}:{WORD}@127.0.0.1:9"}
    run = command.check(bundle, archive, broken, *outputs, "--explain", env=environment)
    assert run.code == 2
    told = {name: (folder / name).read_text(encoding="utf-8") for name in formats}
    request = json.dumps({"path": str(bundle), "digest": None})
    decided = command("decide", "source", "--now", NOW, stdin=request, env=environment)
    bad = command("decide", "source", stdin=json.dumps({"path": f"/nowhere/{WORD}", "digest": None, WORD: WORD}))
    tried = command.check(bundle, "--values", f"licenses.licenses.MIT.decision={WORD}")
    assert (decided.code, bad.code, tried.code) == (1, 2, 2)
    assert len(decisions(command.state)) == 5
    said = "\n".join(one.stdout + one.stderr for one in (run, decided, bad, tried))
    return Shown(kept(command.state), told | {"text and errors": said})


@pytest.mark.full
def test_only_facts_reach_the_state_folder(shown: Shown) -> None:
    absent(WORD, shown.kept)
    for shape in ("github token", "openai key", "aws key", "private key", "password"):
        absent(SHAPES[shape], shown.kept)


@pytest.mark.parametrize("how", ["json", "sarif", "junit", "github", "text and errors"])
def test_no_output_has_content_or_secrets_or_the_environment(how: str, shown: Shown) -> None:
    text = shown.told[how]
    assert WORD in text  # the control: the paths that the requester gave are shown to him
    for planted in (
        f"{WORD}text",
        "Dear ",
        f"{WORD}.person",
        f"{WORD}-environment",
        f"{WORD}:{WORD}",
        *SHAPES.values(),
    ):
        absent(planted, text)


@pytest.mark.full
def test_nothing_reaches_the_log_of_opa_even_when_it_fails(tmp_path: Path, cache: Path) -> None:
    settings = Settings(state=tmp_path / "state", cache=cache, opa=OpaLimits(answer_seconds=0.001))
    bundle = spoiled(tmp_path / "bundle")
    named = edited("offline_fixture", tmp_path / "named", lambda document: document.update(id=WORD))
    with Engine(settings) as late, Engine(replace(settings, state=tmp_path / "other", opa=OpaLimits())) as running:
        for engine in (late, running):
            for path in (bundle, named):
                engine.decide("source", {"path": str(path), "digest": None})
        assert isinstance(running.opa, Generation)
        running.opa.ask("decision", {"point": "source", "now": WORD, "bundle": WORD})
        for engine in (late, running):
            assert isinstance(engine.opa, Generation)
            absent(WORD, (engine.opa.server.folder / "opa.log").read_text(encoding="utf-8"))
    assert WORD in kept(tmp_path / "other")  # the control: it did go through OPA
