"""`Engine.build`: an admitted source bundle becomes an environment as a whole, or nothing is there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from admission_adapters.environments.build import build_environment
from engine.engine import AsyncEngine, Engine
from engine.errors import WorkError
from engine.flow import Context
from engine.model import Outcome, Permit
from engine.record.layout import EVENTS
from engine.record.verify import verify
from engine.settings import Settings
from tests.command import Command, lines, measured
from tests.conftest import BUNDLES, ROOT
from tests.environments.bundles import CONTACTS, DOCUMENTS, MOMENT, bundle, contacts, events
from tests.expect import refused, there

MATERIAL = ROOT / "fixtures" / "material"
FILES = ["base.sqlite", "current.sqlite", "environment.json", "trajectory.jsonl"]


@pytest.fixture(scope="module")
def engine(module_settings: Settings) -> Iterator[Engine]:
    with Engine(module_settings, now=lambda: MOMENT) as opened:
        yield opened


def rows(database: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as opened:
        return opened.execute(query).fetchall()


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


# covers: A39.1, A41.1
def test_admitted_contacts_become_a_database(settings: Settings, tmp_path: Path) -> None:
    with Engine(settings, now=lambda: MOMENT) as engine:
        answer = engine.build(MATERIAL / "contacts", tmp_path / "into")
    assert (answer.decision.point, answer.decision.outcome, answer.fault) == ("environment", "allow", None)
    folder = tmp_path / "into" / CONTACTS
    assert left(folder) == FILES
    assert rows(folder / "base.sqlite", "SELECT id, name, phone, tags FROM contacts ORDER BY id")[::4] == [
        ("1", "Ada Example", "", '["supplier","vip"]'),
        ("c-5", "Eve Ejemplo", "+34 600 000 000", "[]"),
    ]
    assert stat.S_IMODE((folder / "base.sqlite").stat().st_mode) == 0o400
    assert answer.result is not None
    about = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
    assert about["base_sha256"] == answer.result.facts["sha256"]
    assert about["decision_id"] == answer.decision.decision_id
    told = [(one["event"], one["source_id"], one["origin_alias"], one["policy_outcome"]) for one in events(settings)]
    assert told == [
        ("environment_source_admitted", "contacts-1", "acme-contacts-1", "allow"),
        ("environment_source_admitted", "contacts-2", "acme-contacts-2", "allow"),
    ]
    assert [one["point"] for one in lines(settings.state) if one["kind"] == "decision"] == ["source", "environment"]
    assert verify(settings.state).ok


def test_text_becomes_a_full_text_search(engine: Engine, tmp_path: Path) -> None:
    """The second environment uses the same seam: only its row, its reader, its tables and its tools differ."""
    assert engine.build(MATERIAL / "documents", tmp_path).result is not None
    found = rows(tmp_path / DOCUMENTS / "base.sqlite", "SELECT id FROM documents WHERE documents MATCH 'zurich'")
    assert found == [("faq",)]


# covers: A09, A41.2
@pytest.mark.parametrize("name", ["hash_mismatch", "license_review_required", "no_sandbox_section", "unknown_license"])
def test_a_refused_source_bundle_builds_nothing(name: str, settings: Settings, tmp_path: Path) -> None:
    with Engine(settings, now=lambda: MOMENT) as engine:
        answer = engine.build(BUNDLES / name, tmp_path / "into")
    assert (answer.decision.point, answer.result) == ("source", None)
    assert answer.decision.outcome is not Outcome.ALLOW
    assert left(tmp_path / "into") == []
    assert {one["event"] for one in events(settings)} == {"environment_source_rejected"}


A = '{"id": 1, "name": "Ada"}'
UNFIT: dict[str, bytes] = {
    "no_list": A.encode(),
    "empty": b"",
    "no_contacts": b"[]",
    "not_json": b"id,name\n1,Ada\n",
    "half": b'[{"id": 1, "name": "A',
    "text_beside": f"[{A}] x".encode(),
    "duplicate_key": b'[{"id": 1, "name": "Ada", "name": "Eve"}]',
    "duplicate_id": f"[{A}, {A}]".encode(),
    "duplicate_id_as_text": f'[{A}, {{"id": "1", "name": "Eve"}}]'.encode(),
    "nan": b'[{"id": NaN, "name": "Ada"}]',
    "infinity": b'[{"id": 1e999, "name": "Ada"}]',
    "id_is_fraction": b'[{"id": 1.0, "name": "Ada"}]',
    "id_is_boolean": b'[{"id": true, "name": "Ada"}]',
    "id_is_null": b'[{"id": null, "name": "Ada"}]',
    "id_is_empty": b'[{"id": "", "name": "Ada"}]',
    "id_is_long": json.dumps([{"id": "x" * 129, "name": "Ada"}]).encode(),
    "id_is_beyond_2_53": b'[{"id": 9007199254740993, "name": "Ada"}]',
    "no_id": b'[{"name": "Ada"}]',
    "no_name": b'[{"id": 1}]',
    "name_is_empty": b'[{"id": 1, "name": ""}]',
    "name_is_blank": b'[{"id": 1, "name": " \\u00a0"}]',
    "name_is_list": b'[{"id": 1, "name": ["Ada"]}]',
    "email_is_null": b'[{"id": 1, "name": "Ada", "email": null}]',
    "tags_are_text": b'[{"id": 1, "name": "Ada", "tags": "vip"}]',
    "tag_is_number": b'[{"id": 1, "name": "Ada", "tags": [1]}]',
    "unknown_field": b'[{"id": 1, "name": "Ada", "password": "x"}]',
    "contact_is_text": f'[{A}, "Eve"]'.encode(),
    "deep": b"[" * 100_000,
    "nested": b'[{"id": 1, "name": "Ada", "tags": [[["vip"]]]}]',
    "latin_1": '[{"id": 1, "name": "Zoë"}]'.encode("latin-1"),
    "utf_16": f"[{A}]".encode("utf-16"),
    "byte_order_mark": f"[{A}]".encode("utf-8-sig"),
    "surrogate": b'[{"id": 1, "name": "\\ud800"}]',
    "surrogate_in_a_tag": b'[{"id": 1, "name": "Ada", "tags": ["\\udfff"]}]',
    "number_of_many_digits": b'[{"id": ' + b"9" * 5_000 + b', "name": "Ada"}]',
    "empty_contact": b"[{}]",
    "tag_is_object": b'[{"id": 1, "name": "Ada", "tags": [{}]}]',
    "two_million_values": b"[" + b"[]," * 2_000_000 + b"[]]",
    "duplicate_key_deeper": b'[{"id": 1, "name": "Ada", "note": {"a": 1, "a": 2}}]',
    "nul_byte": b'[{"id": 1, "name": "Ada\x00"}]',
}


@pytest.mark.parametrize("name", UNFIT)
def test_contacts_that_do_not_fit_build_nothing(name: str, engine: Engine, tmp_path: Path) -> None:
    """Beside good contacts: one record that does not fit refuses all."""
    answer = engine.build(
        bundle(tmp_path / "b", contacts(3).replace(b'"id": ', b'"id": 10'), UNFIT[name]), tmp_path / "i"
    )
    assert [(one.code, one.subject) for one in answer.decision.findings] == [("material_unfit", "records/r-1")]
    assert left(tmp_path / "i") == []


TEXTS: dict[str, tuple[str, str]] = {
    "=1+1": ("formula_in_text", "formula"),
    " =1+1": ("formula_in_text", "formula after a space"),
    "@SUM(A1)": ("formula_in_text", "at"),
    "+SUM(A1)": ("formula_in_text", "plus"),
    "-2+3+cmd|' /C calc'!A0": ("formula_in_text", "minus"),
    "\t=1": ("formula_in_text", "tab"),
    "\x1b[2J": ("control_character", "escape"),
    "a\x7f": ("control_character", "delete"),
    "a\x85": ("control_character", "c1"),
    "a\u202eb": ("control_character", "right to left"),
    "a\u200bb": ("control_character", "zero width"),
    "a\x00": ("control_character", "nul"),
}


@pytest.mark.parametrize("text", TEXTS, ids=[words.replace(" ", "_") for _, words in TEXTS.values()])
def test_executable_text_builds_nothing(text: str, engine: Engine, tmp_path: Path) -> None:
    content = json.dumps([{"id": 1, "name": "Ada", "note": text}]).encode()
    answer = engine.build(bundle(tmp_path / "b", content), tmp_path / "i")
    assert [one.code for one in answer.decision.findings] == [TEXTS[text][0]]
    assert left(tmp_path / "i") == []


@pytest.mark.parametrize("text", ["+44 20 7946 0000", "-", "a=b", "O'Brien; DROP TABLE contacts", "日本\n語", "1 - 2"])
def test_ordinary_texts_are_kept_as_they_are(text: str, engine: Engine, tmp_path: Path) -> None:
    content = json.dumps([{"id": 1, "name": "Ada", "note": text}]).encode()
    assert engine.build(bundle(tmp_path / "b", content), tmp_path / "i").result is not None
    assert rows(tmp_path / "i" / CONTACTS / "base.sqlite", "SELECT note FROM contacts") == [(text,)]


@pytest.mark.full
def test_more_rows_than_admitted_are_refused(engine: Engine, tmp_path: Path) -> None:
    answer = engine.build(bundle(tmp_path / "b", contacts(200_001)), tmp_path / "i")
    assert [one.code for one in answer.decision.findings] == ["too_many_rows"]
    assert left(tmp_path / "i") == []


def test_material_beyond_the_read_limit_is_refused(settings: Settings, tmp_path: Path) -> None:
    small = Settings(state=settings.state, cache=settings.cache, read=settings.read.__class__(document_bytes=4_000))
    with Engine(small, now=lambda: MOMENT) as engine:
        one, two = contacts(20), contacts(90).replace(b'"id": ', b'"id": 77')
        answer = engine.build(bundle(tmp_path / "b", one, two), tmp_path / "i")
    assert "material_unfit" in {one.code for one in answer.decision.findings}
    assert left(tmp_path / "i") == []


def test_a_database_that_becomes_too_large_is_not_kept(settings: Settings, tmp_path: Path) -> None:
    limit = f"environments.environments.{CONTACTS}.limits.database_bytes=20000"
    with Engine(settings, now=lambda: MOMENT, values=(limit,)) as engine:
        answer = engine.build(bundle(tmp_path / "b", contacts(2_000)), tmp_path / "i")
    assert answer.fault is not None
    assert (answer.decision.outcome, answer.fault.code) == (Outcome.ALLOW, "engine.environment_not_built")
    assert left(tmp_path / "i") == []


# covers: A41.2
def test_a_source_bundle_that_changes_after_its_admission_is_refused(settings: Settings, tmp_path: Path) -> None:
    source = bundle(tmp_path / "b", contacts(3))

    def change(what: str, *_: int) -> None:
        if what == "recording":
            (source / "content" / "0.dat").write_bytes(contacts(4))

    with Engine(settings, now=lambda: MOMENT, progress=change) as engine:
        answer = engine.build(source, tmp_path / "i")
    assert [one.code for one in answer.decision.findings] == ["source_changed"]
    assert left(tmp_path / "i") == []
    assert [one["event"] for one in events(settings)] == ["environment_source_rejected"]


def test_a_content_that_is_gone_after_the_admission_is_refused(settings: Settings, tmp_path: Path) -> None:
    source = bundle(tmp_path / "b", contacts(3), b'[{"id": 7, "name": "Ada"}]')

    def remove(what: str, *_: int) -> None:
        if what == "reading material":
            (source / "content" / "0.dat").unlink(missing_ok=True)

    with Engine(settings, now=lambda: MOMENT, progress=remove) as engine:
        answer = engine.build(source, tmp_path / "i")
    assert [(one.code, one.subject) for one in answer.decision.findings] == [("content_changed", "records/r-0")]
    assert left(tmp_path / "i") == []
    assert {one["event"] for one in events(settings)} == {"environment_source_rejected"}


def test_a_source_changed_after_the_decision_does_not_change_the_build(settings: Settings, tmp_path: Path) -> None:
    source, recorded = bundle(tmp_path / "b", contacts(3)), []

    def change(what: str, *_: int) -> None:
        recorded.append(what)
        if recorded.count("recording") == 2:
            (source / "content" / "0.dat").write_bytes(contacts(9))

    with Engine(settings, now=lambda: MOMENT, progress=change) as engine:
        assert engine.build(source, tmp_path / "i").result is not None
    assert len((source / "content" / "0.dat").read_bytes()) > len(contacts(3))  # the control: it was changed
    assert rows(tmp_path / "i" / CONTACTS / "base.sqlite", "SELECT count(*) FROM contacts") == [(3,)]


@pytest.mark.parametrize("found", ["folder", "empty_folder", "file", "link"])
def test_a_target_that_exists_is_left_alone(found: str, engine: Engine, tmp_path: Path) -> None:
    target = tmp_path / "i" / CONTACTS
    target.parent.mkdir()
    if found == "file":
        target.write_text("kept", encoding="utf-8")
    elif found == "link":
        target.symlink_to(tmp_path / "elsewhere")
    else:
        target.mkdir()
        if found == "folder":
            (target / "kept").write_text("kept", encoding="utf-8")
    answer = engine.build(MATERIAL / "contacts", tmp_path / "i")
    assert answer.fault is not None
    assert answer.fault.code == "engine.environment_exists"
    assert left(tmp_path / "i") == [CONTACTS]
    assert left(target) == (["kept"] if found == "folder" else []) if found != "file" else target.read_text() == "kept"


def test_a_key_is_free_again_after_a_failed_build_and_keeps_a_refusal(engine: Engine, tmp_path: Path) -> None:
    key, target = Context(idempotency_key="failed"), tmp_path / "i" / CONTACTS
    target.mkdir(parents=True)
    assert there(engine.build(MATERIAL / "contacts", tmp_path / "i", context=key).fault).code == (
        "engine.environment_exists"
    )
    target.rmdir()
    assert engine.build(MATERIAL / "contacts", tmp_path / "i", context=key).fault is None
    assert left(target) == FILES
    key = Context(idempotency_key="refused")
    first, again = (engine.build(BUNDLES / "unknown_license", tmp_path / "u", context=key) for _ in range(2))
    assert (first.decision.outcome, first.decision, again.result) == (Outcome.DENY, again.decision, None)


@pytest.mark.parametrize("into", ["/proc/environments", "file", "link"])
def test_a_target_that_cannot_be_written_gets_nothing(into: str, engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path)
    before = left(tmp_path)
    answer = engine.build(MATERIAL / "contacts", tmp_path / into)
    assert answer.fault is not None
    assert answer.fault.code == "engine.work_failed"
    assert left(tmp_path) == before


@pytest.mark.parametrize("into", [".", "content/made", "../link"])
@pytest.mark.parametrize("verb", ["admit", "build"])
def test_nothing_is_written_into_the_source_bundle_itself(verb: str, into: str, engine: Engine, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(MATERIAL / "contacts", bundle)
    (tmp_path / "link").symlink_to(bundle / "content")
    before = left(bundle)
    answer = getattr(engine, verb)(bundle, bundle / into)
    assert (answer.decision.outcome, [one.code for one in answer.decision.findings]) == (
        Outcome.DENY,
        ["engine.request_invalid"],
    )
    assert (left(bundle), left(bundle / "content")) == (before, left(MATERIAL / "contacts" / "content"))


@pytest.mark.parametrize("verb", ["admit", "build"])
def test_a_path_with_nul_is_denied(verb: str, engine: Engine, tmp_path: Path) -> None:
    for path, into in ((Path("a\0b"), tmp_path), (MATERIAL / "contacts", tmp_path / "a\0b")):
        answer = getattr(engine, verb)(path, into)
        codes = [one.code for one in answer.decision.findings]
        assert codes == ["engine.input_unreadable"] or there(answer.fault).code == "engine.work_failed"


@pytest.mark.full
def test_a_full_disk_leaves_nothing(engine: Engine, tmp_path: Path) -> None:
    """No file may grow beyond a limit, as on a disk that is full; the record of the refusal is smaller."""
    program = f"""
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from tests.environments.bundles import MOMENT
from engine.engine import Engine
from engine.settings import Settings
from pathlib import Path
settings = Settings(state=Path({str(tmp_path / "state")!r}), cache=Path({str(engine.settings.cache)!r}))
with Engine(settings, now=lambda: MOMENT) as engine:
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
    answer = engine.build({str(bundle(tmp_path / "b", contacts(30_000)))!r}, {str(tmp_path / "i")!r})
    print(answer.fault.code, answer.fault.message)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=_own(), capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("engine.work_failed the folder cannot be written")
    assert left(tmp_path / "i") == []


