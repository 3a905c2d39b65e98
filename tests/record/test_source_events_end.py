"""source_events.jsonl as `engine` writes it: the same bytes each run, seven facts, no network, nothing planted.

The forms of single values are held by tests/record/test_source_events.py; here real source bundles go the whole way.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.engine import Engine
from engine.model import Permit, Result
from engine.record.layout import DECISIONS, EVENTS
from engine.secrets.redaction import redacted
from engine.settings import Settings
from engine.work import Job
from tests.command import Command, decisions, edited, events
from tests.conftest import BUNDLES, NOW, ROOT
from tests.facilities import needs

MOMENT = datetime(2026, 11, 21, tzinfo=UTC)
EXTERNAL = BUNDLES / "external_contacts"
FACTS = {
    "event",
    "source_id",
    "source_kind",
    "policy_outcome",
    "origin_alias",
    "hashes",
    "license_outcome",
    "rejection_causes",
}
SEEN = ("external_contacts", "offline_fixture", "mixed_licenses", "hash_mismatch", "license_review_required")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Engine]:
    with Engine(Settings(state=tmp_path_factory.mktemp("state"), cache=cache), now=lambda: MOMENT) as running:
        yield running


def told(engine: Engine, bundle: Path, mode: str = "check") -> list[dict[str, Any]]:
    """The source events that one decision on a source bundle adds."""
    file = engine.settings.state / EVENTS
    before = file.stat().st_size if file.exists() else 0
    (engine.check if mode == "check" else engine.decide)("source", {"path": str(bundle), "digest": None})
    return [json.loads(line) for line in file.read_bytes()[before:].splitlines()]


# A26: the same bytes, and no network


# covers: A26.1
@pytest.mark.full
def test_two_runs_in_fresh_states_give_the_same_bytes(tmp_path: Path, cache: Path) -> None:
    written = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        command = Command.of(tmp_path / name, cache)
        assert command.check(*(BUNDLES / bundle for bundle in SEEN)).code == 1
        request = json.dumps({"path": str(EXTERNAL), "digest": None})
        assert command("decide", "source", "--now", NOW, stdin=request).code == 0
        written.append((command.state / EVENTS).read_bytes())
        assert len(events(command.state)) == 10
    assert written[0] == written[1]


# covers: A26
def test_a_copy_elsewhere_and_an_archive_of_it_give_the_same_bytes(engine: Engine, tmp_path: Path) -> None:
    shutil.copytree(EXTERNAL, tmp_path / "elsewhere")
    archive = shutil.make_archive(str(tmp_path / "packed"), "zip", EXTERNAL)
    first = told(engine, EXTERNAL)
    assert len(first) == 2
    assert told(engine, tmp_path / "elsewhere") == first
    assert told(engine, Path(archive)) == first


GUARDED = """
import socket, sys
from datetime import UTC, datetime
from pathlib import Path

refused, used = [], []

def guard(event, arguments):
    if event == "socket.connect" and arguments[0].family == socket.AF_UNIX:
        used.append(event)
    elif event in {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname"}:
        refused.append((event, arguments))
        raise PermissionError("the network is closed")

sys.addaudithook(guard)
for attempt in (
    lambda: socket.create_connection(("127.0.0.1", 9), timeout=0.1),
    lambda: socket.getaddrinfo("data.example.org", 443),
    lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b"x", ("::1", 9)),
):
    try:
        attempt()
    except PermissionError:
        continue
    sys.exit("the guard is open")
refused.clear()

from engine.engine import Engine
from engine.settings import Settings

state, cache, into, *bundles = map(Path, sys.argv[1:])
with Engine(Settings(state=state, cache=cache), now=lambda: datetime(2026, 11, 21, tzinfo=UTC)) as engine:
    for bundle in bundles:
        print(engine.check("source", {"path": str(bundle), "digest": None}).decision.outcome)
    print(engine.admit(bundles[0], into).result.status)
if refused or not used:
    sys.exit(f"refused {refused}, used {len(used)}")
