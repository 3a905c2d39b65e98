"""Whatever `engine check` is given: a message that says where and what to do, an exit code, a record, no traceback.

All bad source bundles go through one command, which is also how a hostile one would arrive among good ones.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.command import Command, codes, decisions, edited, ordinary
from tests.conftest import BUNDLES, ROOT

GOOD = "fixtures/source_bundles/offline_fixture"
CONTENT = "content/contacts.json"
UNREADABLE = "engine.input_unreadable"


@dataclass(frozen=True, slots=True)
class Bad:
    """One bad input: how it is made below a folder, and what must be said about it."""

    make: Callable[[Path], Path]
    code: str
    exit: int
    says: str
    """Stands in the message, the place or the subject of the finding."""
    place: str = "bundle.yaml"
    """Stands in the place that is told, as `file:line` with a line where there is one."""


def text(data: bytes) -> Callable[[Path], Path]:
    """A source bundle with this text as its document."""

    def make(folder: Path) -> Path:
        folder.mkdir()
        (folder / "bundle.yaml").write_bytes(data)
        return folder

    return make


def document(edit: Callable[[dict[str, Any]], object]) -> Callable[[Path], Path]:
    """The good source bundle with its document edited."""
    return lambda folder: edited("offline_fixture", folder, edit)


def line(old: bytes, new: bytes) -> Callable[[Path], Path]:
    """The good source bundle with a piece of its text replaced, the lines as they were."""

    def make(folder: Path) -> Path:
        shutil.copytree(BUNDLES / "offline_fixture", folder)
        path = folder / "bundle.yaml"
        assert old in path.read_bytes()
        path.write_bytes(path.read_bytes().replace(old, new))
        return folder

    return make


def record(**fields: Any) -> Callable[[Path], Path]:
    """The good source bundle with fields of its record changed."""
    return document(lambda bundle: bundle["records"][0].update(fields))


def fixture(name: str) -> Callable[[Path], Path]:
    """A fixture as it is."""

    def make(folder: Path) -> Path:
        return Path(shutil.copytree(BUNDLES / name, folder))

    return make


def content(put: Callable[[Path], object]) -> Callable[[Path], Path]:
    """The good source bundle with something else in the place of its content."""

    def make(folder: Path) -> Path:
        path = edited("offline_fixture", folder) / CONTENT
        path.unlink()
        put(path)
        return folder

    return make


def large(folder: Path) -> Path:
    text(b"format: 1\n")(folder)
    os.truncate(folder / "bundle.yaml", 100 << 20)  # a hole: costs no disk
    return folder


def linked_document(folder: Path) -> Path:
    folder.mkdir()
    (folder / "bundle.yaml").symlink_to(BUNDLES / "offline_fixture" / "bundle.yaml")
    return folder


def linked_folder(folder: Path) -> Path:
    edited("offline_fixture", folder)
    shutil.rmtree(folder / "content")
    (folder / "content").symlink_to(BUNDLES / "offline_fixture" / "content")
    return folder


def tar(*members: tuple[str, bytes, bytes]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder.with_suffix(".tar.gz")
        with tarfile.open(path, "w:gz") as archive:
            for name, kind, data in members:
                info = tarfile.TarInfo(name)
                info.type, info.size, info.linkname = kind, len(data), "/etc/passwd"
                archive.addfile(info, io.BytesIO(data))
        return path

    return make


def zipped(members: Mapping[str, bytes]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder.with_suffix(".zip")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return path

    return make


def empty_file(folder: Path) -> Path:
    folder.with_suffix(".zip").touch()
    return folder.with_suffix(".zip")


ZEROS = bytes(100 << 20)
ALIASES = b"a: &a [x, x]\n" + b"".join(b"%c: &%c [*%c, *%c]\n" % (c, c, c - 1, c - 1) for c in b"bcdefghijklmnop")

BAD: dict[str, Bad] = {
    # nothing there, or nothing that can be read as a document
    "missing-folder": Bad(lambda folder: folder, UNREADABLE, 2, "not there", "missing-folder"),
    "empty-archive": Bad(empty_file, UNREADABLE, 2, "empty file", "empty-archive.zip"),
    "empty-document": Bad(text(b""), UNREADABLE, 2, "is empty"),
    "only-a-comment": Bad(text(b"# later\n"), UNREADABLE, 2, "is empty"),
    "not-yaml": Bad(line(b"purpose: train", b"purpose: [train"), UNREADABLE, 2, "is not YAML", "bundle.yaml:5"),
    "duplicate-key": Bad(line(b"purpose:", b"id: again\npurpose:"), UNREADABLE, 2, "`id` twice", "bundle.yaml:4"),
    "alias-bomb": Bad(text(ALIASES), UNREADABLE, 2, "anchor or alias", "bundle.yaml:1"),
    "merge-key": Bad(line(b"network:\n", b"network:\n  <<: {a: 1}\n"), UNREADABLE, 2, "merge key", "bundle.yaml:8"),
    "tag": Bad(line(b"purpose: train", b"purpose: !!python/name:os.system x"), UNREADABLE, 2, "tag", "bundle.yaml:4"),
    "100-mb": Bad(large, UNREADABLE, 2, "larger than"),
    "deep-nesting": Bad(text(b"[" * 100_000), UNREADABLE, 2, "nested deeper", "bundle.yaml:1"),
    "deep-mapping": Bad(
        text(b'{"a":' * 50_000 + b"1" + b"}" * 50_000), UNREADABLE, 2, "nested deeper", "bundle.yaml:1"
    ),
    "nan": Bad(line(b"max_requests: 0", b"max_requests: .nan"), UNREADABLE, 2, "`.nan`", "bundle.yaml:10"),
    "two-readings": Bad(line(b"max_requests: 0", b"max_requests: 0o17"), UNREADABLE, 2, "`0o17`", "bundle.yaml:10"),
    "huge-number": Bad(
        line(b"max_requests: 0", b"max_requests: " + b"9" * 99), UNREADABLE, 2, "2^53", "bundle.yaml:10"
    ),
    "not-utf-8": Bad(line(b"acme-contacts", b"caf\xe9"), UNREADABLE, 2, "UTF-8", "bundle.yaml:22"),
    "zero-bytes": Bad(text(b"format: 1\n\0\n"), UNREADABLE, 2, "is not YAML"),
    "two-documents": Bad(line(b"purpose:", b"---\npurpose:"), UNREADABLE, 2, "more than one", "bundle.yaml:4"),
    # what leaves its folder
    "parent-path": Bad(line(CONTENT.encode(), b"../x"), UNREADABLE, 2, "leaves the source bundle", "bundle.yaml:20"),
    "absolute-path": Bad(line(CONTENT.encode(), b"/etc/passwd"), UNREADABLE, 2, "leaves", "bundle.yaml:20"),
    "linked-content": Bad(content(lambda path: path.symlink_to("/etc/passwd")), "content_missing", 1, "records/"),
    "linked-document": Bad(linked_document, UNREADABLE, 2, "link"),
    "linked-folder": Bad(linked_folder, UNREADABLE, 2, "link", CONTENT),
    "content-is-a-pipe": Bad(content(os.mkfifo), "content_missing", 1, "records/"),
    "content-is-a-folder": Bad(content(Path.mkdir), UNREADABLE, 2, "not a regular file", CONTENT),
    # archives
    "tar-bomb": Bad(tar(("bundle.yaml", b"0", ZEROS)), UNREADABLE, 2, "unpacks to more than", "tar-bomb.tar.gz"),
    "zip-bomb": Bad(zipped({"bundle.yaml": ZEROS}), UNREADABLE, 2, "unpacks to more than", "zip-bomb.zip"),
    "tar-parent": Bad(tar(("../evil", b"0", b"x")), UNREADABLE, 2, "outside the archive", "tar-parent.tar.gz"),
    "tar-link": Bad(tar(("content", b"2", b"")), UNREADABLE, 2, "is a link", "tar-link.tar.gz"),
    "tar-newline": Bad(tar(("a\n::error::b", b"0", b"")), UNREADABLE, 2, "line breaks", "tar-newline.tar.gz"),
    "zip-parent": Bad(zipped({"a/../../evil": b"x"}), UNREADABLE, 2, "outside the archive", "zip-parent.zip"),
    "zip-without-document": Bad(zipped({"a.txt": b"x"}), UNREADABLE, 2, "`bundle.yaml`", "zip-without-document.zip"),
    # a document that can be read and breaks the format: decided, not refused unread
    "a-list": Bad(text(b"- format: 1\n"), "bundle_invalid", 1, "errors/bundle"),
    "null": Bad(text(b"null\n"), "bundle_invalid", 1, "errors/bundle"),
    "unknown-key": Bad(record(licence="MIT"), "bundle_invalid", 1, "errors/records.0"),
    "wrong-types": Bad(line(b"redaction: true", b"redaction: 1"), "bundle_invalid", 1, "redaction", "bundle.yaml:15"),
    "another-format": Bad(line(b"format: 1", b"format: 2"), "bundle_invalid", 1, "errors/format", "bundle.yaml:2"),
    "id-with-newline": Bad(record(id="a\n::error::b"), "bundle_invalid", 1, "errors/records.0.id"),
    "path-with-newline": Bad(record(path="content/a\nb"), "bundle_invalid", 1, "errors/records.0.path"),
    "records-null": Bad(document(lambda bundle: bundle.update(records=None)), "records_missing", 1, "records"),
    # a document that fits the format and describes something that may not enter
    "content-missing": Bad(fixture("content_missing"), "content_missing", 1, "records/tickets-1", "bundle.yaml:30"),
    "hash-of-another": Bad(
        fixture("hash_mismatch"), "content_hash_mismatch", 1, "records/contacts-1", "bundle.yaml:23"
    ),
    "two-with-one-id": Bad(fixture("duplicate_record_id"), "record_id_not_unique", 1, "records/", "bundle.yaml:"),
    "future-retrieval": Bad(fixture("retrieval_in_future"), "retrieval_time_in_future", 1, "records/", "bundle.yaml:"),
    "license-unparsable": Bad(fixture("unparsable_license"), "license_unknown", 1, "records/", "bundle.yaml:"),
    "no-records": Bad(fixture("no_records"), "records_missing", 1, "records"),
    "url-not-canonical": Bad(fixture("url_not_canonical"), "url_not_canonical", 1, "records/", "bundle.yaml:"),
}


@dataclass(frozen=True, slots=True)
class Checked:
    """One command on all of it: what it ended with, each report by its name, what it printed, what it recorded."""

    code: int
    reports: dict[str, dict[str, Any]]
    text: str
    recorded: dict[str, dict[str, Any]]
    files: list[str]


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Checked:
    folder = tmp_path_factory.mktemp("bad-input")
    command = Command.of(folder, cache)
    paths = {name: bad.make(folder / name) for name, bad in BAD.items()}
    output = folder / "home" / "report.json"
    run = command.check(*paths.values(), "--output", f"json={output}")
    reports = json.loads(output.read_text(encoding="utf-8"))["reports"]
    return Checked(
        run.code,
        dict(zip(paths, reports, strict=True)),
        run.stdout,
        {decision["decision_id"]: decision for decision in decisions(command.state)},
        sorted(path.name for path in (folder / "home").iterdir()),
    )


@pytest.mark.parametrize("name", BAD)
def test_it_is_denied_with_a_place_and_a_remedy_and_recorded(name: str, checked: Checked) -> None:
    bad, report = BAD[name], checked.reports[name]
    assert (report["exit"], report["decision"]["outcome"]) == (bad.exit, "deny")
    assert bad.code in codes(report)
    found = [finding for finding in report["findings"] if finding["code"] == bad.code]
    told = [f"{finding['requirement']} {finding['subject']} {_place(finding)}" for finding in found]
    assert any(bad.says in one and bad.place in one for one in told), told
    assert all(finding["remedy"] for finding in report["findings"])
    recorded = checked.recorded[report["decision"]["decision_id"]]
    assert (recorded["outcome"], recorded["mode"]) == ("deny", "check")
    assert {finding["code"] for finding in recorded["findings"]} == set(codes(report))


def _place(finding: Mapping[str, Any]) -> str:
    where = finding["where"] or {}
    return f"{where.get('file')}:{where.get('line')} {where.get('field')}"


def test_every_bad_input_is_recorded_and_the_exit_code_is_the_worst(checked: Checked) -> None:
    assert checked.code == 2
    assert len(checked.recorded) == len(BAD)
    assert checked.files == ["report.json", "state"]


def test_a_file_name_cannot_forge_a_line_of_the_report(checked: Checked) -> None:
    assert not [one for one in checked.text.splitlines() if one.lstrip().startswith("::")]
    assert re.search(r"a.{1,4}::error::b", checked.text)


def test_the_message_names_the_file_only_once(checked: Checked) -> None:
    """`x/bundle.yaml:4: `x/bundle.yaml` has the key …` says it twice, and the place says it a third time."""
    finding = checked.reports["duplicate-key"]["findings"][0]
    assert finding["requirement"].count("bundle.yaml") <= 1


@pytest.mark.parametrize("name", ["unknown-key", "wrong-types", "id-with-newline", "another-format"])
def test_an_invalid_field_is_reported_with_the_kind_of_its_error(name: str, checked: Checked) -> None:
    """Otherwise a person sees `fits format 1` and has to guess whether it is missing, unknown or of a wrong type."""
    words = {"unknown-key": "unknown", "wrong-types": "number", "id-with-newline": "form", "another-format": "range"}
    (finding,) = [one for one in checked.reports[name]["findings"] if one["code"] == "bundle_invalid"]
    assert words[name] in finding["found"]


@pytest.mark.full
def test_a_path_that_is_not_utf_8_is_reported_as_such(command: Command, tmp_path: Path) -> None:
    (report,) = command.reports(edited("offline_fixture", tmp_path / os.fsdecode(b"caf\xe9")))
    assert report["exit"] == 2
    assert "UTF-8" in report["findings"][0]["requirement"] + report["findings"][0]["remedy"]
    assert len(decisions(command.state)) == 1


@pytest.mark.full(after=1)
@pytest.mark.parametrize("option", ["--principal", "--run", "--approval"])
def test_a_recorded_option_that_is_not_utf_8_is_a_usage_error(option: str, command: Command) -> None:
    run = command("decide", "license", option, os.fsdecode(b"caf\xe9"), stdin='{"license": "MIT"}')
    run.refused(f"'{option}': it is not UTF-8 text")


@pytest.mark.full
def test_a_path_that_is_too_long_is_a_recorded_deny(command: Command) -> None:
    run = command.check(GOOD, "x" * 5000, "--format", "json")
    assert (run.code, [report["exit"] for report in run.json["reports"]]) == (2, [0, 2])
    assert len(decisions(command.state)) == 2


@pytest.mark.full
def test_a_path_below_a_closed_folder_is_a_recorded_deny(command: Command, tmp_path: Path) -> None:
    bundle = edited("offline_fixture", tmp_path / "closed" / "bundle")
    (tmp_path / "closed").chmod(0)
    run = command.check(bundle, "--format", "json", prefix=ordinary())
    (tmp_path / "closed").chmod(0o700)
    assert run.code == 2, run.stderr
    (report,) = run.json["reports"]
    assert codes(report) == [UNREADABLE]
    assert "permissions" in report["findings"][0]["remedy"]
    assert len(decisions(command.state)) == 1


@pytest.mark.full(after=1)
@pytest.mark.parametrize("newline", [b"\r\n", b"\n"], ids=["windows", "with-a-byte-order-mark"])
def test_byte_order_marks_and_windows_newlines_are_accepted(newline: bytes, command: Command, tmp_path: Path) -> None:
    bundle = edited("offline_fixture", tmp_path / "bundle")
    data = (BUNDLES / "offline_fixture" / "bundle.yaml").read_bytes()
    mark = b"\xef\xbb\xbf" if newline == b"\n" else b""
    (bundle / "bundle.yaml").write_bytes(mark + data.replace(b"\n", newline))
    assert command.check(bundle).code == 0


# policies


def replaced(file: Path, old: str, new: str) -> int:
    """Replace text that stands exactly once; returns its line."""
    whole = file.read_text(encoding="utf-8")
    assert whole.count(old) == 1, f"{old!r} stands {whole.count(old)} times in {file.name}"
    file.write_text(whole.replace(old, new), encoding="utf-8")
    return whole[: whole.index(old)].count("\n") + 1


SCHEMES = "schemes: [https]"
RULE = "rego/admission/requirements/source/extra.rego"
HEAD = "package admission.requirements.source.extra\n\nimport future.keywords.not\n\n"


@dataclass(frozen=True, slots=True)
class BadPolicy:
    """A change to a copy of policy/, rego/ and bundles/default, and what must be said about it."""

    change: Callable[[Path], object]
    says: tuple[str, ...]


def extra(rule: str) -> Callable[[Path], object]:
    return lambda root: (root / RULE).write_text(HEAD + rule, encoding="utf-8")


BAD_POLICIES: dict[str, BadPolicy] = {
    "syntax-error": BadPolicy(extra("broken if {\n"), (f"{RULE}:", "unexpected")),
    "rule-without-a-code": BadPolicy(
        extra("# METADATA\n# title: T\n# description: D\n# custom:\n#   remedy: R\nheld if input.now > 0\n"),
        (f"{RULE}:", "code"),
    ),
    "value-of-another-type": BadPolicy(
        lambda root: replaced(root / "policy/networks.yaml", SCHEMES, "schemes: 7"), ("networks.yaml:", "schemes")
    ),
    "value-with-a-duplicate-key": BadPolicy(
        lambda root: replaced(root / "policy/networks.yaml", SCHEMES, f"{SCHEMES}\n{SCHEMES}"),
        ("networks.yaml:", "twice"),
    ),
    "document-removed": BadPolicy(lambda root: (root / "policy/sandbox.yaml").unlink(), ("sandbox.yaml", "missing")),
}


@pytest.mark.full(after=1)
@pytest.mark.parametrize("name", BAD_POLICIES)
def test_an_invalid_policy_denies_everything_says_where_and_ends_with_5(
    name: str, command: Command, tmp_path: Path
) -> None:
    for folder in ("policy", "rego", "bundles/default"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    BAD_POLICIES[name].change(tmp_path)
    options = ("--policy", "policy", "--rego", "rego", "--recipe", "bundles/default")
    run = command.check(ROOT / GOOD, *options, "--format", "json", cwd=tmp_path)
    (report,) = run.json["reports"]
    assert (run.code, report["decision"]["outcome"], codes(report)) == (5, "deny", ["engine.policy_invalid"])
    (finding, *_) = report["findings"]
    told = f"{finding['requirement']} {_place(finding)}"
    assert all(one in told for one in BAD_POLICIES[name].says), told
    assert finding["remedy"]
    (recorded,) = decisions(command.state)
    assert (recorded["outcome"], recorded["policy"]) == ("deny", None)


@pytest.mark.full
def test_every_invalid_option_value_is_reported_and_nothing_is_recorded(command: Command) -> None:
    wrong = [option for key in ("MIT", "0BSD") for option in ("--values", f"licenses.licenses.{key}.decision=perhaps")]
    run = command.check(GOOD, *wrong)
    assert (run.code, run.stdout, decisions(command.state)) == (2, "", [])
    assert all(f"`licenses.{key}.decision` must be" in run.stderr for key in ("MIT", "0BSD"))
