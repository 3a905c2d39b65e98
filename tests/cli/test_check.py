"""`engine check` as people and pipelines use it: exit codes, trees, formats, other policies, other times."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
import threading
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from syrupy.assertion import SnapshotAssertion

from engine import __version__
from engine.cli import check
from tests.command import Command, Run, codes, decisions, edited, ordinary
from tests.conftest import BUNDLES, NOW, ROOT

FIXTURES = "fixtures/source_bundles"
GOOD, DENIED, REVIEW = (
    f"{FIXTURES}/{name}" for name in ("offline_fixture", "hash_mismatch", "license_review_required")
)
UNREADABLE = "fixtures/source_bundles_unreadable/duplicate_keys"
REFUSE_CC_BY = "licenses.licenses.CC-BY-4.0.decision=refuse"


def broken_state(folder: Path) -> Path:
    """A state in which no record can be written, for root too."""
    (folder / "broken").mkdir()
    (folder / "broken" / "records").write_text("where the folder of records should be", encoding="utf-8")
    return folder / "broken"


def bad_policy(folder: Path) -> Path:
    """Values of which one document is missing."""
    shutil.copytree(ROOT / "policy", folder / "policy")
    (folder / "policy" / "sandbox.yaml").unlink()
    return folder / "policy"


# covers: A14.1
def test_a_field_that_does_not_fit_is_not_counted_as_a_record(command: Command, tmp_path: Path) -> None:
    copy = edited("external_contacts", tmp_path / "copy", lambda document: document["records"][0].pop("export"))
    run = command.check(copy)
    assert "errors/records.0.export" in run.stdout
    assert "1 of 2 without findings: records/cities-1" in run.stdout


@pytest.mark.full(after=1)
@pytest.mark.parametrize(
    ("paths", "options", "wanted"),
    [
        ([GOOD], [], 0),
        ([REVIEW, GOOD], [], 3),
        ([DENIED, REVIEW, GOOD], [], 1),
        ([UNREADABLE, DENIED, REVIEW], [], 2),
        ([UNREADABLE, DENIED], ["--policy", "bad"], 5),
        ([DENIED, UNREADABLE, REVIEW], ["--policy", "bad", "--state", "broken"], 4),
    ],
    ids=["allow", "confirm", "deny", "unreadable", "policy-invalid", "fault"],
)
def test_it_ends_with_the_worst_exit_code(
    paths: list[str], options: list[str], wanted: int, command: Command, tmp_path: Path
) -> None:
    made = {"broken": broken_state, "bad": bad_policy}
    chosen = [str(made[option](tmp_path)) if option in made else option for option in options]
    run = command.check(*paths, *chosen, "--format", "json")
    assert run.code == run.json["exit"] == wanted
    assert [report["path"] for report in run.json["reports"]] == paths
    assert wanted in {report["exit"] for report in run.json["reports"]}
    if "broken" not in options:
        assert len(decisions(command.state)) == len(paths)


def test_an_invalid_source_bundle_is_reported_and_the_others_are_checked(command: Command, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(BUNDLES / "offline_fixture", tree / "good")
    (tree / "wrong").mkdir()
    (tree / "wrong" / "bundle.yml").touch()
    (tmp_path / "empty").mkdir()
    output = tmp_path / "report.xml"
    run = command.check("tree", "empty", "--format", "json", "--output", f"junit={output}", cwd=tmp_path)
    assert (run.code, run.json["exit"]) == (2, 2)
    assert [(report["path"], report["exit"]) for report in run.json["reports"]] == [
        ("tree/good", 0),
        ("tree/wrong", 2),
        ("empty", 2),
    ]
    wrong, empty = (report["findings"][0] for report in run.json["reports"][1:])
    assert "`bundle.yml` looks like a misspelt bundle document" in wrong["requirement"]
    assert wrong["remedy"] == "name it bundle.yaml"
    assert "the source bundle is an empty folder" in empty["requirement"]
    assert ET.fromstring(output.read_text(encoding="utf-8")).get("errors") == "2"  # noqa: S314 (our own output)
    assert len(decisions(command.state)) == 3


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Source bundles at several depths, as folders and archives, with things beside them that are none."""
    top = tmp_path / "tree"
    shutil.copytree(BUNDLES / "offline_fixture", top / "b" / "deep" / "folder")
    shutil.copytree(BUNDLES / "hash_mismatch", top / "a-denied")
    shutil.copytree(BUNDLES / "hash_mismatch", top / "a-denied" / "content" / "inside-another")
    with tarfile.open(top / "c.tar", "w") as tar:
        tar.add(BUNDLES / "offline_fixture", "contacts")
    with zipfile.ZipFile(top / "b" / "d.zip", "w") as archive:
        for path in sorted((BUNDLES / "external_contacts").rglob("*")):
            archive.write(path, path.relative_to(BUNDLES / "external_contacts"))
    (top / "notes").mkdir()
    (top / "notes" / "readme.md").write_text("no source bundle", encoding="utf-8")
    (top / "z-link").symlink_to(BUNDLES / "license_missing")
    return top