"""


# covers: A26.2
def test_a_socket_guard_sees_no_connection_but_the_one_to_opa(tmp_path: Path, cache: Path) -> None:
    """Whatever connects, sends or looks up a name fails, but on a unix socket; the guard is first shown to bite."""
    (tmp_path / "into").mkdir()
    bundles = [BUNDLES / name for name in SEEN]
    done = subprocess.run(
        [sys.executable, "-c", GUARDED, tmp_path / "state", cache, tmp_path / "into", *bundles],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,  # it may have to build the policy, on a busy machine
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["allow", "allow", "allow", "deny", "confirm", "staged"]


# covers: A26.2
@pytest.mark.full
@needs("network_namespace")
def test_without_a_network_the_command_prints_and_writes_the_same(tmp_path: Path, cache: Path) -> None:
    """In a network namespace of its own not even OPA could reach anything."""
    probe = "import socket\ntry:\n socket.create_connection(('127.0.0.1', 9), 1)\nexcept OSError as e: print(e.errno)"
    apart = ("unshare", "-rn")
    out = subprocess.run([*apart, sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "101", "the control: the network is unreachable in there"
    written = []
    for name, prefix in (("with", ()), ("without", apart)):
        (tmp_path / name).mkdir()
        command = Command.of(tmp_path / name, cache)
        run = command.check(EXTERNAL, prefix=prefix)
        assert run.code == 0, run.stdout
        written.append((run.stdout, (command.state / EVENTS).read_bytes()))
    assert written[0] == written[1]


# A27: the seven facts


# covers: A27.1
def test_source_id_is_recorded(engine: Engine, tmp_path: Path) -> None:
    assert [one["source_id"] for one in told(engine, EXTERNAL)] == ["contacts-1", "cities-1"]
    unnamed = edited("external_contacts", tmp_path / "b", lambda bundle: bundle["records"][1].pop("id"))
    assert [one["source_id"] for one in told(engine, unnamed)] == ["contacts-1", "#1"]


# covers: A27.2
def test_source_kind_is_recorded(engine: Engine) -> None:
    kinds = {
        "external_contacts": {"external"},
        "offline_fixture": {"fixture"},
        "no_kind_stated": {"fixture"},
        "generated_tickets": {"synthetic", "transformed"},
    }
    for name, wanted in kinds.items():
        assert {one["source_kind"] for one in told(engine, BUNDLES / name)} == wanted


# covers: A27.3
def test_policy_outcome_is_recorded_with_the_name_of_what_happened(engine: Engine) -> None:
    names = {
        ("offline_fixture", "check"): ("allow", "source_checked"),
        ("hash_mismatch", "check"): ("deny", "source_checked"),
        ("license_review_required", "check"): ("confirm", "source_checked"),
        ("offline_fixture", "enforce"): ("allow", "environment_source_admitted"),
        ("hash_mismatch", "enforce"): ("deny", "environment_source_rejected"),
        ("license_review_required", "enforce"): ("confirm", "environment_source_rejected"),
    }
    for (bundle, mode), (outcome, name) in names.items():
        found = told(engine, BUNDLES / bundle, mode)
        assert {(one["policy_outcome"], one["event"]) for one in found} == {(outcome, name)}, (bundle, mode)


# covers: A27.4
def test_origin_alias_is_recorded_and_nothing_more_exact_about_the_origin(engine: Engine, tmp_path: Path) -> None:
    found = told(engine, EXTERNAL)
    assert [one["origin_alias"] for one in found] == ["partner-directory", "partner-gazetteer"]
    written = json.dumps(found)
    for exact in ("https", "data.example.org", "directory/", "gazetteer/", "content/", "2026-11-02"):
        assert exact in (EXTERNAL / "bundle.yaml").read_text(encoding="utf-8")  # the control
        assert exact not in written
    host = edited(
        "external_contacts", tmp_path / "b", lambda b: b["records"][0].update(origin_alias="data.example.org")
    )
    assert told(engine, host)[0]["origin_alias"] == redacted("data.example.org")


# covers: A27.5
def test_hashes_are_recorded_as_declared_and_as_computed(engine: Engine) -> None:
    (same,) = told(engine, BUNDLES / "offline_fixture")
    assert same["hashes"]["declared"] == same["hashes"]["computed"]
    (other,) = told(engine, BUNDLES / "hash_mismatch")
    assert other["hashes"]["computed"] == same["hashes"]["computed"]
    assert other["hashes"]["declared"] not in {None, other["hashes"]["computed"]}
    (absent,) = told(engine, BUNDLES / "hash_missing")
    assert absent["hashes"] == {"declared": None, "computed": same["hashes"]["computed"]}
    assert told(engine, BUNDLES / "content_missing")[1]["hashes"]["computed"] is None


# covers: A27.6
def test_license_outcome_is_recorded(engine: Engine) -> None:
    outcomes = {
        "offline_fixture": {"accepted"},
        "hash_mismatch": {"undecided"},  # no decision can be for this content
        "unknown_license": {"accepted", "license_unknown"},
        "incompatible_license": {"accepted", "license_incompatible"},
        "license_review_required": {"license_review_required"},
        "decision_missing": {"accepted", "license_decision_missing"},
        "license_missing": {"license_missing"},
    }
    for name, wanted in outcomes.items():
        found = {one["license_outcome"] for one in told(engine, BUNDLES / name)}
        assert found == wanted, name


# covers: A27.7
def test_rejection_causes_are_recorded_and_beside_the_seven_facts_only_the_name(engine: Engine) -> None:
    causes = {"offline_fixture": [[]], "unknown_license": [[], ["license_unknown"]]}
    causes["no_network_section"] = [
        [
            "bundle_invalid",
            "host_not_allowlisted",
            "network_access_disabled",
            "request_budget_exhausted",
            "source_audit_off",
        ]
    ]
    for name, wanted in causes.items():
        assert [one["rejection_causes"] for one in told(engine, BUNDLES / name)] == wanted, name
    for bundle in sorted(BUNDLES.iterdir()):
        for one in told(engine, bundle):
            assert set(one) == FACTS
            assert set(one["hashes"]) == {"declared", "computed"}


def test_every_denied_source_has_a_cause(engine: Engine) -> None:
    """Also a record that is in order itself, in a source bundle that is refused for something else."""
    for bundle in sorted(BUNDLES.iterdir()):
        found = told(engine, bundle)
        if any(one["policy_outcome"] != "allow" for one in found):
            assert any(one["rejection_causes"] for one in found), bundle.name


def undecided(bundle: dict[str, Any]) -> None:
    """Take every license decision away."""
    bundle["license_decisions"] = []


UNACCEPTED: dict[str, tuple[str, Callable[[dict[str, Any]], object], int]] = {
    "other content, no decision": ("hash_mismatch", undecided, 0),
    "no content, no decision": ("content_missing", undecided, 1),
    "no hash, no decision": ("hash_missing", undecided, 0),
    "refused for its purpose, which is unknown": ("non_commercial_for_training", lambda b: b.update(purpose="sell"), 0),
    "no license, no id": ("license_missing", lambda b: b["records"][0].pop("id"), 0),
}


# covers: A27
@pytest.mark.parametrize("name", UNACCEPTED)
def test_an_unaccepted_license_is_never_recorded_as_accepted(name: str, engine: Engine, tmp_path: Path) -> None:
    """A finding about the license may be hidden behind another one (`after`); that does not accept the license."""
    fixture, edit, index = UNACCEPTED[name]
    assert told(engine, edited(fixture, tmp_path / "bundle", edit))[index]["license_outcome"] != "accepted"


def test_an_undecided_source_is_not_called_accepted(tmp_path: Path, cache: Path) -> None:
    settings = Settings(state=tmp_path / "state", cache=cache)
    with Engine(settings, values=("licenses.licenses.MIT.decision=perhaps",), now=lambda: MOMENT) as broken:
        found = told(broken, EXTERNAL)
    assert [(one["policy_outcome"], one["license_outcome"]) for one in found] == [("deny", "undecided")] * 2
    assert {tuple(one["rejection_causes"]) for one in found} == {("engine.policy_invalid",)}


# A28: nothing planted comes through


@dataclass(frozen=True, slots=True)
class Planted:
    """Something that must never appear, and every place of a source bundle that a careless pipeline puts it into."""

    text: str
    word: str
    """A piece of it that nothing else has."""


PLANTED = {
    "raw provider payload": Planted(
        '{"object":"chat.completion","choices":[{"message":{"content":"zanzibar-payload"}}]}', "zanzibar-payload"
    ),
    "authorization header": Planted("Authorization: Bearer zanzibarHeader0a1b2c3d4e5f6071", "zanzibarHeader"),
    "api key": Planted("sk-proj-ZANZIBARkey0a1b2c3d4e5f6g7h8i9j0k", "ZANZIBARkey"),
    "source text": Planted("Dear Ms Zanzibar-Text, your order of 3 November has left our house.", "Zanzibar-Text"),
    "private user data": Planted("zanzibar.user@mail.example.org, born 3 May 1961", "zanzibar.user"),
    "other raw secret": Planted("postgres://zanzibar-other:hunter2@db.example.org/contacts", "zanzibar-other"),
}


def spots(text: str) -> dict[str, Callable[[dict[str, Any]], object]]:
    """Ways to put a text into a source bundle's document."""
    fields = ("id", "origin_alias", "media_type", "license", "url", "kind", "export", "retrieved_at", "sha256", "path")
    puts: dict[str, Callable[[dict[str, Any]], object]] = {
        f"records.0.{field}": lambda bundle, f=field: bundle["records"][0].update({f: text})  # type: ignore[misc]
        for field in fields
    }
    return puts | {
        "unknown field": lambda bundle: bundle["records"][0].update({"response": text, text: "x"}),
        "retention.basis": lambda bundle: bundle["records"][0]["retention"].update(basis=text),
        "id": lambda bundle: bundle.update(id=text),
        "environment": lambda bundle: bundle.update(environment=text),
        "network.allowed_hosts": lambda bundle: bundle["network"]["allowed_hosts"].append(text),
        "decided_by": lambda bundle: bundle["license_decisions"][0].update(decided_by=text),
    }


