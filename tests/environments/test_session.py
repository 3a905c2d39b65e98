"""A built environment through the tool gate: queries, side effects, and what undoes them."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from admission_adapters.environments.contacts import Contacts
from admission_adapters.environments.held import OpenEnvironment
from admission_adapters.environments.session import EnvironmentSession
from admission_adapters.tools.gate import ToolGate
from admission_adapters.tools.result import ToolResult
from engine.engine import AsyncEngine, Engine
from engine.errors import GatherError, WorkError
from engine.model import Outcome
from engine.settings import Settings
from tests.command import lines, measured
from tests.conftest import ROOT
from tests.environments.bundles import AGENT, CONTACTS, DOCUMENTS, MOMENT, OPTIONS
from tests.expect import refused, there

MATERIAL = ROOT / "fixtures" / "material"


@pytest.fixture(scope="module")
def engine(module_settings: Settings) -> Iterator[Engine]:
    with Engine(module_settings, now=lambda: MOMENT) as opened:
        yield opened


@pytest.fixture(scope="module")
def built(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("built")
    for name in ("contacts", "documents"):
        assert engine.build(MATERIAL / name, into).result is not None
    return into


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    """A copy of the contacts environment for one test."""
    return shutil.copytree(built / CONTACTS, tmp_path / CONTACTS)


@pytest.fixture
def session(engine: Engine, folder: Path) -> Iterator[EnvironmentSession]:
    with engine.open_environment(folder, AGENT, **OPTIONS) as opened:
        yield opened


def call(session: EnvironmentSession, operation: str, environment: str = CONTACTS, /, **arguments: Any) -> ToolResult:
    return session.call({"name": f"{environment}_{operation}", "arguments": arguments})


def done(answer: Any) -> dict[str, Any]:
    """What came of an act that was allowed."""
    assert answer.result is not None, answer.decision.findings
    facts: dict[str, Any] = answer.result.facts
    return facts


def codes(answer: Any) -> list[str]:
    return [one.code for one in answer.decision.findings]


def found(result: ToolResult) -> Any:
    assert result.status == "ok", result
    return json.loads(result.content)


def test_the_curated_tools_are_shown_and_answer(session: EnvironmentSession) -> None:
    shown = [one["name"].removeprefix(f"{CONTACTS}_") for one in session.visible()]
    assert shown == ["add", "delete", "get", "search", "update"]
    assert found(call(session, "search", search="EXAMPLE.ORG"))["total"] == 2
    assert found(call(session, "search", search="", limit=1))["contacts"][0]["name"] == "Ada Example"
    assert found(call(session, "get", id="c-5"))["phone"] == "+34 600 000 000"
    assert session.trajectory == []  # reading changes nothing


def test_an_environment_is_unusable_after_its_retention_date(
    engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = datetime(2035, 11, 2, 23, 59, 59, tzinfo=UTC).timestamp()
    with engine.open_environment(folder, AGENT, **OPTIONS) as session:
        monkeypatch.setattr(time, "time", lambda: last)
        assert found(call(session, "get", id="c-5"))["id"] == "c-5"
        monkeypatch.setattr(time, "time", lambda: last + 1)
        for operation, arguments in (("search", {"search": ""}), ("get", {"id": "c-5"}), ("delete", {"id": "c-5"})):
            assert call(session, operation, **arguments).status != "ok"
        assert getattr(session.checkpoint().fault, "code", None) == "engine.environment_expired"
        assert session.trajectory == []
    with refused(WorkError, "engine.environment_expired"):
        OpenEnvironment(folder)


@pytest.mark.parametrize("query", ["' OR 1=1 --", "%", "_", "x'); DROP TABLE contacts; --", '"', "\\"])
def test_a_query_is_matched_literally(query: str, session: EnvironmentSession) -> None:
    assert found(call(session, "search", search=query)) == {"total": 0, "contacts": []}
    assert session.verify() == []


def test_documents_are_searched_by_words(engine: Engine, built: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(built / DOCUMENTS, tmp_path / DOCUMENTS)
    with engine.open_environment(copy, AGENT, **OPTIONS) as session:
        assert [one["name"] for one in session.visible()] == [f"{DOCUMENTS}_get", f"{DOCUMENTS}_search"]
        ids = {
            query: [one["id"] for one in found(call(session, "search", DOCUMENTS, search=query))["documents"]]
            for query in ("zurich", "decides", "permit server", "decides NOT record", 'text:"permit"', "perm*", "NEAR(")
        }
        assert ids == {
            "zurich": ["faq"],
            "decides": ["faq", "handbook"],
            "permit server": ["handbook"],
            "decides NOT record": [],
            'text:"permit"': [],
            "perm*": [],
            "NEAR(": [],
        }
        assert call(session, "search", DOCUMENTS, search="!?").code == "no_words"
        assert found(call(session, "get", DOCUMENTS, id="handbook"))["title"] == "Handbook"
        assert call(session, "get", DOCUMENTS, id="nothing").code == "document_missing"
        assert call(session, "delete", DOCUMENTS, id="handbook").status == "refused"
        assert session.verify() == []


# covers: A07, A08.2
def test_a_delete_is_recorded_and_restored(settings: Settings, tmp_path: Path) -> None:
    """From the source bundle to the side effect, all in one record."""
    with Engine(settings, now=lambda: MOMENT) as engine:
        engine.build(MATERIAL / "contacts", tmp_path)
        with engine.open_environment(tmp_path / CONTACTS, AGENT, **OPTIONS) as session:
            assert found(call(session, "add", id="n-1", name="Nia", tags=["new"]))["tags"] == ["new"]
            assert found(call(session, "update", id="n-1", city="Bern"))["city"] == "Bern"
            assert found(call(session, "delete", id="1")) == {"deleted": "1"}
            assert call(session, "get", id="1").code == "contact_missing"
            (kept,) = [line["name"] for line in session.trajectory if line["event"] == "undo_point"]
            done(session.restore(kept))
            assert found(call(session, "get", id="1"))["name"] == "Ada Example"
            assert found(call(session, "get", id="n-1"))["city"] == "Bern"  # only the delete is undone
            done(session.reset())
            assert call(session, "get", id="n-1").code == "contact_missing"
            assert session.verify() == []
            told = [(line["event"], line.get("effect"), line["rows"]) for line in session.trajectory]
    assert told == [
        ("changed", "add-1", 6),
        ("changed", "update-2", 6),
        ("undo_point", None, 6),
        ("changed", "delete-4", 5),
        ("restored", None, 6),
        ("reset", None, 5),
    ]
    recorded = [line for line in lines(settings.state) if line["kind"] == "result" and "side_effects" in line["facts"]]
    effects = [(one["class"], one["id"]) for line in recorded for one in line["facts"]["side_effects"]]
    assert effects == [("write", "add-1"), ("write", "update-2"), ("destructive", "delete-4")]
    text = (tmp_path / CONTACTS / "trajectory.jsonl").read_text(encoding="utf-8")
    assert not any(word in text for word in ("Nia", "Ada", "Bern", "n-1"))


# covers: A08.3, H22
def test_only_a_checkpoint_that_the_engine_holds_admits_a_delete(engine: Engine, folder: Path) -> None:
    delete = {"name": f"{CONTACTS}_delete", "arguments": {"id": "1"}}
    with OpenEnvironment(folder) as environment:
        definition = {"name": delete["name"], "input_schema": {"type": "object"}}
        asked = {"call": delete, "policy": "environment", "profile": "environment", "definition": definition}
        held = engine.hold(environment.held)

        def refusals(state: Any) -> list[str]:
            return codes(engine.decide("tool_call", {**asked, "environment": state}))

        irreversible = ["irreversible_destructive_action"]
        assert refusals({"reset": True, "checkpoint": True}) == irreversible
        assert refusals({"held": "another"}) == irreversible
        assert refusals({"held": held}) == irreversible
        name = environment.checkpoint()["name"]
        assert refusals({"held": held}) == []
        kept = folder / name
        kept.chmod(0o600)
        kept.write_bytes(kept.read_bytes()[:-1] + b"x")
        assert refusals({"held": held}) == irreversible  # what would be restored is another file
        kept.unlink()
        assert refusals({"held": held}) == irreversible
        assert environment.undo_point() != name
        assert refusals({"held": held}) == []
        engine.forget_environment(held)
        assert refusals({"held": held}) == irreversible


@pytest.mark.parametrize("what", ["nothing", "a folder", "a link", "a pipe", "another file"])
def test_only_the_original_checkpoint_file_is_restored(what: str, folder: Path, tmp_path: Path) -> None:
    with OpenEnvironment(folder) as environment:
        name = environment.checkpoint()["name"]
        assert environment.held(name).restorable
        kept = folder / name
        moved = kept.rename(tmp_path / name)
        if what == "a folder":
            kept.mkdir()
        elif what == "a link":
            kept.symlink_to(moved)
        elif what == "a pipe":
            os.mkfifo(kept)
        elif what == "another file":
            kept.write_bytes(moved.read_bytes() + b"x")
        assert not environment.held(name).restorable
        with pytest.raises(WorkError) as missing:
            environment.restore(name)
        assert missing.value.code == "engine.checkpoint_missing"
        assert environment.verify() == []
        if kept.is_dir():
            kept.rmdir()
        kept.unlink(missing_ok=True)
        moved.rename(kept)
        assert environment.restore(name)["event"] == "restored"


def test_a_checkpoint_of_an_earlier_state_does_not_count(session: EnvironmentSession) -> None:
    session.checkpoint()
    call(session, "add", id="n-1", name="Nia")
    assert found(call(session, "delete", id="1")) == {"deleted": "1"}
    assert [line["event"] for line in session.trajectory] == ["checkpoint", "changed", "undo_point", "changed"]


def test_a_delete_can_be_undone_alone_though_another_thread_wrote_after_its_decision(
    engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, late = OpenEnvironment.held, ["c-late"]

    def held(environment: OpenEnvironment, checkpoint: str | None) -> Any:
        facts = real(environment, checkpoint)
        if facts.checkpoint and late:
            with ThreadPoolExecutor(1) as other:
                assert other.submit(call, running, "add", id=late.pop(), name="Late").result(60).status == "ok"
        return facts

    monkeypatch.setattr(OpenEnvironment, "held", held)
    with engine.open_environment(folder, AGENT, **OPTIONS) as running:
        assert found(call(running, "delete", id="c-5")) == {"deleted": "c-5"}
        assert late == []
        running.restore(next(line["name"] for line in reversed(running.trajectory) if line["event"] == "undo_point"))
        assert [found(call(running, "get", id=id_))["id"] for id_ in ("c-5", "c-late")] == ["c-5", "c-late"]


@pytest.mark.parametrize("what", ["empty", "missing"])
def test_a_folder_without_an_environment_is_reported(what: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    if what == "empty":
        folder.mkdir()
    with pytest.raises(GatherError, match="no environment at this path") as caught:
        OpenEnvironment(folder)
    assert "engine build" in caught.value.remedy


@pytest.mark.parametrize("tools", [{"contacts_sqlite_get": ["get"]}, ["get"], None])
def test_a_description_of_tools_in_another_type_is_refused(tools: Any, folder: Path) -> None:
    file = folder / "environment.json"
    known = json.loads(file.read_text(encoding="utf-8"))
    file.chmod(0o600)
    file.write_text(json.dumps(known | {"tools": tools}), encoding="utf-8")
    with refused(WorkError, "engine.environment_changed"):
        OpenEnvironment(folder)


def test_the_oldest_checkpoints_are_removed(session: EnvironmentSession, folder: Path) -> None:
    names = [done(session.checkpoint())["name"] for _ in range(10)]
    assert sorted(path.name for path in folder.glob("checkpoint-*")) == sorted(names[2:])
    done(session.restore(names[2]))
    for gone in (names[0], "base.sqlite", "../contacts_sqlite/current.sqlite", ""):
        assert codes(session.restore(gone)) == ["state_not_held"]


def test_calls_remove_no_checkpoint_of_the_program(session: EnvironmentSession, folder: Path) -> None:
    kept = done(session.checkpoint())["name"]
    for number in range(10):
        call(session, "add", id=f"n-{number}", name="Nia")
        assert call(session, "delete", id="nobody").code == "contact_missing"
    assert len(list(folder.glob("checkpoint-*"))) == 9
    done(session.restore(kept))
    assert session.verify() == []


def test_wrong_arguments_change_nothing(session: EnvironmentSession) -> None:
    refusals = {
        "exists": call(session, "add", id="1", name="Eve").code,
        "missing": call(session, "update", id="nobody", name="Eve").code,
        "nobody": call(session, "delete", id="nobody").code,
        "unknown field": call(session, "update", id="1", unknown="x").status,
        "number": call(session, "update", id="1", name=7).status,
        "no name": call(session, "add", id="n-1").status,
    }
    assert refusals == {
        "exists": "contact_exists",
        "missing": "contact_missing",
        "nobody": "contact_missing",
        "unknown field": "refused",
        "number": "refused",
        "no name": "refused",
    }
    assert "changed" not in {line["event"] for line in session.trajectory}
    assert session.verify() == []


def test_tools_work_only_within_a_permitted_call(folder: Path) -> None:
    with OpenEnvironment(folder) as environment, refused(WorkError, "engine.permit_missing"):
        Contacts(environment).delete("1")
    with OpenEnvironment(folder) as environment:
        assert (environment.trajectory, environment.verify()) == ([], [])


def test_an_open_environment_cannot_be_opened_again(session: EnvironmentSession, folder: Path) -> None:
    assert session.verify() == []
    with refused(WorkError, "engine.environment_in_use"):
        OpenEnvironment(folder)


def test_without_a_policy_nothing_may_be_called(engine: Engine, folder: Path) -> None:
    with engine.open_environment(folder, AGENT) as session:
        assert session.visible() == []
        assert call(session, "get", id="1").status == "refused"


def test_an_implementation_that_was_not_reviewed_is_refused(settings: Settings, folder: Path) -> None:
    other = f'tools.tools.{CONTACTS}_get.curated=["sha256:{"ab" * 32}"]'
    with Engine(settings, now=lambda: MOMENT, values=(other,)) as engine:
        with pytest.raises(WorkError) as caught, engine.open_environment(folder, AGENT, **OPTIONS):
            pass
        assert caught.value.code == "engine.tool_not_registered"
        assert "implementation reviewed" in caught.value.remedy  # as the finding says
        OpenEnvironment(folder).__exit__()  # it is not in use any more


def _rewritten(name: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / name
        path.chmod(0o600)
        path.write_text(json.dumps(change(json.loads(path.read_text(encoding="utf-8")))), encoding="utf-8")

    return apply


def _sql(*statements: str) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        with closing(sqlite3.connect(folder / "current.sqlite", isolation_level=None)) as database:
            for statement in statements:
                database.execute(statement)

    return apply


def _bytes(name: str, data: bytes) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        (folder / name).chmod(0o600)
        (folder / name).write_bytes(data)

    return apply


def _linked(folder: Path) -> None:
    (folder / "current.sqlite").rename(folder.parent / "elsewhere")
    (folder / "current.sqlite").symlink_to(folder.parent / "elsewhere")


def _told(**changes: Any) -> Callable[[Path], None]:
    """A trajectory of one line, which is well formed but for these changes."""
    line = {"line": 1, "event": "recovered", "state": 0, "rows": 5, "previous": ""} | changes
    return _bytes("trajectory.jsonl", json.dumps({k: v for k, v in line.items() if v is not None}).encode() + b"\n")


def _damaged(folder: Path) -> None:
    """Other bytes in every page but the first, as a disk may leave them; it counts as a change of the file."""
    with (folder / "current.sqlite").open("r+b") as file:
        data = file.read()
        file.seek(24)
        file.write(b"\xff" * 4)
        file.seek(4096)
        file.write(b"\xa5" * (len(data) - 4096))


CHANGED: dict[str, Callable[[Path], None]] = {
    "base": _bytes("base.sqlite", b"x"),
    "base_of_another_description": _rewritten("environment.json", lambda it: it | {"base_sha256": "ab" * 32}),
    "description": _bytes("environment.json", b"{"),
    "description_without_rows": _rewritten("environment.json", lambda it: it | {"rows": "5"}),
    "description_of_another_kind": _rewritten("environment.json", lambda it: it | {"holds": "secrets"}),
    "database": _bytes("current.sqlite", b"not a database at all" * 1000),
    "database_is_link": _linked,
    "trigger": _sql("CREATE TRIGGER t AFTER DELETE ON contacts BEGIN DELETE FROM contacts; END"),
    "another_table": _sql("CREATE TABLE more (id)"),
    "row_less": _sql("DELETE FROM contacts WHERE id = '1'"),
    "state": _sql("UPDATE environment_state SET line = 7"),
    "no_state": _sql("DELETE FROM environment_state"),
    "trajectory": _bytes("trajectory.jsonl", b'{"line":1,"event":"changed","state":1,"rows":5,"previous":"x"}\n'),
    "trajectory_is_nonsense": _bytes("trajectory.jsonl", b"[" * 5000 + b"\n"),
    "description_of_another_format": _rewritten("environment.json", lambda it: it | {"format": 2}),
    "database_is_damaged": _damaged,
    "state_is_text": _sql("UPDATE environment_state SET line = 'one'"),
    "two_states": _sql("INSERT INTO environment_state VALUES (0)"),
    "line_of_another_number": _told(line=2),
    "line_after_another": _told(previous="ab" * 32),
    "line_with_a_state_in_text": _told(state="0"),
    "line_with_a_number_of_rows_in_text": _told(rows="5"),
    "line_without_event": _told(event=None),
    "line_with_an_event_in_a_list": _told(event=["checkpoint"]),
    "line_with_a_name_in_a_list": _told(event="checkpoint", name=["base.sqlite"]),
}


@pytest.mark.parametrize("name", CHANGED)
def test_an_environment_that_something_else_changed_is_not_opened(name: str, folder: Path) -> None:
    CHANGED[name](folder)
    with refused(WorkError, "engine.environment_changed"):
        OpenEnvironment(folder)


def test_a_description_cannot_give_a_tool_another_operation(engine: Engine, folder: Path) -> None:
    """A tool that the policy knows as reading cannot delete: its side effects would be others."""
    _rewritten("environment.json", lambda it: it | {"tools": {f"{CONTACTS}_get": "delete"}})(folder)
    with refused(WorkError, "engine.tool_not_registered"), engine.open_environment(folder, AGENT, **OPTIONS):
        pass


def test_the_verifier_sees_what_another_program_changed(session: EnvironmentSession, folder: Path) -> None:
    assert session.verify() == []
    _sql("DELETE FROM contacts WHERE id = '1'")(folder)
    assert session.verify() == ["the rows are not those that the trajectory leads to"]
    _bytes("base.sqlite", b"x")(folder)
    _bytes("trajectory.jsonl", b"{}\n")(folder)
    assert len(session.verify()) == 3


def test_a_trajectory_that_is_well_formed_is_read(folder: Path) -> None:
    """The control of those that are not; a checkpoint that it has no name or digest of is none."""
    for more in ({}, {"event": "checkpoint"}, {"event": "checkpoint", "name": "base.sqlite"}):
        _told(**more)(folder)
        with OpenEnvironment(folder) as environment:
            assert (len(environment.trajectory), environment.verify()) == (1, [])
            assert environment.held("base.sqlite").restorable is False
            assert environment.held(None).checkpoint is False


def test_the_verifier_sees_other_tables_and_a_damaged_database(session: EnvironmentSession, folder: Path) -> None:
    _sql("CREATE TABLE more (id)")(folder)
    assert session.verify() == ["the tables are not those that were built"]
    _damaged(folder)
    assert session.verify() == ["the database is damaged"]


def test_the_verifier_sees_a_line_that_was_changed_or_taken_out(session: EnvironmentSession, folder: Path) -> None:
    for number in range(3):
        call(session, "add", id=f"n-{number}", name="Nia")
    path, changed = folder / "trajectory.jsonl", ["the trajectory was changed by another program"]
    whole = path.read_bytes()
    first, second, third = whole.splitlines(keepends=True)
    for data in (second + third, first + second + third.replace(b"}", b" }"), first + second, whole + third):
        path.write_bytes(data)
        assert session.verify() == changed
    path.write_bytes(whole)
    assert session.verify() == []


def test_a_partially_written_trajectory_line_is_rolled_back(
    session: EnvironmentSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call(session, "add", id="n-1", name="Nia")
    before, real = (folder / "trajectory.jsonl").read_bytes(), os.pwrite
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", lambda file, data, at: real(file, data[:20], at))
        assert call(session, "add", id="n-2", name="Nia").status != "ok"
    assert (folder / "trajectory.jsonl").read_bytes() == before
    assert call(session, "get", id="n-2").code == "contact_missing"
    assert session.verify() == []


def test_a_file_that_changes_while_it_is_restored_is_not_put_in_place(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenEnvironment(folder) as environment:
        name = environment.checkpoint()["name"]
        real = OpenEnvironment._intact

        def changed_afterwards(self: OpenEnvironment, asked: str) -> Any:
            found = real(self, asked)
            (folder / asked).chmod(0o600)
            (folder / asked).write_bytes((folder / "base.sqlite").read_bytes() + b"x")
            return found

        monkeypatch.setattr(OpenEnvironment, "_intact", changed_afterwards)
        with refused(WorkError, "engine.environment_changed"):
            environment.restore(name)
        assert environment.verify() == []
        assert [line["event"] for line in environment.trajectory] == ["checkpoint"]
    with OpenEnvironment(folder) as environment:
        (folder / "base.sqlite").chmod(0o600)
        (folder / "base.sqlite").write_bytes(b"x")
        with refused(WorkError, "engine.environment_changed"):
            environment.reset()


@pytest.mark.parametrize("where", ["before the commit", "in a line", "in a restore"])
def test_a_killed_process_leaves_a_state_consistent_with_the_trajectory(
    where: str, engine: Engine, folder: Path
) -> None:
    program = f"""
