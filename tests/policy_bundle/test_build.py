"""Archives are the same for the same content, and what was built once is used again only when it is whole."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import resource
import tarfile
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.binaries import find_binary
from engine.documents.canonical import digest
from engine.engine import Engine
from engine.errors import DecideError, PolicyError
from engine.opa.command import OpaCommand
from engine.points import Point
from engine.policy_bundle import archives
from engine.policy_bundle.build import PolicyBundle
from engine.policy_bundle.sources import PolicySources
from engine.settings import Settings
from tests.policy_bundle.trees import LIMITS, REQUIREMENTS, Files, built, requirement, topic, write
from tests.processes import limited


@pytest.fixture
def sources(tmp_path: Path) -> PolicySources:
    return write(tmp_path / "tree")


@pytest.fixture
def no_opa(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on, starting OPA is a failure."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("OPA was started")

    monkeypatch.setattr(OpaCommand, "run", fail)


def test_the_same_content_gives_the_same_bytes(sources: PolicySources, tmp_path: Path) -> None:
    """In another cache, from files written in another order at another time."""
    first = built(sources, tmp_path / "one")
    again = write(tmp_path / "again" / "deep", dict(reversed(list(_files(sources).items()))))
    for path in (tmp_path / "again").rglob("*"):
        os.utime(path, (1, 1))
    second = built(again, tmp_path / "two")
    assert first.revisions == second.revisions
    assert first.rules.path.read_bytes() == second.rules.path.read_bytes()
    assert first.values.path.read_bytes() == second.values.path.read_bytes()
    assert first.catalogue == second.catalogue


def _files(sources: PolicySources) -> Files:
    root = sources.rego.parent
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_archives_are_plain(sources: PolicySources, tmp_path: Path) -> None:
    policy = built(sources, tmp_path / "cache")
    for archive, root in ((policy.rules, "admission"), (policy.values, "policy")):
        data = archive.path.read_bytes()
        assert data[4:8] == bytes(4), "no time in the gzip header"
        assert data[3] == 0, "no name in the gzip header"
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(data))) as tar:
            members = tar.getmembers()
        assert [one.name for one in members] == sorted(one.name for one in members)
        assert {(one.mode, one.mtime, one.uid, one.uname, one.type) for one in members} == {(0o644, 0, 0, "", b"0")}
        manifest = json.loads(archives.read(archive.path)[".manifest"])
        assert manifest["roots"] == [root]
        assert manifest["rego_version"] == 2
        assert manifest["revision"] == archive.revision


def test_opa_loads_both_archives(sources: PolicySources, tmp_path: Path) -> None:
    policy = built(sources, tmp_path / "cache")
    opa = OpaCommand(find_binary().path)
    paths = ("--bundle", str(policy.rules.path), "--bundle", str(policy.values.path))
    report = opa.run("eval", *paths, "--format", "json", "data.admission.decision").json()
    assert report["result"][0]["expressions"][0]["value"] == {"outcome": "deny", "findings": []}
    inspected = opa.run("inspect", "--format", "json", str(policy.rules.path)).json()
    assert inspected["manifest"]["revision"] == policy.rules.revision


def test_the_revision_covers_every_byte() -> None:
    files = {"admission/a.rego": b"package a", "admission/b.rego": b"package b"}
    _, first = archives.manifest(files, "admission", {"owner": "x"})
    changed = [
        archives.manifest({**files, "admission/a.rego": b"package a "}, "admission", {"owner": "x"})[1],
        archives.manifest({**files, "admission/c.rego": b""}, "admission", {"owner": "x"})[1],
        archives.manifest({"admission/a.rego": b"package a"}, "admission", {"owner": "x"})[1],
        archives.manifest(files, "admission", {"owner": "y"})[1],
        archives.manifest(files, "policy", {"owner": "x"})[1],
    ]
    assert len({first, *changed}) == len(changed) + 1


def test_an_unchanged_policy_needs_no_opa(
    sources: PolicySources, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    first = built(sources, tmp_path / "cache")
    request.getfixturevalue("no_opa")
    again = built(sources, tmp_path / "cache")
    assert (again.rules, again.values, again.catalogue) == (first.rules, first.values, first.catalogue)


def test_other_values_need_no_opa(sources: PolicySources, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    first = built(sources, tmp_path / "cache")
    request.getfixturevalue("no_opa")
    (sources.policy / "licenses.yaml").write_text("licenses: {}\nmost: 1\n", encoding="utf-8")
    again = built(sources, tmp_path / "cache")
    assert again.rules == first.rules
    assert again.values != first.values


def test_a_start_with_a_kept_policy_makes_no_schema(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    with Engine(settings, points=frozenset({"license"})):
        pass
    monkeypatch.setattr(Point, "input_schema", property(lambda point: made.append(point.name)))
    with Engine(settings, points=frozenset({"license"})):
        assert made == []


@pytest.mark.usefixtures("no_opa")
def test_without_a_cache_opa_is_started(sources: PolicySources, tmp_path: Path) -> None:
    """The control: `no_opa` does notice."""
    with pytest.raises(AssertionError, match="OPA was started"):
        built(sources, tmp_path / "cache")


@pytest.mark.parametrize("file", [f"{REQUIREMENTS}/license.rego", LIMITS, "bundles/house/recipe.yaml"])
def test_a_change_of_any_source_is_seen(file: str, sources: PolicySources, tmp_path: Path) -> None:
    first = built(sources, tmp_path / "cache")
    path = tmp_path / "tree" / file
    path.write_text(
        path.read_text(encoding="utf-8").replace("MIT", "ISC").replace("purpose", "use").replace("small", "tiny"),
        encoding="utf-8",
    )
    assert built(sources, tmp_path / "cache").rules != first.rules


def _damages(policy: PolicyBundle) -> list[Path]:
    return [path for part in (policy.rules, policy.values) for path in sorted(part.path.parent.iterdir())]


@pytest.mark.full
def test_a_damaged_cache_file_is_rebuilt(sources: PolicySources, tmp_path: Path) -> None:
    policy = built(sources, tmp_path / "cache")
    good = {path: path.read_bytes() for path in _damages(policy)}
    assert len(good) == 6
    for path, data in good.items():
        for damaged in (b"", data[:-1], bytes([data[0] ^ 1]) + data[1:], data + b"x", None):
            path.unlink() if damaged is None else path.write_bytes(damaged)
            again = built(sources, tmp_path / "cache")
            assert again.revisions == policy.revisions
            assert {one: one.read_bytes() for one in good} == good, path


def test_a_file_too_many_is_noticed(sources: PolicySources, tmp_path: Path) -> None:
    policy = built(sources, tmp_path / "cache")
    extra = policy.rules.path.with_name("extra")
    extra.write_bytes(b"")
    built(sources, tmp_path / "cache")
    assert not extra.exists()
    assert sorted(path.name for path in policy.rules.path.parent.parent.iterdir()) == [policy.rules.path.parent.name]


def test_a_cache_that_is_not_a_folder_is_reported(sources: PolicySources, tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(b"")
    with pytest.raises(DecideError, match="cannot be used") as caught:
        built(sources, tmp_path / "cache")
    assert "XDG_CACHE_HOME" in caught.value.remedy


@pytest.mark.parametrize("fault", ["missing", "full"])
def test_a_temporary_folder_that_cannot_be_used_is_reported(
    fault: str, sources: PolicySources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "temporary"
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    if fault == "full":
        folder.mkdir()
    with limited(resource.RLIMIT_FSIZE, 100), pytest.raises(DecideError, match=re.escape(f"`{folder}`")) as caught:
        built(sources, tmp_path / "cache")
    assert "TMPDIR" in caught.value.remedy


def test_builds_at_once_agree(sources: PolicySources, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: built(sources, tmp_path / "cache"), range(4)))
    assert len({(one.rules, one.values) for one in made}) == 1
    names = [path.name for path in (tmp_path / "cache" / "policy" / "rules").iterdir()]
    assert names == [made[0].rules.path.parent.name]


def test_unused_cache_entries_are_removed(sources: PolicySources, tmp_path: Path) -> None:
    old = built(sources, tmp_path / "cache")
    kept = tmp_path / "cache/policy/rules/.partial-x"
    kept.mkdir()
    long_ago = time.time() - 40 * 24 * 3600
    for path in (old.rules.path.parent, kept):
        os.utime(path, (long_ago, long_ago))
    (sources.rego / "admission/limits/source.rego").write_text(
        'package admission.limits.source\n\nimport future.keywords.not\n\nlimits := {"a": input.a}\n', encoding="utf-8"
    )
    new = built(sources, tmp_path / "cache")
    assert [path.name for path in new.rules.path.parent.parent.iterdir()] == [new.rules.path.parent.name]


def test_a_failed_build_keeps_the_previous_files(sources: PolicySources, tmp_path: Path) -> None:
    built(sources, tmp_path / "cache")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*") if path.is_file()}
    (sources.rego / "admission/requirements/source/other.rego").write_text(
        topic(requirement("x(r)", "not r.a"), name="other"), encoding="utf-8"
    )
    (sources.policy / "licenses.yaml").write_text("licenses: {}\nmost: 2\n", encoding="utf-8")
    with pytest.raises(PolicyError):
        built(sources, tmp_path / "cache")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*") if path.is_file()} == before


def test_digest_of_an_archive_is_not_its_revision(sources: PolicySources, tmp_path: Path) -> None:
    """The revision is of the content: another compression would not change it."""
    policy = built(sources, tmp_path / "cache")
    assert policy.rules.revision != digest(policy.rules.path.read_bytes())