@pytest.mark.full
def test_every_source_bundle_of_a_tree_is_checked_once_in_order(command: Command, tree: Path) -> None:
    run = command.check(tree.name, "--format", "json", cwd=tree.parent)
    found = [(report["path"], report["decision"]["outcome"]) for report in run.json["reports"]]
    assert sorted(found) == [
        ("tree/a-denied", "deny"),
        ("tree/b/d.zip", "allow"),
        ("tree/b/deep/folder", "allow"),
        ("tree/c.tar", "allow"),
    ]
    assert found == sorted(found)
    assert run.code == 1
    assert len(decisions(command.state)) == 4


@pytest.mark.full
def test_an_archive_decides_as_its_folder_does(command: Command, tree: Path) -> None:
    folder, archive = command.reports(tree / "b/deep/folder", tree / "c.tar")
    assert folder["decision"]["limits"] == archive["decision"]["limits"]
    denied = edited("retention_over", tree / "over")
    with tarfile.open(tree / "over.tgz", "w:gz") as tar:
        tar.add(denied, ".")
    folder, archive = command.reports(denied, tree / "over.tgz")
    assert codes(folder) == codes(archive) == ["retention_expired"]
    assert archive["findings"][0]["where"]["file"].endswith("over.tgz!/bundle.yaml")


@pytest.mark.parametrize("hidden", ["a folder that may not be listed", "a document that is a folder"])
def test_an_unreadable_entry_of_a_tree_is_reported(hidden: str, command: Command, tree: Path) -> None:
    """A tree with something in it that cannot be looked at must not end with `all are allowed`."""
    shutil.rmtree(tree / "a-denied")
    closed = tree / "closed"
    shutil.copytree(BUNDLES / "hash_mismatch", closed)
    if hidden == "a document that is a folder":
        (closed / "bundle.yaml").unlink()
        (closed / "bundle.yaml").mkdir()
        run = command.check(tree)
    else:
        closed.chmod(0)
        run = command.check(tree, prefix=ordinary())
        closed.chmod(0o700)
    assert run.code == 2, run.stdout
    assert "closed" in run.stdout + run.stderr


def test_several_formats_at_once_report_the_same_result(command: Command, tmp_path: Path) -> None:
    names = ("json", "sarif", "junit", "github")
    options = [text for name in names for text in ("--output", f"{name}={tmp_path / name}")]
    run = command.check(GOOD, DENIED, REVIEW, UNREADABLE, *options)
    assert run.code == 2
    assert run.stdout.startswith("ALLOW fixtures/source_bundles/offline_fixture")
    document = json.loads((tmp_path / "json").read_text(encoding="utf-8"))
    assert [report["decision"]["outcome"] for report in document["reports"]] == ["allow", "deny", "confirm", "deny"]
    results = json.loads((tmp_path / "sarif").read_text(encoding="utf-8"))["runs"][0]["results"]
    refused = {result["ruleId"].rpartition("/")[2] for result in results if result.get("kind", "fail") != "pass"}
    assert {"content_hash_mismatch", "license_review_required", "engine.input_unreadable"} <= refused
    suites = ET.fromstring((tmp_path / "junit").read_text(encoding="utf-8"))  # noqa: S314 (our own output)
    assert (suites.get("failures"), suites.get("errors")) == ("4", "1")  # a record and the whole, of two
    commands = (tmp_path / "github").read_text(encoding="utf-8")
    assert commands.count("::error") == 2
    assert commands.count("::warning") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["github", "home", "json", "junit", "sarif"]
    assert len(decisions(command.state)) == 4  # decided once, told five times


def test_outputs_are_all_written_or_none(command: Command, tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    old.write_text("of yesterday", encoding="utf-8")
    files = (f"json={old}", f"sarif={tmp_path / 'new.sarif'}", f"text={tmp_path / 'nowhere' / 'x'}")
    run = command.check(GOOD, *(text for file in files for text in ("--output", file)))
    run.refused(f"`{tmp_path}/nowhere/x`")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "old.json"]
    assert old.read_text(encoding="utf-8") == "of yesterday"
    assert len(decisions(command.state)) == 1