@pytest.mark.full(after=1)
@pytest.mark.parametrize("at", ["create 1", "create 3", "rename 1"])
def test_a_process_that_is_killed_while_it_builds_leaves_no_environment(
    at: str, engine: Engine, tmp_path: Path
) -> None:
    name, number = at.split()
    program = f"""
import os, signal
from admission_adapters.files import drafts
from tests.environments.bundles import MOMENT
from engine.engine import Engine
from engine.settings import Settings
from pathlib import Path
calls, place = [], drafts if {name!r} == "create" else os
real = getattr(place, {name!r})
def killed(*given, **named):
    calls.append(1)
    if len(calls) == {number}:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*given, **named)
settings = Settings(state=Path({str(tmp_path / "state")!r}), cache=Path({str(engine.settings.cache)!r}))
with Engine(settings, now=lambda: MOMENT) as engine:
    setattr(place, {name!r}, killed)
    engine.build({str(MATERIAL / "contacts")!r}, {str(tmp_path / "i")!r})
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=_own(), capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert [name[:7] for name in left(tmp_path / "i")] == [".draft-"]
    assert engine.build(MATERIAL / "contacts", tmp_path / "i").result is not None
    assert left(tmp_path / "i") == [CONTACTS]


def _own() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/adapters"} | measured()


def test_no_permit_of_another_decision_builds(engine: Engine, tmp_path: Path) -> None:
    kept: list[tuple[Permit, str]] = []

    def keep(permit: Permit, job: Any) -> Any:
        kept.append((permit, job.input_digest))
        raise WorkError("only looked", remedy="none")

    engine.decide("source", {"path": str(MATERIAL / "contacts"), "digest": None}, keep)
    permit, input_digest = kept[0]
    with refused(WorkError, "engine.permit_missing"):
        build_environment(tmp_path / "i", permit, input_digest, lambda _: (), "sha256:" + "ab" * 32)
    assert left(tmp_path / "i") == []


def test_a_request_cannot_claim_an_admitted_source(engine: Engine) -> None:
    asked = {"path": str(MATERIAL / "contacts"), "digest": "sha256:" + "ab" * 32}
    assert [one.code for one in engine.decide("environment", asked).decision.findings] == ["source_not_admitted"]
    answer = engine.decide("environment", asked | {"admitted": {"digest": asked["digest"], "records": {}}})
    assert answer.decision.outcome is Outcome.DENY


async def _built(settings: Settings, into: Path) -> Any:
    async with AsyncEngine(settings, now=lambda: MOMENT) as engine:
        return await engine.build(MATERIAL / "contacts", into)


def test_the_async_engine_builds_an_environment(settings: Settings, tmp_path: Path) -> None:
    import asyncio

    assert asyncio.run(_built(settings, tmp_path / "i")).result is not None
    assert left(tmp_path / "i" / CONTACTS) == FILES


# covers: A42
def test_events_name_no_host_address_path_or_content(settings: Settings, tmp_path: Path) -> None:
    with Engine(settings, now=lambda: MOMENT) as engine:
        engine.build(MATERIAL / "contacts", tmp_path / "i")
        engine.build(MATERIAL / "contact_of_wrong_type", tmp_path / "i")
    text = b"".join(path.read_bytes() for path in (settings.state / EVENTS).parent.glob(f"{Path(EVENTS).stem[:13]}*"))
    assert text.count(b"environment_source_") == 3
    for word in (b"Ada", b"example", b"https", b"content/", b"london", b"material/"):
        assert word not in text


def test_the_build_command_prints_the_folder_and_reports_errors(command: Command, tmp_path: Path) -> None:
    done = command("build", MATERIAL / "contacts", "--into", tmp_path / "i", "--format", "json")
    assert (done.code, done.json["environment"]["folder"]) == (0, str(tmp_path / "i" / CONTACTS))
    again = command("build", MATERIAL / "contacts", "--into", tmp_path / "i")
    assert (again.code, "is `contacts_sqlite` in this folder already" in again.stderr) == (2, True)
    unfit = command("build", MATERIAL / "contact_with_formula", "--into", tmp_path / "j")
    assert (unfit.code, "formula_in_text" in unfit.stdout, "nothing was built" in unfit.stdout) == (1, True, True)
    changed = command("build", MATERIAL / "contacts", "--into", tmp_path / "j", "--digest", "sha256:" + "ab" * 32)
    assert (changed.code, "bundle_changed" in changed.stdout, left(tmp_path / "j")) == (1, True, [])
    odd = command("build", MATERIAL / "contacts", "--into", tmp_path / "j", "--digest", "ab")
    assert odd.code == 2
