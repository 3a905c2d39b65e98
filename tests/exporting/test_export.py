"""Samples leave only with admitted provenance and without secrets, private data and text of others; all or none."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cases.run import changed
from engine.engine import AsyncEngine, Engine
from engine.errors import GatherError, WorkError
from engine.exporting import Exported
from engine.facts.text.blocks import WORDS, apart_from, blocks_of, content_words, source_texts, windows_of
from engine.facts.text.content import private_in, redacted_content, secrets_in
from engine.facts.text.quotes import words_of
from engine.points.export import MOST
from engine.points.source import SourceLimits
from engine.settings import Settings
from tests.command import Command, written
from tests.conftest import BUNDLES, FORMS
from tests.expect import there

ARTICLE = (
    "In the harbour town every winter the fishers mend their nets in the long blue hall while the bakers of the market "
    "street carry warm bread to them and nobody is asked for money until the first boat returns in spring"
)


class World:
    """An engine that has admitted two source bundles: one for export, and one for internal use only."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine, self.folder = engine, folder
        self.open = self._admitted(BUNDLES / "offline_fixture")
        inside = changed(BUNDLES / "offline_fixture", folder / "inside", (), {"export_license": None})
        (inside / "content" / "contacts.json").write_text(json.dumps([{"note": ARTICLE}]), encoding="utf-8")
        self.inside = self._admitted(self._hashed(inside))

    def _hashed(self, bundle: Path) -> Path:
        from hashlib import sha256

        found = sha256((bundle / "content" / "contacts.json").read_bytes()).hexdigest()
        fields = {"records.0.sha256": found, "license_decisions.0.sha256": found, "id": "inside"}
        return changed(bundle, self.folder / "hashed", (), fields)

    def _admitted(self, bundle: Path) -> str:
        answer = self.engine.admit(bundle, self.folder / "admitted")
        limits = answer.decision.limits
        assert isinstance(limits, SourceLimits), answer.decision.findings
        return limits.bundle_digest

    def sample(self, content: Any, source: str | None = None, **fields: Any) -> dict[str, Any]:
        origin = {"source": source or self.open, "record": "contacts-1"}
        return {
            "kind": "synthetic",
            "provenance": [origin],
            "treatment": "fixture",
            "content": content,
        } | fields

    def export(self, path: Path, *samples: Any) -> Exported:
        asked = path.with_name(f"{path.name}.samples")
        asked.write_text("".join(json.dumps(one) + "\n" for one in samples), encoding="utf-8")
        return self.engine.export(asked, path)


@pytest.fixture(scope="module")
def world(module_settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with Engine(module_settings) as engine:
        yield World(engine, tmp_path_factory.mktemp("sources"))


def codes(done: Exported) -> set[tuple[str | None, str]]:
    return {(finding.subject, finding.code) for one in done.refused for finding in one.decision.findings}


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.suffix != ".samples"}


# covers: A89, A90.1
def test_an_exported_sample_keeps_its_provenance_and_its_kind(world: World, tmp_path: Path) -> None:
    done = world.export(tmp_path / "out.jsonl", world.sample({"q": "Where?", "a": "In Quito."}))
    assert (done.file, done.samples, done.exit) == (tmp_path / "out.jsonl", 1, 0)
    line = json.loads((tmp_path / "out.jsonl").read_text(encoding="utf-8"))
    row = there(world.engine.store().source_record(world.open, "contacts-1"))
    origin = {"source": world.open, "record": "contacts-1", "kind": "fixture", "sha256": row.sha256}
    assert line == {
        "kind": "synthetic",
        "treatment": "fixture",
        "provenance": [origin],
        "content": {"q": "Where?", "a": "In Quito."},
    }
    assert (tmp_path / "out.jsonl").stat().st_size == done.bytes


# covers: A91.3
def test_text_of_a_source_for_internal_use_does_not_leave(world: World, tmp_path: Path) -> None:
    quoting = world.sample({"a": f"They say: {ARTICLE.upper()}"})
    own_words = world.sample({"a": "In winter the fishers of that town repair nets, and bread is free until spring."})
    done = world.export(tmp_path / "out.jsonl", own_words, quoting, world.sample({"text": "x"}, source=world.inside))
    assert codes(done) == {
        ("samples/2", "licensed_text_in_sample"),
        ("samples/3", "sample_source_not_for_export"),
    }
    assert files(tmp_path) == set()
    notes = {name: note for one in done.refused for name, note in there(one.gathered).notes.items()}
    words = notes["samples/2"].partition(" ")[0]
    assert notes["samples/2"] == f"{words} words of contacts-1 of {world.inside[:15]}… (not for export)"
    assert int(words) > WORDS
    assert world.export(tmp_path / "out.jsonl", own_words).exit == 0  # the control


