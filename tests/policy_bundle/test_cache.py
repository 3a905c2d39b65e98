"""After any change of the cache, with or without its note, no decision carries a revision of other content."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.documents.canonical import canonical, digest
from engine.errors import DecideError
from engine.opa.packed import MANIFEST, pack, unpacked
from engine.policy_bundle import archives
from engine.policy_bundle.build import PolicyBundle
from engine.policy_bundle.sources import PolicySources
from tests.opa.served import files, serving
from tests.policy_bundle.trees import built, codes, source, write

GPL = source([{"id": "one", "license": "GPL-2.0-only"}])
RULE = "admission/requirements/source/license.rego"


def open_rules(files: dict[str, bytes]) -> dict[str, bytes]:
    """The rules with one that admits everything."""
    return {**files, RULE: files[RULE].replace(b'record.license == "MIT"', b"record.id == record.id")}


LOWERED = {"level": "warn", "owner": "owner@example.org", "reason": "a test", "until": "2100-01-01"}


def other_values(files: dict[str, bytes]) -> dict[str, bytes]:
    data = json.loads(files["policy/data.json"])
    return {**files, "policy/data.json": canonical({**data, "levels": {"levels": {"source": {"admitted": LOWERED}}}})}


def tamper(archive: Path, change: Callable[[dict[str, bytes]], dict[str, bytes]], *, restated: bool = False) -> None:
    """Change an archive and its note together; `restated` gives its manifest the revision of the new content."""
    files = change(unpacked(archive.read_bytes(), archive.name))
    if restated:
        stated = json.loads(files.pop(MANIFEST))
        files[MANIFEST] = archives.manifest(files, stated["roots"][0], stated.get("metadata", {}))[0]
    archive.write_bytes(pack(files))
    note_again(archive.parent)


def note_again(folder: Path) -> None:
    digests = {path.name: digest(path.read_bytes()) for path in folder.iterdir() if path.name != "note.json"}
    (folder / "note.json").write_text(json.dumps(digests), encoding="utf-8")


def serve(policy: PolicyBundle) -> list[tuple[str, str | None]]:
    """What the policy finds in a record under the GPL, asked of a server."""
    with serving(files(policy)) as server:
        return codes(server.ask("decision", GPL).result)


@pytest.fixture
def sources(tmp_path: Path) -> PolicySources:
    return write(tmp_path / "tree")


REFUSED = [("admitted", "records/one")]


def test_an_archive_changed_together_with_its_note_is_rebuilt(sources: PolicySources, tmp_path: Path) -> None:
    approved = built(sources, tmp_path / "cache")
    assert serve(approved) == REFUSED
    tamper(approved.rules.path, open_rules)
    again = built(sources, tmp_path / "cache")
    assert again.revisions == approved.revisions
    assert serve(again) == REFUSED


def test_values_changed_together_with_their_note_are_rebuilt(sources: PolicySources, tmp_path: Path) -> None:
    approved = built(sources, tmp_path / "cache")
    tamper(approved.values.path, other_values)
    again = built(sources, tmp_path / "cache")
    assert again.revisions == approved.revisions
    assert again.data == approved.data
    assert "levels" not in again.data["levels"].get("levels", {}).get("source", {})


@pytest.mark.parametrize(("part", "change"), [("rules", open_rules), ("values", other_values)])
def test_an_archive_changed_after_the_build_is_never_served(
    part: str, change: Callable[[dict[str, bytes]], dict[str, bytes]], sources: PolicySources, tmp_path: Path
) -> None:
    """Between the build and the start of OPA; its own manifest still states the approved revision."""
    policy = built(sources, tmp_path / "cache")
    tamper(getattr(policy, part).path, change)
    with pytest.raises(DecideError, match="not the one that was built") as caught:
        serve(policy)
    assert caught.value.code == "policy_stale"


@pytest.mark.parametrize(("part", "change"), [("rules", open_rules), ("values", other_values)])
def test_a_revision_is_always_of_the_content(
    part: str, change: Callable[[dict[str, bytes]], dict[str, bytes]], sources: PolicySources, tmp_path: Path
) -> None:
    """A manifest that was changed too states another revision: never the approved one."""
    approved = built(sources, tmp_path / "cache")
    tamper(getattr(approved, part).path, change, restated=True)
    again = built(sources, tmp_path / "cache")
    assert getattr(again.revisions, part) != getattr(approved.revisions, part)
    with pytest.raises(DecideError, match="not the one that was built"):
        serve(approved)


def test_a_changed_catalogue_is_rebuilt(sources: PolicySources, tmp_path: Path) -> None:
    """The words of findings are under the revision of the rules too."""
    approved = built(sources, tmp_path / "cache")
    catalogue = approved.rules.path.with_name("catalogue.json")
    catalogue.write_bytes(catalogue.read_bytes().replace(b"What to do", b"Ask nobody"))
    note_again(catalogue.parent)
    again = built(sources, tmp_path / "cache")
    assert again.catalogue == approved.catalogue
    assert again.revisions == approved.revisions


def test_facts_come_from_the_values_that_are_served(sources: PolicySources, tmp_path: Path) -> None:
    """What gathering reads of the values is what was proven, whatever becomes of the cache."""
    policy = built(sources, tmp_path / "cache")
    shutil.rmtree(policy.values.path.parent)
    assert policy.data["licenses"]["licenses"]["MIT"] == "admit"
    assert policy.row(("licenses", "most")).value == 5


@pytest.mark.parametrize("folder", ["policy", "policy/rules"])
def test_a_cache_that_others_may_write_to_is_refused(folder: str, sources: PolicySources, tmp_path: Path) -> None:
    built(sources, tmp_path / "cache")
    (tmp_path / "cache" / folder).chmod(0o777)
    with pytest.raises(DecideError, match="others may write") as caught:
        built(sources, tmp_path / "cache")
    assert caught.value.code == "engine.policy_cache"