def test_a_pipe_or_device_as_output_is_written_to_and_not_replaced(command: Command, tmp_path: Path) -> None:
    """`--output /dev/null` or `/dev/stdout` run as root must not take the device away from all users."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard: list[str] = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text(encoding="utf-8")), daemon=True)
    reader.start()
    run = command.check(GOOD, "--output", f"json={pipe}")
    assert pipe.is_fifo(), "the pipe was replaced by a file"
    assert run.code == 0
    reader.join(60)
    assert json.loads(heard[0])["exit"] == 0


def test_an_output_through_a_link_keeps_the_link(command: Command, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "report.json"
    target.write_text("of yesterday", encoding="utf-8")
    (tmp_path / "report.json").symlink_to(target)
    assert command.check(GOOD, "--output", f"json={tmp_path / 'report.json'}").code == 0
    assert (tmp_path / "report.json").is_symlink()
    assert json.loads(target.read_text(encoding="utf-8"))["exit"] == 0


def test_explain_shows_rule_row_revisions_and_limits(command: Command) -> None:
    text = command.check(GOOD, DENIED, "--explain").stdout
    taken = decisions(command.state)
    for decision in taken:
        assert f"decision: {decision['decision_id']} (point source, mode check)" in text
    assert f"rules: {taken[0]['policy']['rules']}" in text
    assert f"values: {taken[0]['policy']['values']}" in text
    assert f'bundle_digest: "{taken[0]["limits"]["bundle_digest"]}"' in text
    assert "rule: rego/admission/requirements/source/" in text
    assert "row A10" in text


def one(run: Run) -> dict[str, Any]:
    """The only report of a run."""
    (report,) = run.json["reports"]
    assert isinstance(report, dict)
    return report


@pytest.mark.full
def test_a_value_on_the_command_line_changes_the_outcome_and_is_named(command: Command) -> None:
    report = one(command.check(GOOD, "--values", REFUSE_CC_BY, "--format", "json"))
    assert (report["exit"], codes(report)) == (1, ["license_incompatible"])
    rows = {row["path"]: row for row in report["findings"][0]["policy_rows"]}
    assert rows["licenses.licenses.CC-BY-4.0"]["value"]["decision"] == "refuse"
    assert one(command.check(GOOD, "--format", "json"))["exit"] == 0  # tried, not kept


def test_an_edited_policy_changes_the_outcome_and_is_named(command: Command, policy: Path) -> None:
    licenses = policy / "licenses.yaml"
    text = licenses.read_text(encoding="utf-8").splitlines()
    (index,) = [number for number, line in enumerate(text) if line.startswith("  CC-BY-4.0:")]
    assert "decision: admit" in text[index]
    text[index] = text[index].replace("decision: admit", "decision: refuse")
    licenses.write_text("\n".join(text) + "\n", encoding="utf-8")
    report = one(command.check(GOOD, "--policy", policy, "--format", "json"))
    assert (report["exit"], codes(report)) == (1, ["license_incompatible"])
    rows = {row["path"]: row for row in report["findings"][0]["policy_rows"]}
    assert rows["licenses.licenses.CC-BY-4.0"]["where"] == {"file": str(licenses), "line": index + 1}
    shipped = command.reports(GOOD)[0]["decision"]["policy"]
    edited_policy = report["decision"]["policy"]
    assert edited_policy["rules"] == shipped["rules"]
    assert edited_policy["values"] != shipped["values"]


def test_the_time_can_be_chosen(command: Command) -> None:
    report = one(command("check", GOOD, "--now", "2036-01-01T00:00:00Z", "--format", "json"))
    assert (report["exit"], codes(report)) == (1, ["retention_expired"])
    assert report["findings"][0]["found"] == "until 2035-11-02"
    (decision,) = decisions(command.state)
    assert decision["input"]["now"] == 2_082_758_400
    assert not decision["time"].startswith("2036")  # the record keeps the true time


# covers: A96
@pytest.mark.full
def test_the_digest_of_an_earlier_check_admits_exactly_that_source_bundle(command: Command, tmp_path: Path) -> None:
    bundle = edited("offline_fixture", tmp_path / "bundle")
    digest = command.reports(bundle)[0]["decision"]["limits"]["bundle_digest"]
    assert command.check(bundle, "--digest", digest).code == 0
    (bundle / "bundle.yaml").write_bytes((bundle / "bundle.yaml").read_bytes() + b"\n")
    report = one(command.check(bundle, "--digest", digest, "--format", "json"))
    assert (report["exit"], codes(report)) == (1, ["bundle_changed"])
    assert report["findings"][0]["found"].startswith("digest sha256:")


# covers: A96
@pytest.mark.full
def test_the_digest_covers_members_that_no_record_names(command: Command, tmp_path: Path) -> None:
    bundle = edited("license_text_beside", tmp_path / "bundle")
    digest = command.reports(bundle)[0]["decision"]["limits"]["bundle_digest"]
    packed = shutil.make_archive(str(tmp_path / "packed"), "gztar", bundle)
    assert command.reports(Path(packed))[0]["decision"]["limits"]["bundle_digest"] == digest
    (bundle / "LICENSE").write_text("CC0-1.0, changed\n", encoding="utf-8")
    report = one(command.check(bundle, "--digest", digest, "--format", "json"))
    assert (report["exit"], codes(report)) == (1, ["bundle_changed"])


def test_files_created_by_operating_systems_need_no_record(command: Command, tmp_path: Path) -> None:
    bundle = edited("offline_fixture", tmp_path / "bundle")
    names = (".DS_Store", "content/.DS_Store", "content/._contacts.json", "content/Thumbs.db", "desktop.ini")
    for name in (*names, "later/.gitkeep", "later/data/.gitkeep", "later/.gitignore"):
        (bundle / name).parent.mkdir(parents=True, exist_ok=True)
        (bundle / name).write_bytes(b"\0")
    packed = shutil.make_archive(str(tmp_path / "packed"), "zip", bundle)
    assert [command.check(path).code for path in (bundle, Path(packed))] == [0, 0]


@pytest.mark.full
def test_undeclared_content_is_reported_by_its_path(command: Command, tmp_path: Path) -> None:
    """Whole folders once, links and what stands beside the folder in an archive too; nothing of it is read out."""
    bundle = edited("offline_fixture", tmp_path / "bundle")
    for name in (".git/config", ".git/objects/aa/bb", "content/old.csv", "content/old/a.csv", "LICENSE/inside"):
        (bundle / name).parent.mkdir(parents=True, exist_ok=True)
        (bundle / name).write_text("x", encoding="utf-8")
    (bundle / "README.md").symlink_to("/etc/hostname")
    report = one(command.check(bundle, "--format", "json"))
    told: dict[str, set[str]] = {finding["code"]: set() for finding in report["decision"]["findings"]}
    for finding in report["decision"]["findings"]:
        told[finding["code"]].add(finding["subject"])
    names = {".git/", "content/old.csv", "content/old/", "LICENSE/", "README.md"}
    assert told == {"content_not_declared": {f"undeclared/{name}" for name in names}}
    notes = {finding["subject"]: finding.get("found") or "" for finding in report["findings"]}
    assert (
        "`README.md` is a link or no file with content of its own; replace it by the file"
        in notes["undeclared/README.md"]
    )
    assert "link" not in notes["undeclared/content/old.csv"]
    assert "undeclared/content/old.csv" in json.dumps(decisions(command.state)[0]["findings"])


@pytest.mark.full
def test_undeclared_files_are_listed_up_to_the_limit(command: Command, tmp_path: Path) -> None:
    bundle = edited("offline_fixture", tmp_path / "bundle")
    for index in range(1_002):
        (bundle / f"{index:04}").touch()
    report = one(command.check(bundle, "--format", "json"))
    subjects = [finding["subject"] for finding in report["decision"]["findings"]]
    assert (len(subjects), subjects[-1]) == (1_001, "undeclared/…")


def test_text_for_people(command: Command, snapshot: SnapshotAssertion) -> None:
    """A good source bundle and three bad ones; no decision id, time or absolute path is in it."""
    names = ("offline_fixture", "hash_mismatch", "unknown_license", "no_network_section")
    assert command.check(*(f"{FIXTURES}/{name}" for name in names)).stdout == snapshot


@pytest.mark.full
def test_a_closed_output_pipe_is_not_an_engine_fault_and_loses_no_decision(command: Command) -> None:
    """As `engine check … | head -1` does."""
    read, write = os.pipe()
    os.close(read)
    done = command.into(write, "check", GOOD, "--now", NOW)
    os.close(write)
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    assert done.returncode != 0
    assert len(decisions(command.state)) == 1


def test_progress_is_reported_from_the_third_second_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = iter([0.0, 0.5, 1.9, 2.1, 2.5, 3.2])
    with monkeypatch.context() as patched:
        patched.setattr("time.monotonic", lambda: next(seconds))
        with check._Progress(2) as progress:
            progress.bundle("a\x1b[2Jb")
            for done in range(1, 5):
                progress.part("hashing", done, 9)
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "[1/2] hashing 2/9 a?[2Jb\n[1/2] hashing 4/9 a?[2Jb\n"


def test_the_version_is_printed(command: Command) -> None:
    run = command("--version")
    assert (run.code, run.stdout.strip(), run.stderr) == (0, __version__, "")


def test_a_link_in_a_tree_is_reported_and_not_followed(command: Command, tmp_path: Path) -> None:
    shutil.copytree(ROOT / GOOD, tmp_path / "tree" / "real")
    (tmp_path / "tree" / "linked").symlink_to(ROOT / DENIED)
    run = command.check(tmp_path / "tree", "--format", "json")
    assert [Path(report["path"]).name for report in run.json["reports"]] == ["real"]
    assert "linked` is a link and is not followed" in run.stderr