# covers: A91
def test_more_records_than_facts_have_room_for_are_refused_unless_all_their_words_are_those_of_a_named_one(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.points.export._MOST_SHARED", 1)
    header, quote = "these eight words stand above each last file", "those eight words stand below two other files"
    row = there(world.engine.store().source_record(world.open, "contacts-1"))
    for name, text in {"named": header, "first": f"{header} {quote} x", "second": f"{header} {quote} y"}.items():
        world.engine.store().add_source_record(replace(row, record=name), blocks_of(words_of(text)))
    sample = world.sample({"text": header}, provenance=[{"source": world.open, "record": "named"}])
    assert world.export(tmp_path / "header.jsonl", sample).exit == 0
    done = world.export(tmp_path / "out.jsonl", sample | {"content": {"text": quote}})
    assert codes(done) == {("samples/1", "licensed_text_in_sample")}
    assert [there(one.gathered).notes for one in done.refused] == [
        {"samples/1": "text of more than 1 admitted records"}
    ]
    monkeypatch.undo()
    assert world.export(tmp_path / "out.jsonl", sample | {"content": {"text": quote}}).exit == 0


# covers: A89, A13, A16
def test_the_terms_of_a_source_are_checked_again_at_export(
    module_settings: Settings, world: World, tmp_path: Path
) -> None:
    asked, last = tmp_path / "a.samples", datetime(2035, 11, 2, 23, 59, 59, tzinfo=UTC)
    asked.write_text(json.dumps(world.sample({"q": "Where?"})), encoding="utf-8")

    def found(now: datetime, *values: str) -> set[tuple[str | None, str]]:
        with Engine(module_settings, now=lambda: now, values=values) as engine:
            return codes(engine.export(asked, tmp_path / "out.jsonl"))

    refused = "licenses.licenses.CC-BY-4.0.decision=refuse"
    assert found(last, refused) == {("samples/1", "sample_source_license_refused")}
    assert found(last + timedelta(seconds=1)) == {("samples/1", "sample_source_expired")}
    assert files(tmp_path) == set()
    assert found(last) == set()  # the control


# covers: A92.1
def test_redaction_is_done_under_the_permit(world: World, tmp_path: Path) -> None:
    sample = world.sample({"to": "ana.lopez@example.org", "card": 4111111111111111, "n": 3}, treatment="redact")
    assert world.export(tmp_path / "out.jsonl", sample).exit == 0
    line = json.loads((tmp_path / "out.jsonl").read_text(encoding="utf-8"))
    assert line["content"] == {"to": "[redacted]", "card": "[redacted]", "n": 3}


# covers: A92.1
@pytest.mark.parametrize(
    "text",
    ["sorted(rows, key=lambda row: row.total)", "see commit 3f786850e387550fdab836ed7e6dc881de23001b",
     "call_9f86d0819f86d0819f86d0819f86d081", "The password must have twelve characters.",
     "3.14159265358979323846264338327950288419716939937510", "data:image/png;base64,iVBORw0KGgo" + "Ab3x" * 20],
)  # fmt: skip
def test_redaction_leaves_what_is_no_secret_and_nobodys(text: str) -> None:
    assert redacted_content([text, f"{text} of ana.lopez@example.org"]) == [text, f"{text} of [redacted]"]


@pytest.mark.parametrize(
    "text", ["password=swordfish", "4111 1111 1111 1111", "AKIAIOSFODNN7EXAMPLF", "AKIAIOSFODNN7EXAMPLF a@example.org"]
)
def test_redaction_takes_out_every_secret(text: str) -> None:
    clean = redacted_content({text: [text]})
    assert not secrets_in(clean, FORMS)
    assert not private_in(clean)


def test_many_redacted_keys_stay_as_many_and_short() -> None:
    clean = redacted_content({f"a{number}@example.org": number for number in range(5_000)})
    assert sorted(clean.values()) == [*range(5_000)]
    assert max(map(len, clean)) < 20


def test_distinct_redacted_keys_stay_distinct() -> None:
    assert redacted_content({"a@example.org": 1, "b@example.org": 2}) == {"[redacted]": 1, "[redacted]+": 2}


# covers: A91
def test_nothing_is_written_if_a_later_sample_is_refused_and_the_rest_is_looked_at(
    world: World, tmp_path: Path
) -> None:
    good, bad = world.sample({"text": "fine"}), world.sample({"text": "key ghp_16C7e42F292c6912E7710c838347Ae178B4a"})
    done = world.export(tmp_path / "out.jsonl", *[good] * MOST, bad, *[good] * MOST, bad)
    assert codes(done) == {(f"samples/{MOST + 1}", "secret_in_sample"), (f"samples/{2 * MOST + 2}", "secret_in_sample")}
    assert done.samples == 2 * MOST + 2
    assert [one.decision.mode for one in done.refused] == ["enforce", "check"]
    assert files(tmp_path) == set()


def test_a_file_that_exists_is_left_as_it_is(world: World, tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text("mine", encoding="utf-8")
    with pytest.raises(GatherError, match="exists"):
        world.export(tmp_path / "out.jsonl", world.sample({"text": "fine"}))
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(GatherError, match="exists"):
        world.export(tmp_path / "link.jsonl", world.sample({"text": "fine"}))
    assert files(tmp_path) == {"out.jsonl", "link.jsonl"}
    assert (tmp_path / "out.jsonl").read_text(encoding="utf-8") == "mine"


def test_a_concurrently_created_file_is_not_replaced(tmp_path: Path) -> None:
    from admission_adapters.files.exports import ExportFile

    with ExportFile(tmp_path / "out.jsonl") as file:
        (tmp_path / "out.jsonl").write_text("mine", encoding="utf-8")
        with pytest.raises(WorkError, match="exists"):
            file.finish()
    assert files(tmp_path) == {"out.jsonl"}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "is not JSON"),
        ("[]", "not a JSON object"),
        ("\ufeff{}", "begins with a byte order mark"),
        ('{"kind": "synthetic", "kind": "external"}', "key"),
        ('{"kind": "synthetic", "provenance": [], "treatment": null}', "`content` is missing"),
        ('{"messages": []}', "`messages` is not a known field"),
        ('{"id": "7", "kind": "synthetic", "provenance": [], "treatment": null, "content": {}}', "`id` is not a known"),
        ('{"kind": "synthetic", "provenance": [], "treatment": "none", "content": {}}', "`treatment` must be"),
        ('{"kind": "synthetic", "provenance": [], "treatment": null, "content": "hi"}', "`content` must be an object"),
        (
            '{"kind": "a", "provenance": [{"source": "b", "record": "c"}], "treatment": null, "content": {}}',
            "0.source`",
        ),
        ("ÿ", "is not JSON"),
        ("\udcff", "is not UTF-8"),
    ],
)
def test_a_malformed_sample_is_reported_by_its_line_and_nothing_is_written(
    world: World, tmp_path: Path, line: str, problem: str
) -> None:
    asked = tmp_path / "in.samples"
    asked.write_text(f"{json.dumps(world.sample({'text': 'fine'}))}\n{line}\n", "utf-8", "surrogateescape")
    with pytest.raises(GatherError, match=problem) as raised:
        world.engine.export(asked, tmp_path / "out.jsonl")
    assert there(raised.value.where).line == 2
    assert files(tmp_path) == set()