import os, signal, sqlite3
from pathlib import Path
from admission_adapters.environments import held, trajectory
from admission_adapters.tools.effects import Effects, recording
from admission_adapters.environments.contacts import Contacts
def kill(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
where = {where!r}
with held.OpenEnvironment(Path({str(folder)!r})) as environment, recording(Effects()):
    name = environment.checkpoint()["name"]
    contacts = Contacts(environment)
    contacts.add("n-1", "Nia")
    environment.undo_point()  # as before a call
    real = trajectory.Trajectory.append
    if where == "before the commit":
        trajectory.Trajectory.append = lambda *given, **named: (real(*given, **named), kill())
    if where == "in a line":
        pwrite = os.pwrite
        os.pwrite = lambda file, data, at: (pwrite(file, data[:20], at), kill())
    if where == "in a restore":
        held.os.rename = kill
        environment.restore(name)
    contacts.delete("1")
"""
    own = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/adapters"} | measured()
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=own, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with engine.open_environment(folder, AGENT, **OPTIONS) as session:
        assert found(call(session, "get", id="1"))["name"] == "Ada Example"
        assert found(call(session, "get", id="n-1"))["name"] == "Nia"
        assert session.verify() == []
        events = [line["event"] for line in session.trajectory]
        last = {
            "before the commit": ["changed", "recovered"],
            "in a line": [],
            "in a restore": ["restored", "recovered"],
        }
        assert events == ["checkpoint", "changed", "undo_point", *last[where]]


def test_a_disk_that_is_full_changes_nothing(session: EnvironmentSession, folder: Path) -> None:
    """Without room for a checkpoint, a delete is refused."""
    (folder / "checkpoint-1.sqlite").mkdir()
    assert call(session, "delete", id="1").code == "irreversible_destructive_action"
    (folder / "checkpoint-1.sqlite").rmdir()
    assert found(call(session, "delete", id="1")) == {"deleted": "1"}


def test_the_gate_of_another_registry_cannot_use_the_checkpoint(session: EnvironmentSession, engine: Engine) -> None:
    """A gate that names no environment is told to have none."""
    from admission_adapters.tools.registry import UncuratedToolRegistry

    registry = UncuratedToolRegistry()
    registry.add(f"{CONTACTS}_delete", str, {"name": f"{CONTACTS}_delete", "input_schema": {"type": "object"}})
    session.checkpoint()
    gate = ToolGate(engine, registry, AGENT, **OPTIONS)
    result = gate.call({"name": f"{CONTACTS}_delete", "arguments": {"id": "1"}})
    assert result.code == "irreversible_destructive_action"


def test_an_event_loop_uses_an_environment_and_undoes_its_changes(settings: Settings, folder: Path) -> None:
    async def use() -> list[str]:
        async with (
            AsyncEngine(settings, now=lambda: MOMENT) as engine,
            engine.open_environment(folder, AGENT, **OPTIONS) as session,
        ):
            assert len(await session.visible()) == 5
            kept = done(await session.checkpoint())["name"]
            calls = [{"name": f"{CONTACTS}_add", "arguments": {"id": f"n-{n}", "name": "Nia"}} for n in range(4)]
            added = await asyncio.gather(*map(session.call, calls))
            assert [one.status for one in added] == ["ok"] * 4
            gone = await session.call({"name": f"{CONTACTS}_delete", "arguments": {"id": "1"}})
            assert found(gone) == {"deleted": "1"}
            assert done(await session.restore(kept))["rows"] == 5
            assert codes(await session.restore("checkpoint-99.sqlite")) == ["state_not_held"]
            assert done(await session.reset())["state"] == 0
            assert await session.verify() == []
            return [line["event"] for line in session.trajectory]

    assert asyncio.run(use()) == ["checkpoint", *["changed"] * 4, "undo_point", "changed", "restored", "reset"]
    with OpenEnvironment(folder) as environment:  # it is not in use any more
        assert environment.verify() == []


def test_an_act_that_the_policy_does_not_admit_is_refused(settings: Settings, folder: Path) -> None:
    own = f"environments.environments.{CONTACTS}.acts=[checkpoint]"
    with (
        Engine(settings, now=lambda: MOMENT, values=(own,)) as engine,
        engine.open_environment(folder, AGENT, **OPTIONS) as session,
    ):
        kept = done(session.checkpoint())
        call(session, "add", id="n-1", name="Nia")
        for answer in (session.restore(kept["name"]), session.reset()):
            assert (codes(answer), answer.result) == (["act_not_admitted"], None)
        assert found(call(session, "get", id="n-1"))["name"] == "Nia"
    recorded = [line for line in lines(settings.state) if line.get("point") == "environment_act"]
    assert [(line["input"]["act"], line["outcome"]) for line in recorded] == [
        ("checkpoint", "allow"),
        ("restore", "deny"),
        ("reset", "deny"),
    ]


def test_no_permit_of_another_act_is_accepted(engine: Engine, folder: Path) -> None:
    """The act that was decided on is done, whatever else the executor is asked to do."""
    with engine.open_environment(folder, AGENT, **OPTIONS) as session:
        asked = session._tools.act("reset", None, None)
        other = {**asked.request, "act": "checkpoint"}
        answer = engine.decide(asked.point, other, asked.executor, asked.context)
        assert done(answer)["event"] == "checkpoint"
        refusal = engine.decide("tool_visibility", {"tools": []}, asked.executor, asked.context)
        assert refusal.fault is not None
        assert refusal.fault.code == "engine.permit_missing"
        assert [line["event"] for line in session.trajectory] == ["checkpoint"]


def test_no_permit_for_another_environment_is_accepted(
    engine: Engine, built: Path, folder: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(built / DOCUMENTS, tmp_path / DOCUMENTS)
    with (
        engine.open_environment(folder, AGENT, **OPTIONS) as session,
        engine.open_environment(copy, AGENT, **OPTIONS) as other,
    ):
        asked, theirs = session._tools.act("reset", None, None), other._tools.act("reset", None, None)
        answer = engine.decide(theirs.point, theirs.request, asked.executor, asked.context)
        assert answer.decision.outcome is Outcome.ALLOW
        assert there(answer.fault).code == "engine.limit_unenforceable"
        assert (session.trajectory, other.trajectory) == ([], [])
