"""docs/source-bundles.md, followed from an empty folder to an admitted source bundle."""

from __future__ import annotations

import hashlib
import re
import shlex
from pathlib import Path

import pytest

from engine.facts.archives.source_bundle import LicenseDecision, Record, SourceBundle
from tests.conftest import ROOT
from tests.first_hour.kinds import KINDS, PERSON, ROWS, Kind, card, filled, write
from tests.first_hour.pages import Reader, Step, blocks, steps_in

PAGE = "docs/source-bundles.md"
CONTENT = b'{"title": "Soup"}\n'
HASH = hashlib.sha256(CONTENT).hexdigest()


def test_a_reader_reaches_an_admitted_source_bundle_in_two_checks(tmp_path: Path, cache: Path) -> None:
    document, decision, *_ = blocks(PAGE, "yaml")
    folder = tmp_path / "my-sources"
    (folder / "content").mkdir(parents=True)
    (folder / "content" / "recipes.jsonl").write_bytes(CONTENT)
    reader = Reader(tmp_path, cache, tmp_path)
    said = reader.run("sha256sum my-sources/content/recipes.jsonl").stdout.split()[0]
    (folder / "bundle.yaml").write_text(document, encoding="utf-8")
    assert reader.run("engine source hash my-sources").stdout == "recipes: new hash\n1 changed\n"
    written = (folder / "bundle.yaml").read_text(encoding="utf-8")
    assert written == document.replace("0" * 64, said)
    first = reader.run("engine check my-sources")
    assert re.findall(r"^ *(?:deny|confirm) (\w+)", first.stdout, re.MULTILINE) == ["license_decision_missing"], first
    decided = decision.replace("the same hash as above", said)
    (folder / "bundle.yaml").write_text(written.replace("license_decisions: []\n", decided), encoding="utf-8")
    second = reader.run("engine check my-sources")
    assert (second.returncode, second.stdout.partition(" ")[0]) == (0, "ALLOW"), second
    assert said == HASH


@pytest.mark.full(after=2)
@pytest.mark.parametrize("name", KINDS)
def test_data_of_each_kind_reaches_its_right_end_within_two_checks(name: str, tmp_path: Path, cache: Path) -> None:
    kind, folder = KINDS[name], tmp_path / "my-sources"
    write(kind, folder)
    reader = Reader(tmp_path, cache, tmp_path)
    started = reader.run(shlex.join(["engine", "source", "init", "my-sources", *kind.options]))
    assert started.returncode == 0, started
    first = reader.run("engine check my-sources")
    assert (found(first.stdout), bool(kind.finds)) == ({*kind.finds}, first.returncode != 0), first.stdout
    last = first
    if kind.finds:
        document = folder / "bundle.yaml"
        document.write_text(filled(document.read_text(encoding="utf-8"), kind), encoding="utf-8")
        last = reader.run("engine check my-sources")
    assert (last.stdout.partition(" ")[0].lower(), *found(last.stdout)) == kind.ends, last.stdout


@pytest.mark.full
def test_a_source_bundle_that_a_person_must_approve_reaches_yes_by_the_page(tmp_path: Path, cache: Path) -> None:
    folder = tmp_path / "my-sources"
    write(Kind({"README.md": card("cc-by-sa-4.0"), "data/train.jsonl": ROWS}, PERSON), folder)
    reader = Reader(tmp_path, cache, tmp_path)
    started = reader.run(shlex.join(["engine", "source", "init", "my-sources", *PERSON]))
    assert "next: run `engine check my-sources`" in started.stdout
    section = re.search(
        r"^## Get an approval\n(.*?)^## ", (ROOT / PAGE).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert section is not None
    asked, *rest = steps_in(section[1])
    first = reader.run(asked.command)
    (id_,) = set(re.findall(r"approvals? (?:grant )?(\w{32})$", first.stdout, re.MULTILINE))
    for step, done in [(asked, first), *((step, reader.run(step.command.replace("ID", id_))) for step in rest)]:
        shown = Step(step.command, step.output and step.output.replace("ID", id_))
        assert shown.matches(done.stdout), (step.command, done)


def found(text: str) -> set[str]:
    """The codes of the findings in a report."""
    return set(re.findall(r"^ *(?:deny|confirm|warn) (\w+)$", text, re.MULTILINE))


@pytest.mark.parametrize("model", [SourceBundle, Record, LicenseDecision])
def test_the_page_names_every_field(model: type) -> None:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    assert [name for name in model.model_fields if name not in page] == []  # type: ignore[attr-defined]
