"""`engine source init` and `hash`: what ends in `bundle.yaml`, from which metadata, and what is left open."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from engine.errors import GatherError
from engine.settings import ReadLimits
from engine.sources.document import Statements
from engine.sources.hashes import Updated, updated
from engine.sources.metadata import Metadata, Resource, found
from engine.sources.start import Started, start
from tests.command import Command
from tests.expect import there

STATED = ("--purpose", "eval", "--retention-until", "2030-01-01", "--retention-basis", "license")
OWN = (*STATED, "--decided-by", "legal@example.org")
ACCEPTED = (*OWN, "--retrieved-at", "2026-11-02T09:30:00Z")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def files(folder: Path, content: dict[str, bytes]) -> Path:
    for name, data in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


CROISSANT = {
    "@context": {"@vocab": "https://schema.org/"},
    "@type": "sc:Dataset",
    "name": "Passengers",
    "license": "https://creativecommons.org/publicdomain/zero/1.0/",
    "distribution": [
        {
            "@type": "cr:FileObject",
            "contentUrl": "https://data.example.org/t/p.csv",
            "encodingFormat": "text/csv",
            "sha256": sha256(b"a,b\n"),
        },
        {"@type": "cr:FileObject", "contentUrl": "inside.csv", "containedIn": {"@id": "archive"}},
    ],
}


PACKAGE = {
    "name": "My Pack!",
    "licenses": [{"name": "CC0-1.0"}],
    "resources": [
        {
            "path": "./data/a.csv",
            "hash": f"sha256:{sha256(b'1').upper()}",
            "licenses": [{"name": "MIT"}, {"path": "https://x.example/l"}],
            "sources": [{"path": "https://data.example.org/a.csv"}],
            "mediatype": "text/x",
        },
        {
            "path": "b.csv",
            "hash": "md5:0",
            "sources": [{"path": "https://b.example.org"}, {"path": "https://c.example"}],
        },
        {"path": "c.csv", "hash": f"SHA-256:{0:064}", "sources": [{"path": "http://c.example.org/c"}]},
        {"path": ["https://data.example.org/x/d.bin?x=1#y", "https://other.example.org/gone"]},
        {"path": "e.gz", "sources": [{"path": "../local"}]},
    ],
}
COMPLETE = {
    "purpose": "eval",
    "environment": "pack",
    "export_license": "CC-BY-4.0",
    "retention_until": "2030-01-01",
    "retention_basis": "license",
    "retrieved_at": "2026-11-02T09:30:00Z",
    "decided_by": "legal@example.org",
}


@pytest.mark.parametrize("stated", [{"retention_until": "2030-01-01"}, COMPLETE], ids=["open", "complete"])
def test_the_document_states_what_metadata_and_a_person_do(
    stated: dict[str, str], tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    there = {"data/a.csv": b"1", "data-a.csv": b"2", "b.csv": b"3", "c.csv": b"4", "x/d.bin": b"5", "e.gz": b"6"}
    folder = files(tmp_path / "f", {"datapackage.json": as_json(PACKAGE), **there, ".hidden/x": b"7"})
    (folder / "link.csv").symlink_to("b.csv")
    os.mkfifo(folder / "pipe")
    statements = Statements(now="2026-11-21T00:00:00Z", license="ISC", **stated)
    done = start(
        folder,
        found(folder, ReadLimits()),
        statements,
        ["datapackage.json"].__contains__,
        lambda *_: None,
        ReadLimits(),
    )
    assert (done.records, done.open) == (6, stated != COMPLETE)
    assert "\n".join([done.text, *done.remarks]) == snapshot


@pytest.mark.parametrize(
    ("resources", "there", "described"),
    [
        (["a.csv"], ["x/a.csv"], ["x/a.csv"]),
        (["a.csv"], ["x/a.csv", "y/a.csv"], []),
        (["x/a.csv"], ["x/a.csv", "y/a.csv"], ["x/a.csv"]),
        (["x/a.csv", "y/a.csv"], ["a.csv"], []),
        (["x/a.csv", "y/a.csv"], ["x/a.csv", "y/a.csv"], ["x/a.csv", "y/a.csv"]),
        (["a.csv", "a.csv"], ["a.csv"], []),
    ],
)
def test_what_metadata_states_of_a_file_is_not_taken_for_another_of_its_name(
    resources: list[str], there: list[str], described: list[str], tmp_path: Path
) -> None:
    folder = files(tmp_path / "f", dict.fromkeys(there, b"1"))
    stated = [Resource(path, media_type=f"text/x-{number}", license="MIT") for number, path in enumerate(resources)]
    metadata = Metadata("m", None, "CC-BY-NC-4.0", (*stated, *stated))
    done = start(folder, metadata, Statements(now=""), lambda _: False, lambda *_: None, ReadLimits())
    others = [path for path in there if path not in described]
    assert [done.text.count(f"\n    license: {one}") for one in ("MIT", "CC-BY-NC-4.0")] == [len(described), 0]
    assert [one.partition(":")[0] for one in done.remarks] == others


def test_metadata_of_another_name_is_not_looked_for_behind_a_link(tmp_path: Path) -> None:
    folder = files(tmp_path / "f", {"a.json": b"1"})
    (tmp_path / "m").write_bytes(b'{"conformsTo": "http://mlcommons.org/croissant/1.1", "license": "MIT"}')
    (folder / "m.json").symlink_to(tmp_path / "m")
    (folder / "folder.json").mkdir()
    assert found(folder, ReadLimits()) is None
    (folder / "m.json").unlink()
    (tmp_path / "m").rename(folder / "m.json")
    assert there(found(folder, ReadLimits())).license == "MIT"


def test_a_folder_may_have_as_many_files_as_a_source_bundle_has_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.sources.start.MOST_RECORDS", 2)
    folder = files(tmp_path / "f", {"a": b"1", "b/c": b"2"})

    def begin() -> Started:
        return start(folder, None, Statements(now=""), lambda _: False, lambda *_: None, ReadLimits())

    assert begin().records == 2
    files(folder, {"b/d": b"3"})
    with pytest.raises(GatherError, match="holds 3 files"):
        begin()


def test_fields_that_only_a_person_can_state_are_left_as_comments(command: Command, tmp_path: Path) -> None:
    folder = files(tmp_path / "open", {"a.csv": b"1"})
    assert command("source", "init", folder).code == 0
    document = (folder / "bundle.yaml").read_text(encoding="utf-8")
    for field in ("purpose", "license", "retention"):
        assert f"# {field}:" in document
    (checked,) = command("check", folder, "--format", "json").json["reports"]
    codes = {finding["code"] for finding in checked["decision"]["findings"]}
    assert {"purpose_missing", "license_missing"} & codes or "bundle_invalid" in codes, codes


def test_contradictions_between_metadata_and_files_are_reported(command: Command, tmp_path: Path) -> None:
    folder = files(tmp_path / "c", {"croissant.json": as_json(CROISSANT), "p.csv": b"changed", ".hidden/x": b"1"})
    (folder / "link.csv").symlink_to("p.csv")
    told = command("source", "init", folder, *ACCEPTED).stderr
    assert f"p.csv: its SHA-256 is {sha256(b'changed')}; croissant.json states {sha256(b'a,b' + bytes([10]))}" in told
    assert ".hidden: hidden" in told
    assert "link.csv: a link" in told
    (folder / "bundle.yaml").unlink()
    (folder / "p.csv").rename(folder / "q.csv")
    assert "p.csv: named by croissant.json, but not here" in command("source", "init", folder, *ACCEPTED).stderr
    (folder / "bundle.yaml").unlink()
    assert command("source", "init", folder, *ACCEPTED, "--quiet").stderr == ""


def test_a_folder_of_links_alone_is_refused_with_the_way_out(command: Command, tmp_path: Path) -> None:
    """As huggingface_hub keeps a snapshot: each file is a link to a blob."""
    blobs = files(tmp_path / "blobs", {"1": b"---\nlicense: mit\n---\n", "2": b"a,b\n"})
    snapshot = tmp_path / "snapshots" / "main"
    snapshot.mkdir(parents=True)
    (snapshot / "README.md").symlink_to(blobs / "1")
    (snapshot / "a.csv").symlink_to(blobs / "2")
    told = command("source", "init", snapshot, *ACCEPTED)
    assert told.code == 2
    assert "has no content; a.csv: a link or special file, so left out" in told.stderr
    assert "cp -rL" in told.stderr


def test_notes_of_a_download_are_not_content(command: Command, tmp_path: Path) -> None:
    """As huggingface_hub leaves them in a `local_dir`."""
    card = b"---\nlicense: mit\n---\n"
    notes = {".cache/huggingface/.gitignore": b"*", ".cache/huggingface/download/a.csv.metadata": b"1"}
    folder = files(tmp_path / "dir", {"README.md": card, "a.csv": b"1", **notes})
    told = command("source", "init", folder, *OWN)
    assert told.stderr == ""
    assert command("check", folder).code == 0


def test_files_created_by_operating_systems_are_not_recorded(command: Command, tmp_path: Path) -> None:
    left = {"a/.DS_Store": b"1", "a/._b.csv": b"1", "Thumbs.db": b"1", "__MACOSX/._b.csv": b"1"}
    folder = files(tmp_path / "c", {"a/b.csv": b"1", **left})
    told = command("source", "init", folder, *ACCEPTED)
    assert "bundle.yaml: 1 record, from the files" in told.stdout
    assert "left out" not in told.stderr
    (checked,) = command("check", folder, "--format", "json").json["reports"]
    assert "content_not_declared" not in {finding["code"] for finding in checked["decision"]["findings"]}


def test_settings_and_license_texts_of_a_project_need_no_record(command: Command, tmp_path: Path) -> None:
    texts = ("LICENSE-MIT", "LICENSE-APACHE", "LICENCE", "license", "COPYING.LESSER", "UNLICENSE")
    settings = (".github/workflows/ci.yml", ".editorconfig", ".pre-commit-config.yaml", ".readthedocs.yaml")
    inside = (
        ".gitmodules",
        "src/.gitignore",
        "src/.gitattributes",
        "src/.nojekyll",
        "src/.gitkeep",
        "src/.editorconfig",
    )
    tools = ("src/.python-version", ".coveragerc", ".dockerignore", ".prettierignore", ".git-blame-ignore-revs")
    beside = dict.fromkeys((*texts, *settings, *inside, *tools), b"1")
    folder = files(tmp_path / "project", {"src/tool.py": b"1", **beside})
    told = command("source", "init", folder, *OWN, "--license", "MIT")
    assert "bundle.yaml: 1 record, from the files" in told.stdout
    assert told.stderr == ""
    assert command("check", folder).code == 0


def test_a_hidden_file_is_content_once_a_record_describes_it(command: Command, tmp_path: Path) -> None:
    folder = files(tmp_path / "project", {"a/tool.py": b"1", "a/.settings": b"2"})
    told = command("source", "init", folder, *ACCEPTED, "--license", "MIT").stderr
    assert "a/.settings: hidden, so left out; remove it, or describe it in a record" in told
    assert command("check", folder).code == 1
    document = folder / "bundle.yaml"
    text = document.read_text(encoding="utf-8")
    records, _, decisions = text.partition("license_decisions:\n")
    described = records[records.index("  - id:") :]
    for part in (described, decisions):
        copied = part.replace("a-tool.py", "settings").replace("a/tool.py", "a/.settings")
        text = text.replace(part, part + copied.replace(sha256(b"1"), sha256(b"2")))
    document.write_text(text, encoding="utf-8")
    assert command("check", folder).code == 0


@pytest.mark.parametrize("field", ["license: cc-by-nc-4.0", "licenses:\n- cc-by-nc-4.0"])
def test_the_license_of_a_card_is_read_by_its_old_name_too(field: str, command: Command, tmp_path: Path) -> None:
    card = f"---\n{field}\n---\n# Card\n".encode()
    folder = files(tmp_path / "card", {"README.md": card, "a.csv": b"1"})
    assert command("source", "init", folder, *ACCEPTED, "--license", "MIT").code == 0
    assert "license: cc-by-nc-4.0" in (folder / "bundle.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "license_"),
    [
        ({"pyproject.toml": b'[project]\nlicense = "GPL-3.0-only"\n'}, "GPL-3.0-only"),
        ({"pyproject.toml": b'[project]\nlicense = {text = "BSD-3-Clause"}\n'}, "BSD-3-Clause"),
        ({"pyproject.toml": b'[project]\nlicense = {text = "Permission ' + b"x" * 90 + b'"}\n'}, None),
        ({"pyproject.toml": b'[project]\nlicense = {text = "MIT\\nPermission is granted"}\n'}, None),
        ({"pyproject.toml": b'[tool.poetry]\nlicense = "Apache-2.0"\n'}, "Apache-2.0"),
        (
            {"pyproject.toml": b'[project]\nclassifiers = ["Topic :: X", "License :: OSI Approved :: ISC License"]\n'},
            "License :: OSI Approved :: ISC License",
        ),
        (
            {
                "pyproject.toml": b'[project]\nlicense = {text = "Apache-2.0"}\n'
                b'classifiers = ["License :: OSI Approved :: Apache Software License"]\n'
            },
            "Apache-2.0",
        ),
        ({"package.json": b'{"license": "GPL-2.0-only"}'}, "GPL-2.0-only"),
        ({"package.json": b'{"licenses": [{"type": "ISC"}, {"type": "Zlib"}]}'}, "ISC AND Zlib"),
        ({"Cargo.toml": b'[package]\nlicense = "MIT OR Apache-2.0"\n'}, "MIT OR Apache-2.0"),
        ({"Cargo.toml": b'[package]\nlicense = "MIT/Apache-2.0"\n'}, "MIT OR Apache-2.0"),
        ({"Cargo.toml": b'[workspace.package]\nlicense = "Zlib"\n[package]\nlicense.workspace = true\n'}, "Zlib"),
        (
            {"Cargo.toml": b'package.license = "MIT OR Zlib"', "package.json": b'{"license": "GPL-2.0-only"}'},
            "GPL-2.0-only AND (MIT OR Zlib)",
        ),
        ({"pyproject.toml": b"project = 1\n", "package.json": b'{"license": {}}', "Cargo.toml": b""}, None),
        ({"croissant.json": b'{"license": ["MIT OR Zlib", "CC-BY-NC-4.0"]}'}, "(MIT OR Zlib) AND CC-BY-NC-4.0"),
        ({"metadata.json": b'{"conformsTo": "http://mlcommons.org/croissant/1.1", "license": "MIT"}'}, "MIT"),
        ({"metadata.json": b'{"conformsTo": "http://example.org/other/1.0", "license": "MIT"}'}, None),
        (
            {
                f"{name}.json": b'{"conformsTo": "http://mlcommons.org/croissant/1.1", "license": "MIT"}'
                for name in "ab"
            },
            None,
        ),
    ],
)
def test_the_license_of_a_project_is_read(content: dict[str, bytes], license_: str | None, tmp_path: Path) -> None:
    described = found(files(tmp_path / "project", content), ReadLimits())
    assert (None if described is None else described.license) == license_


def test_the_license_of_metadata_is_used_instead_of_the_option(command: Command, tmp_path: Path) -> None:
    content = {"pyproject.toml": b'[project]\nlicense = "GPL-3.0-only"\n', "a.csv": b"1"}
    folder = files(tmp_path / "project", content)
    done = command("source", "init", folder, *ACCEPTED, "--license", "MIT")
    assert done.code == 0
    assert "pyproject.toml states the license GPL-3.0-only; --license is not used" in done.stderr
    assert (folder / "bundle.yaml").read_text(encoding="utf-8").count("    license: GPL-3.0-only\n") == 2


@pytest.mark.parametrize("text", ["vendor/lib/COPYING", "vendor/LICENSE-GPL.txt", "vendor/lib/License.md"])
def test_files_below_another_license_text_do_not_get_the_license_of_the_project(
    text: str, command: Command, tmp_path: Path
) -> None:
    project = {"pyproject.toml": b'[project]\nlicense = "MIT"\n', "LICENSE": b"MIT License"}
    content = {"vendor/lib/a.c": b"1", "vendored.c": b"2", "own/LICENSE": b"MIT License", "own/b.c": b"3"}
    folder = files(tmp_path / "project", {**project, **content, text: b"GNU GENERAL PUBLIC LICENSE"})
    done = command("source", "init", folder, *OWN)
    assert f"engine: {text}: a license text of its own; state the license of the files in its folder" in done.stderr
    document = (folder / "bundle.yaml").read_text(encoding="utf-8")
    stated = re.findall(r"path: (\S+)\n(?:    .*\n)*?    (?:# )?license: (\S+)", document)
    assert stated == [
        ("own/LICENSE", "MIT"),
        ("own/b.c", "MIT"),
        ("pyproject.toml", "MIT"),
        *sorted([(text, "#"), ("vendor/lib/a.c", "#")]),
        ("vendored.c", "MIT"),
    ]
    assert command("check", folder).code == 1


@pytest.mark.parametrize(
    ("path", "text", "remark"),
    [
        (
            "vendor/package.json",
            b'{"license": "GPL-3.0-only"}',
            "it states GPL-3.0-only; state the license of the files",
        ),
        ("vendor/Cargo.toml", b'[package]\nlicense = "MPL-2.0"\n', "it states MPL-2.0; state the license of the files"),
        ("vendor/package.json", b"{", "it cannot be read: the document is not JSON"),
        ("vendor/a.c", b"/* SPDX-License-Identifier: GPL-2.0-only */\n", "a line of it states GPL-2.0-only; state its"),
        (
            "vendor/a.c",
            b"<!-- SPDX-License-Identifier: MIT -->\nSPDX-License-Identifier: 0BSD",
            "a line of it states 0BSD;",
        ),
    ],
)
def test_a_file_or_package_that_states_another_license_does_not_get_that_of_the_project(
    path: str, text: bytes, remark: str, command: Command, tmp_path: Path
) -> None:
    same = {"own/package.json": b'{"license": "mit"}', "own/b.c": b"// SPDX-License-Identifier: MIT\n", "own/c.c": b"1"}
    folder = files(tmp_path / "project", {**same, "vendor/a.c": b"1", path: text})
    done = command("source", "init", folder, *OWN, "--license", "MIT")
    assert f"engine: {path}: {remark}" in done.stderr
    document = (folder / "bundle.yaml").read_text(encoding="utf-8")
    stated = dict(re.findall(r"path: (\S+)\n(?:    .*\n)*?    (?:# )?license: (\S+)", document))
    assert {of for of, license_ in stated.items() if license_ != "MIT"} == {path, "vendor/a.c"}


def test_files_that_may_name_the_license_are_named(command: Command, tmp_path: Path) -> None:
    folder = files(tmp_path / "project", {"LICENSE": b"MIT License", "README.md": b"# A", "a.csv": b"1"})
    open_ = command("source", "init", folder, *ACCEPTED)
    assert "engine: no metadata states a license; look into LICENSE, README.md" in open_.stderr
    (folder / "bundle.yaml").unlink()
    assert "look into" not in command("source", "init", folder, *ACCEPTED, "--license", "MIT").stderr


def test_a_time_of_download_without_any_address_is_reported(command: Command, tmp_path: Path) -> None:
    folder = files(tmp_path / "pages", {"a.html": b"1"})
    done = command("source", "init", folder, *ACCEPTED, "--license", "MIT")
    assert done.code == 0
    assert "no metadata states a url, so --retrieved-at is not used and the records count as your own" in done.stderr
    described = files(tmp_path / "described", {"croissant.json": as_json(CROISSANT), "p.csv": b"a,b\n"})
    assert "is not used" not in command("source", "init", described, *ACCEPTED).stderr


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        ({}, (), "has no content"),
        ({"pyproject.toml": b"[project\n", "a": b"1"}, (), "not valid TOML"),
        ({"Cargo.toml": b"x = \xff\n", "a": b"1"}, (), "not valid TOML"),
        ({"a": b"1", "bundle.yaml": b"format: 1\n"}, (), "exists"),
        ({"README.md": b"# no card\n", "a": b"1"}, ("--from", "hf"), "no front matter"),
        ({"a": b"1"}, ("--from", "croissant"), "cannot read"),
        ({"croissant.json": b"[1]", "a": b"1"}, (), "not a mapping"),
        ({"datapackage.json": b'{"a": 1, "a": 2}', "a": b"1"}, (), "datapackage.json"),
        (
            {"a": b"1"},
            ("--purpose", "trian"),
            "did you mean `train`? `trian` is not one of train, eval, tool, environment",
        ),
        ({"a": b"1"}, ("--retention-basis", "licence"), "did you mean `license`?"),
        ({"a": b"1"}, ("--retention-until", "31.12.2030"), "`31.12.2030` is not written as 2030-12-31"),
        ({"a": b"1"}, ("--retrieved-at", "2026-11-02"), "`2026-11-02` is not written as 2026-11-02T09:30:00Z"),
    ],
)
def test_an_invalid_start_is_refused_and_writes_nothing(
    content: dict[str, bytes], options: tuple[str, ...], said: str, command: Command, tmp_path: Path
) -> None:
    folder = files(tmp_path / "bad", content)
    folder.mkdir(exist_ok=True)
    before = sorted(folder.iterdir())
    command("source", "init", folder, *options).refused(said)
    assert sorted(folder.iterdir()) == before


@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    "metadata",
    [
        {
            "license": [{"@type": "CreativeWork", "url": "https://x.example/l"}, 7, None],
            "distribution": {"contentUrl": 3},
        },
        {"license": {"name": "MIT"}, "distribution": [None, "x", {"contentUrl": "https://[bad", "encodingFormat": []}]},
        {"name": ["x"], "license": {}, "distribution": [{"contentUrl": "http://data.example.org/a.csv"}]},
        {},
    ],
)
def test_malformed_metadata_does_not_stop_the_start(metadata: dict[str, Any], command: Command, tmp_path: Path) -> None:
    folder = files(tmp_path / "odd", {"croissant.json": as_json(metadata), "a.csv": b"1"})
    assert command("source", "init", folder, *ACCEPTED).code == 0
    assert command("check", folder).code in {0, 1}


def edited(document: str, change: Callable[[str], str]) -> str:
    assert change(document) != document
    return change(document)


def test_hashes_are_brought_up_to_date_and_nothing_else(command: Command, tmp_path: Path) -> None:
    folder = files(tmp_path / "h", {"a.csv": b"1", "b.csv": b"2"})
    command("source", "init", folder, "--license", "CC0-1.0", *ACCEPTED)
    document = folder / "bundle.yaml"
    document.write_text(
        edited(document.read_text(encoding="utf-8"), lambda text: text + "# my remark\n"), encoding="utf-8"
    )
    before = document.read_text(encoding="utf-8")
    assert command("source", "hash", folder).stdout == "0 changed\n"
    assert document.read_text(encoding="utf-8") == before
    (folder / "a.csv").write_bytes(b"3")
    done = command("source", "hash", folder)
    assert done.stdout.splitlines() == [
        "a.csv: new hash",
        "a.csv: its license decision is for the old content; review it and decide again",
        "1 changed",
    ]
    after = document.read_text(encoding="utf-8")
    assert after == before.replace(sha256(b"1"), sha256(b"3"), 1)
    assert command("check", folder).code == 1  # the decision is about the old content


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("records: [{id: a, path: a.csv, license: MIT}]", "add `sha256: HASH`"),
        ("records:\n- path: a.csv\n  sha256:\n    'OLD'", "write `sha256: HASH` on a line of its own"),
        ("records: [{'sha256: x': OLD, path: a.csv, sha256: OLD}]", "on a line of its own"),
        ("records: [{'sha256: ': OLD, path: a.csv, sha256: OLD}]", "on a line of its own"),
        ("records: [{path: a.csv, sha256: [OLD]}]", "on a line of its own"),
        ("records: [OLD]", "add it"),
        ("records: [{path: 1, sha256: OLD}]", "add it"),
        ("- OLD", "write it as docs/source-bundles.md shows"),
    ],
)
def test_a_hash_that_cannot_be_written_alone_is_refused(document: str, said: str, tmp_path: Path) -> None:
    folder = files(tmp_path / "f", {"a.csv": b"1", "bundle.yaml": document.replace("OLD", "0" * 63 + "a").encode()})
    with pytest.raises(GatherError) as refused:
        updated(folder, ReadLimits(), lambda *_: None)
    assert said.replace("HASH", sha256(b"1")) in there(refused.value.remedy)
    assert there(refused.value.where).file == str(folder / "bundle.yaml")


def test_hashes_need_a_document(command: Command, tmp_path: Path) -> None:
    done = command("source", "hash", files(tmp_path / "f", {"a.csv": b"1"}))
    done.refused("the folder has no `bundle.yaml`", "start one with `engine source init`")


@pytest.mark.parametrize("old", ["null", "TODO", "''", "", "a" * 63, "F" * 64])
def test_whatever_word_is_in_the_place_of_a_hash_is_replaced(old: str, tmp_path: Path) -> None:
    document = "records:\n- {{path: a.csv, sha256: {}}}\n{}"
    decisions = "license_decisions: [{record: '0', sha256: x}, {record: '1'}, 1]\n"
    folder = files(tmp_path / "f", {"a.csv": b"1", "bundle.yaml": document.format(old, decisions).encode()})
    done = updated(folder, ReadLimits(), lambda *_: None)
    new = f"'{sha256(b'1')}'" if old == "''" else sha256(b"1")
    assert done == Updated(document.format(new, decisions), ("0",), ("0",))


@pytest.mark.parametrize("decisions", ["1", "{}", "[1]"])
@pytest.mark.parametrize("records", ["1", "{a: 1}", "[]"])
def test_a_document_without_records_has_no_hash_to_change(records: str, decisions: str, tmp_path: Path) -> None:
    document = f"records: {records}\nlicense_decisions: {decisions}\n"
    folder = files(tmp_path / "f", {"bundle.yaml": document.encode()})
    assert updated(folder, ReadLimits(), lambda *_: None) == Updated(document, (), ())


def test_metadata_cannot_add_fields(command: Command, tmp_path: Path) -> None:
    hostile = {"distribution": {"contentUrl": "a.csv", "encodingFormat": "text/csv\n    license: CC0-1.0"}}
    folder = files(tmp_path / "i", {"croissant.json": as_json(hostile), "a.csv": b"1"})
    assert command("source", "init", folder, *ACCEPTED).code == 0
    assert "    license: CC0-1.0" not in (folder / "bundle.yaml").read_text(encoding="utf-8").splitlines()
    assert command("check", folder).code == 1


@pytest.mark.parametrize("path", ["../secret", "/etc/hostname", "link"])
def test_no_file_outside_of_the_folder_is_hashed(path: str, command: Command, tmp_path: Path) -> None:
    folder = files(tmp_path / "o", {"bundle.yaml": f"records:\n  - path: {path}\n    sha256: x\n".encode()})
    (tmp_path / "secret").write_bytes(b"1")
    (folder / "link").symlink_to(tmp_path / "secret")
    done = command("source", "hash", folder)
    assert (done.code, sha256(b"1") in done.stdout + done.stderr) == (2, False)


def test_only_the_hash_of_the_record_is_replaced(command: Command, tmp_path: Path) -> None:
    """A character that may end a line must not move the hash to another record."""
    old = (f"{0:064}", f"{1:064}")
    records = [f"  - {{id: {name}, path: {name}, sha256: '{hash_}'}}" for name, hash_ in zip("ab", old, strict=True)]
    document = "\n".join(["# a\u2028b", "records:", *records, ""])
    folder = files(tmp_path / "l", {"bundle.yaml": document.encode(), "a": b"1", "b": b"2"})
    done = command("source", "hash", folder)
    text = (folder / "bundle.yaml").read_text(encoding="utf-8")
    new = document.replace(old[0], sha256(b"1")).replace(old[1], sha256(b"2"))
    assert (done.code, text) in {(0, new), (2, document)}


def test_a_name_that_is_not_utf8_is_refused_and_leaves_no_document(command: Command, tmp_path: Path) -> None:
    folder = files(tmp_path / "n", {"a.csv": b"1"})
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.csv")).write_bytes(b"2")
    done = command("source", "init", folder)
    assert (done.code, (folder / "bundle.yaml").exists()) == (2, False)
    assert "UTF-8" in done.stderr