def never(name: str, engine: Engine, tmp_path: Path) -> None:
    """Plant it in the content and, one place after the other, in the document; no event has any of it."""
    planted = PLANTED[name]
    bundle = edited("external_contacts", tmp_path / "bundle")
    (bundle / "content" / "contacts.json").write_text(planted.text, encoding="utf-8")
    document = json.loads((bundle / "bundle.yaml").read_text(encoding="utf-8"))
    for spot, put in spots(planted.text).items():
        changed = json.loads(json.dumps(document))
        put(changed)
        (bundle / "bundle.yaml").write_text(json.dumps(changed), encoding="utf-8")
        found = told(engine, bundle)
        assert len(found) == 2, spot  # the control: it is told of
        assert found[1]["source_id"] == "cities-1"
    for file in (EVENTS, DECISIONS):
        written = (engine.settings.state / file).read_text(encoding="utf-8")
        assert planted.word.lower() not in written.lower(), file
        assert json.dumps(planted.text)[1:-1] not in written


# covers: A28.1
def test_a_planted_raw_provider_payload_does_not_appear(engine: Engine, tmp_path: Path) -> None:
    never("raw provider payload", engine, tmp_path)


# covers: A28.2
def test_a_planted_authorization_header_does_not_appear(engine: Engine, tmp_path: Path) -> None:
    never("authorization header", engine, tmp_path)