def test_a_sample_with_another_treatment_is_told_that_null_is_one(world: World, tmp_path: Path) -> None:
    asked = tmp_path / "in.samples"
    asked.write_text(json.dumps(world.sample({"text": "fine"}) | {"treatment": "none"}), "utf-8")
    with pytest.raises(GatherError) as raised:
        world.engine.export(asked, tmp_path / "out.jsonl")
    assert "treatment (redact, fixture or null)" in raised.value.remedy


def test_parquet_has_the_same_rows(world: World, tmp_path: Path) -> None:
    from pyarrow import parquet

    done = world.export(tmp_path / "out.Parquet", world.sample({"a": 1}), world.sample({"b": ["c"]}))
    assert done.exit == 0
    rows = parquet.read_table(tmp_path / "out.Parquet").to_pylist()
    assert [(row["kind"], json.loads(row["content"])) for row in rows] == [
        ("synthetic", {"a": 1}),
        ("synthetic", {"b": ["c"]}),
    ]
    assert rows[0]["provenance"][0]["record"] == "contacts-1"


def test_parquet_without_its_package_is_refused(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(GatherError, match="Parquet") as raised:
        world.export(tmp_path / "out.parquet", world.sample({"text": "fine"}))
    assert "admission-engine[parquet]" in raised.value.remedy
    assert files(tmp_path) == set()


def test_no_text_of_a_sample_or_source_is_recorded(world: World, tmp_path: Path) -> None:
    world.export(
        tmp_path / "out.jsonl", world.sample({"text": "a canary called Zebedee"}), world.sample({"Zebedee": ARTICLE})
    )
    state = world.engine.settings.state
    assert not any(word in written(state) for word in (b"Zebedee", b"harbour"))


def test_content_that_changes_after_the_decision_is_not_noted(world: World, tmp_path: Path) -> None:
    bundle = changed(BUNDLES / "offline_fixture", tmp_path / "bundle", (), {"id": "changing"})

    def change(what: str, *_: object) -> None:
        if what == "recording":
            (bundle / "content" / "contacts.json").write_text("[]", encoding="utf-8")

    with Engine(world.engine.settings, progress=change) as engine:
        answer = engine.admit(bundle, tmp_path / "admitted")
        assert there(answer.fault).code == "engine.bundle_changed"
        limits = answer.decision.limits
        assert isinstance(limits, SourceLimits)
        assert engine.store().source_record(limits.bundle_digest, "contacts-1") is None


async def _async_export(settings: Settings, asked: Path, into: Path) -> Exported:
    async with AsyncEngine(settings) as engine:
        return await engine.export(asked, into)


def test_the_async_engine_exports_alike(world: World, tmp_path: Path) -> None:
    import asyncio

    asked = tmp_path / "in.samples"
    asked.write_text(json.dumps(world.sample({"text": "fine"})) + "\n", encoding="utf-8")
    done = asyncio.run(_async_export(world.engine.settings, asked, tmp_path / "out.jsonl"))
    assert done.exit == 0
    assert files(tmp_path) == {"out.jsonl"}


def test_the_command_names_the_line_of_what_it_refuses(command: Command, tmp_path: Path) -> None:
    asked = tmp_path / "samples.jsonl"
    empty: dict[str, Any] = {"kind": "synthetic", "provenance": [], "treatment": None, "content": {"text": "x"}}
    asked.write_text(f"\n{json.dumps(empty)}\n", encoding="utf-8")
    done = command("export", str(asked), "--into", str(tmp_path / "out.jsonl"))
    assert done.code == 1
    assert "sample_without_provenance" in done.stdout
    assert "samples.jsonl:2" in done.stdout
    assert "nothing was written" in done.stdout
    assert not (tmp_path / "out.jsonl").exists()


def test_a_source_bundle_without_an_environment_is_admitted_by_a_command_and_exported(
    command: Command, tmp_path: Path
) -> None:
    bundle = changed(BUNDLES / "offline_fixture", tmp_path / "bundle", (), {"environment": "repo-tasks"})
    admitted = command("source", "admit", str(bundle), "--into", str(tmp_path / "admitted"), "--format", "json")
    source = admitted.json["admitted"]["source"]
    assert (tmp_path / "admitted" / source.removeprefix("sha256:") / "contacts-1").is_file()
    sample = {"kind": "synthetic", "treatment": "fixture", "content": {"text": "x"}}
    asked = tmp_path / "samples.jsonl"
    asked.write_text(
        json.dumps(sample | {"provenance": [{"source": source, "record": "contacts-1"}]}), encoding="utf-8"
    )
    assert command("export", str(asked), "--into", str(tmp_path / "out.jsonl")).code == 0


def test_the_commands_that_admit_name_the_approval_that_they_wait_for(command: Command, tmp_path: Path) -> None:
    bundle = changed(
        BUNDLES / "offline_fixture", tmp_path / "bundle", (), {"license_decisions.0.decision": "review_required"}
    )
    for words in (("source", "admit"), ("build",)):
        waiting = command(*words, str(bundle), "--into", str(tmp_path / "into"), "--principal", "pipeline")
        asked = waiting.stdout.partition("engine approvals grant ")[2].split()[0]
        assert waiting.code == 3
        assert command("approvals", "grant", asked).code == 0
        more = ("--principal", "pipeline", "--approval", asked)
        assert command(*words, str(bundle), "--into", str(tmp_path / "into"), *more).code == 0


def test_a_refused_source_bundle_is_not_admitted(command: Command, tmp_path: Path) -> None:
    bundle = changed(BUNDLES / "offline_fixture", tmp_path / "bundle", (), {"purpose": "sell"})
    refused = command("source", "admit", str(bundle), "--into", str(tmp_path / "admitted"))
    assert (refused.code, refused.stdout.endswith("nothing was admitted\n")) == (1, True)
    assert not (tmp_path / "admitted").exists()


def test_the_command_names_the_texts_of_a_sample_that_have_a_secret_or_private_data(
    command: Command, tmp_path: Path
) -> None:
    bundle, key = BUNDLES / "offline_fixture", "ghp_" + "a1B2" * 9
    admitted = command("source", "admit", str(bundle), "--into", str(tmp_path / "admitted"), "--format", "json")
    source = admitted.json["admitted"]["source"]
    turns = [{"role": "user", "text": "hello"}, {"role": "tool", "text": f"export GH_TOKEN={key}"}]
    content = {"turns": turns, key: 1, "jane@acme.example": {"password": "swordfish"}, "by": "jane@acme.example"}
    sample = {"kind": "synthetic", "treatment": None, "content": content}
    asked = tmp_path / "samples.jsonl"
    asked.write_text(
        json.dumps(sample | {"provenance": [{"source": source, "record": "contacts-1"}]}), encoding="utf-8"
    )
    done = command("export", str(asked), "--into", str(tmp_path / "out.jsonl"))
    shown = " ".join(done.stdout.split())
    assert "found: secret in the name content.*, content.*.password, content.turns.1.text" in shown
    assert "private data in content.by, the name content.*" in shown
    assert all(text not in done.stdout for text in (key, "jane", "swordfish"))


@given(st.lists(st.sampled_from("abcdefghij"), min_size=2 * WORDS - 1, max_size=60), st.integers(0, 40))
def test_any_run_of_fifteen_words_contains_a_block(words: list[str], start: int) -> None:
    run = tuple(words[start : start + 2 * WORDS - 1])
    if len(run) == 2 * WORDS - 1:
        assert set(blocks_of(words)) & set(windows_of(("x", *run, "y")))


@given(st.lists(st.sampled_from("abc"), max_size=40), st.lists(st.sampled_from("abc"), max_size=40))
def test_windows_with_a_word_in_no_known_block_are_apart(words: list[str], source: list[str]) -> None:
    windows, known = windows_of(tuple(words)), set(blocks_of(source))
    covered = {at + i for at, window in enumerate(windows) if window in known for i in range(WORDS)}
    bare = [window for at, window in enumerate(windows) if not covered.issuperset(range(at, at + WORDS))]
    assert list(apart_from(known, windows)) == bare


def words_in(source: str) -> list[str]:
    return [word for text in source_texts(io.BytesIO(source.encode())) for word in words_of(text)]


@given(st.lists(st.text(max_size=30), max_size=6))
def test_json_and_lines_of_json_have_the_words_of_their_strings(texts: list[str]) -> None:
    wanted = [word for text in texts for word in words_of(text)]
    for data in (json.dumps({"key": texts}), "".join(json.dumps({"key": text}) + "\n" for text in texts)):
        assert words_in(data) == wanted


# covers: A91.3
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_text_of_a_source_is_compared_in_each_encoding(encoding: str) -> None:
    mark = "\ufeff" if encoding in {"utf-16-le", "utf-16-be"} else ""
    source = io.BytesIO((mark + "Süße Früchte für Bär\r\n" * 30_000).encode(encoding))
    found = [word for text in source_texts(source) for word in words_of(text)]
    assert found == ["süsse", "früchte", "für", "bär"] * 30_000


def test_JSON_with_a_byte_order_mark_is_read_as_JSON() -> None:  # noqa: N802
    source = io.BytesIO(json.dumps({"key": "S\u00fc\u00dfe"}, indent=1).encode("utf-8-sig"))
    assert [*source_texts(source)] == ["Süße"]


# covers: A91.3
@pytest.mark.parametrize("ascii_only", [True, False])
def test_text_in_JSON_within_a_text_is_compared_too(ascii_only: bool) -> None:  # noqa: FBT001, N802
    lines = "S\u00fc\u00dfe Fr\u00fcchte\nf\u00fcr B\u00e4r\n" * 3
    within = json.dumps({"arguments": json.dumps({"text": lines}, ensure_ascii=ascii_only)})
    assert " ".join(words_of(lines)) in " ".join(content_words(json.loads(within)))


# covers: A91.3
def test_text_under_a_repeated_key_is_compared_too() -> None:
    assert set(words_of(ARTICLE)) <= set(words_in(f'{{"note": "{ARTICLE}", "note": "a note"}}'))


@pytest.mark.parametrize("source", [{"note": ARTICLE}, {ARTICLE: "a note"}])
@pytest.mark.parametrize("sample", [{"a": ARTICLE}, {"notes": [{ARTICLE: 1}]}])
def test_text_in_a_key_is_compared_too(source: dict[str, str], sample: dict[str, Any]) -> None:
    assert set(blocks_of(words_in(json.dumps(source)))) & set(windows_of(content_words(sample)))