# covers: A28.3
def test_a_planted_api_key_does_not_appear(engine: Engine, tmp_path: Path) -> None:
    never("api key", engine, tmp_path)


# covers: A28.4
def test_planted_source_text_does_not_appear(engine: Engine, tmp_path: Path) -> None:
    never("source text", engine, tmp_path)


# covers: A28.5
def test_planted_private_user_data_does_not_appear(engine: Engine, tmp_path: Path) -> None:
    never("private user data", engine, tmp_path)


# covers: A28.6
def test_another_planted_raw_secret_does_not_appear(engine: Engine, tmp_path: Path) -> None:
    never("other raw secret", engine, tmp_path)


# A09: nothing is built before the decision is durable


# covers: A09.2
def test_no_environment_is_built_before_the_admitting_decision_is_durable(tmp_path: Path, cache: Path) -> None:
    """The executor that would build reads the record when it is called, with nothing flushed for its sake."""
    settings = Settings(state=tmp_path / "state", cache=cache)
    calls: list[tuple[str, list[tuple[str, str]], list[str]]] = []

    def build(permit: Permit, _: Job) -> Result:
        recorded = [json.loads(line) for line in (settings.state / DECISIONS).read_bytes().splitlines()]
        admitted = [json.loads(line)["event"] for line in (settings.state / EVENTS).read_bytes().splitlines()]
        calls.append((permit.decision_id, [(one["decision_id"], one["outcome"]) for one in recorded], admitted))
        return Result("built", {})

    with Engine(settings, now=lambda: MOMENT) as engine:
        for name in ("hash_mismatch", "license_review_required", "no_sandbox_section"):
            answer = engine.decide("source", {"path": str(BUNDLES / name), "digest": None}, build)
            assert (answer.decision.outcome != "allow", answer.result) == (True, None)
        assert engine.check("source", {"path": str(BUNDLES / "offline_fixture"), "digest": None}).result is None
        assert calls == []
        answer = engine.decide("source", {"path": str(BUNDLES / "offline_fixture"), "digest": None}, build)
        assert answer.result is not None
    ((decision_id, recorded, admitted),) = calls
    assert decision_id == answer.decision.decision_id
    assert recorded[-1] == (decision_id, "allow")
    assert len(recorded) == 5
    assert admitted[-1] == "environment_source_admitted"
    assert admitted.count("environment_source_admitted") == 1


# covers: A09
def test_nothing_is_staged_from_a_source_bundle_that_was_not_admitted(tmp_path: Path, cache: Path) -> None:
    settings = Settings(state=tmp_path / "state", cache=cache)
    into = tmp_path / "into"
    into.mkdir()
    with Engine(settings, now=lambda: MOMENT) as engine:
        for name in ("hash_mismatch", "license_review_required", "no_network_section", "no_sandbox_section"):
            engine.admit(BUNDLES / name, into)
            assert list(into.iterdir()) == []
        assert engine.admit(BUNDLES / "offline_fixture", into).result is not None
    (staged,) = [path for path in into.rglob("*") if path.is_file()]  # the control
    assert staged.name == "contacts-1"
    assert [one["outcome"] for one in decisions(settings.state)] == ["deny", "confirm", "deny", "deny", "allow"]
