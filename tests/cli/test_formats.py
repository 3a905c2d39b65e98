"""Every format on hand-made reports: what it says, that it stays well-formed, that it hides nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from syrupy.assertion import SnapshotAssertion

from engine.cli.formats import Context, ReportFormat, render
from engine.cli.formats.show import clean, relative
from engine.errors import Exit, Location
from engine.model import Approval, Decision, Finding, Level, Limits, Mode, Outcome, Revisions
from engine.policy_bundle.catalogue import PolicyRow
from engine.reports.explain import Explained, Report
from tests.expect import there

RULES, VALUES, INPUT = (f"sha256:{digit * 64}" for digit in "123")
HOSTILE = "a\nb\r\n\x1b[31mred\x1b[0m\u202egnp ]]> <x a='1'> ::error file=x,line=1::y ##[add-mask]z %0A\x00\x85\ufffe"
EXITS = {Outcome.ALLOW: Exit.ALLOW, Outcome.CONFIRM: Exit.CONFIRM, Outcome.DENY: Exit.DENY}


class Allowed(Limits):
    """Limits of a kind that a point could have."""

    purpose: str
    hosts: list[str]
    max_requests: int


def found(
    code: str = "license_unknown",
    subject: str | None = "records/contacts-2",
    level: Level = Level.DENY,
    line: int | None = 31,
    **words: str,
) -> Explained:
    """A finding with everything that explains it."""
    message = words.get("requirement", "The license of every record is in our table")
    remedy = words.get("remedy", "Ask compliance to decide on the license in policy/licenses.yaml")
    return Explained(
        Finding(code=code, level=level, requirement=message, subject=subject, remedy=remedy),
        None if line is None else Location("bundles/contacts/bundle.yaml", line, "records.1.license"),
        Location("rego/admission/requirements/source/license.rego", 12),
        (("owasp", "ASI04"), ("row", "A16")),
        (
            PolicyRow("licenses.licenses.WTFPL", None, None),
            PolicyRow("licenses.default", {"decision": "refuse"}, Location("policy/licenses.yaml", 7)),
        ),
    )


def reported(*explained: Explained, path: str = "bundles/contacts", limits: Limits | None = None, **how: Any) -> Report:
    """A report whose outcome follows from its findings."""
    levels = {item.finding.level for item in explained}
    outcome = Outcome.CONFIRM if Level.CONFIRM in levels else Outcome.ALLOW
    outcome = Outcome.DENY if Level.DENY in levels else outcome
    decision = Decision(
        decision_id="d-1",
        point="source",
        mode=how.get("mode", Mode.CHECK),
        outcome=outcome,
        findings=tuple(item.finding for item in explained),
        limits=limits,
        policy=how.get("policy", Revisions(rules=RULES, values=VALUES)),
        input_digest=INPUT,
    )
    subjects = how.get("subjects", ("records/contacts-1", "records/contacts-2", "records/contacts-3"))
    title = how.get("title", "contacts-2026-11")
    return Report(path, title, decision, explained, subjects, how.get("exit", EXITS[outcome]))


def allowed() -> Report:
    return reported(
        path="bundles/good", limits=Allowed(purpose="train", hosts=["api.example.org"], max_requests=3), title="good-1"
    )


def warned() -> Report:
    return reported(found("retention_short", None, Level.WARN, requirement="The retention lasts a year", line=None))


def confirmed() -> Report:
    item = found(
        "license_review_required", "records/contacts-3", Level.CONFIRM, 44, requirement="No license needs review"
    )
    row = PolicyRow("licenses.licenses.cc-by", None, None, ("CC-BY-4.0", "CC-BY-3.0"))
    return reported(replace(item, found="purpose train", rows=(row,)), path="bundles/review")


def denied() -> Report:
    return reported(
        found("purpose_allowed", None, line=3, requirement="The purpose is one we take sources for"),
        found("content_missing", "records/contacts-1", line=20, requirement="The content of every record is there"),
        found("license_unknown", "records/contacts-1", line=22),
        found("license_unknown", "records/contacts-2"),
        found("license_unknown", "records/contacts-4", line=52),
        subjects=tuple(f"records/contacts-{number}" for number in range(1, 6)),
    )


def fault(code: str, says: str, remedy: str, where: Location | None = None) -> Explained:
    """What kept the engine from deciding."""
    return Explained(Finding(code=code, level=Level.DENY, requirement=says, subject=None, remedy=remedy), where)


def faulted() -> Report:
    remedy = "run `engine doctor` to see what this machine lacks"
    item = fault("policy_unavailable", "OPA gave no answer in 60 seconds", remedy)
    return reported(item, path="bundles/slow", policy=None, exit=Exit.FAILED_CLOSED)


def unreadable() -> Report:
    says, where = "bundle.yaml:4: `bundle.yaml` has the key `id` twice", Location("bundles/twice/bundle.yaml", 4)
    item = fault("engine.input_unreadable", says, "keep one of them", where)
    return reported(item, path="bundles/twice", title="could not be read", subjects=(), exit=Exit.UNREADABLE)


def hostile() -> Report:
    where = Location(f"dir/{HOSTILE}\udc80 name.yaml", 1, HOSTILE)
    item = replace(found(HOSTILE, f"records/{HOSTILE}", requirement=HOSTILE, remedy=HOSTILE), where=where)
    item = replace(item, labels=((HOSTILE, HOSTILE),), rows=(PolicyRow(HOSTILE, HOSTILE, where),), rule=where)
    return reported(item, path=f"{HOSTILE}\udc80", title=HOSTILE, subjects=(f"records/{HOSTILE}", HOSTILE))


def large(count: int = 10_000) -> Report:
    """Every record refused, all for one reason, but one that is in order."""
    items = tuple(found(subject=f"records/r-{number}", line=number + 10) for number in range(1, count))
    return reported(*items, subjects=tuple(f"records/r-{number}" for number in range(count)))


ALL = {
    "allowed": [allowed()],
    "warned": [warned()],
    "confirmed": [confirmed()],
    "denied": [denied()],
    "faulted": [faulted()],
    "unreadable": [unreadable()],
    "several": [allowed(), confirmed(), denied(), unreadable(), faulted()],
}
WORST = (Exit.FAILED_CLOSED, Exit.UNREADABLE, Exit.DENY, Exit.CONFIRM, Exit.ALLOW)


def told(name: str, reports: list[Report], **how: Any) -> str:
    worst = next((exit_ for exit_ in WORST if any(report.exit is exit_ for report in reports)), Exit.ALLOW)
    return render(ReportFormat(name), reports, Context(exit=worst, version="1.2.3", **how))


@pytest.mark.parametrize("name", [*ReportFormat])
@pytest.mark.parametrize("case", ["several", "warned"])
def test_each_format_reads_like_this(name: str, case: str, snapshot: SnapshotAssertion) -> None:
    assert told(name, ALL[case]) == snapshot


def test_explain_shows_each_subject_with_rule_labels_revisions_and_limits(snapshot: SnapshotAssertion) -> None:
    assert told("text", [allowed(), denied()], explain=True) == snapshot


def test_an_approved_finding_shows_its_approval_instead_of_a_fix() -> None:
    report = confirmed()
    used = Approval(id="a1", state="used", expires_at="1970-01-01T00:00:00Z")
    decision = report.decision.model_copy(update={"outcome": Outcome.ALLOW, "approval": used})
    text = told("text", [replace(report, decision=decision, exit=Exit.ALLOW)])
    assert "      approved (a1)\n" in text
    assert "fix:" not in text
    assert "fix:" in told("text", [report])


def test_an_invalid_request_is_not_called_unreadable() -> None:
    item = fault("engine.request_invalid", "`license` must be text", "send text")
    text = told("text", [reported(item, path="request.json", title="", subjects=(), exit=Exit.UNREADABLE)])
    assert text.startswith("DENY (invalid request) request.json\n")
    assert "the request does not fit its point" in text
    assert "unreadable" not in text


@pytest.mark.parametrize("name", [*ReportFormat])
def test_text_ends_with_one_line_feed_and_is_the_same_again(name: str) -> None:
    first = told(name, ALL["several"])
    assert first == told(name, ALL["several"])
    assert first.endswith("\n")
    assert not first.endswith("\n\n")


@pytest.mark.parametrize("name", [*ReportFormat])
def test_no_report_is_still_well_formed(name: str) -> None:
    text = told(name, [])
    assert text == "" or text.endswith("\n")


@pytest.mark.parametrize("name", [*ReportFormat])
def test_deny_without_any_finding_does_not_look_like_an_allow(name: str) -> None:
    decision = denied().decision.model_copy(update={"findings": ()})
    report = replace(denied(), decision=decision, explained=())
    assert re.search(r"deny|DENY|error", told(name, [report]))


@pytest.mark.parametrize("name", ["text", "github", "junit"])
def test_hostile_text_stays_text(name: str) -> None:
    text = told(name, [hostile()], explain=True)
    assert not re.search(r"[^\n\x20-\x7e\u2026]", text)
    assert "##[" not in text
    commands = [line for line in text.splitlines() if line.lstrip().startswith("::")]
    assert len(commands) == (1 if name == "github" else 0)


@pytest.mark.parametrize("width", range(20, 120, 7))
def test_no_wrapped_line_of_text_starts_a_workflow_command(width: int) -> None:
    lines = told("text", [hostile()], width=width, explain=True).splitlines()
    assert not [line for line in lines if line.lstrip().startswith("::")]


@pytest.mark.parametrize("name", ["json", "sarif"])
def test_hostile_text_survives_json(name: str) -> None:
    text = told(name, [hostile()])
    assert text.isascii()
    json.loads(text)["reports" if name == "json" else "runs"][0]
    text.encode("utf-8")
    assert not re.search(r"(?<!\\)\\ud[c-f]80", text)


def test_text_wraps_to_its_width_and_keeps_paths_whole() -> None:
    long = f"bundles/{'with spaces and a very long name ' * 4}end/bundle.yaml"
    item = replace(found(remedy="Replace the record. " * 10), where=Location(long, 31))
    lines = told("text", [reported(item)], width=60).splitlines()
    assert any(f"{long}:31" in line for line in lines)
    assert [line for line in lines if len(line) > 60 and long not in line] == []


def test_text_is_plain_without_color_and_the_same_words_with_it() -> None:
    plain, colored = told("text", ALL["several"]), told("text", ALL["several"], color=True)
    assert "\x1b" not in plain
    assert "\x1b[32m" in colored
    assert re.sub(r"\x1b\[[0-9]*m", "", colored) == plain


@pytest.mark.full
def test_text_of_ten_thousand_records_fits_a_screen_and_counts_the_rest(snapshot: SnapshotAssertion) -> None:
    text = told("text", [large()])
    assert len(text.splitlines()) < 30
    assert "9,989 more" in text
    assert text == snapshot


def test_text_of_ten_thousand_good_records_names_twenty() -> None:
    text = told("text", [reported(subjects=tuple(f"records/r-{number}" for number in range(10_000)))])
    assert text.count("records/r-") == 20
    assert "… and 9,980 more" in text


@pytest.mark.full
def test_text_counts_what_it_leaves_out_when_every_record_differs() -> None:
    items = tuple(
        found(subject=f"records/r-{number}", requirement=f"It holds for {number}") for number in range(10_000)
    )
    subjects = tuple(f"records/r-{number}" for number in range(10_000))
    assert "… and 9,950 more subjects" in told("text", [reported(*items, subjects=subjects)])
    whole = tuple(found(subject=None, requirement=f"It holds for {number}") for number in range(10_000))
    assert "… and 9,950 more findings" in told("text", [reported(*whole)])


def test_explain_leaves_nothing_out_of_ten_thousand_records() -> None:
    text = told("text", [large()], explain=True)
    assert {f"  records/r-{number}" for number in range(1, 10_000)} <= {*text.splitlines()}


@pytest.mark.full(after=1)
@pytest.mark.parametrize("name", [*ReportFormat])
def test_time_grows_with_the_findings_not_with_their_square(name: str) -> None:
    def seconds(count: int) -> float:
        report = large(count)
        started = time.process_time()
        told(name, [report], explain=True)
        return time.process_time() - started

    seconds(100)
    assert seconds(10_000) < 30 * seconds(1_000) + 0.5


def test_enforced_decision_is_not_called_a_dry_run() -> None:
    enforced = reported(found(), mode=Mode.ENFORCE)
    assert all("dry run" not in told(name, [enforced]) for name in ReportFormat)
    assert all("dry run" in told(name, [denied()]) for name in ("text", "github", "junit"))


def test_json_holds_the_decision_as_it_was_recorded() -> None:
    document = json.loads(told("json", [denied(), faulted()]))
    assert {key: document[key] for key in ("format", "mode", "exit")} == {"format": 1, "mode": "check", "exit": 4}
    first = document["reports"][0]
    assert Decision.model_validate_json(json.dumps(first["decision"])) == denied().decision
    assert first["exit"] == 1
    assert first["findings"][1] == {
        "code": "content_missing",
        "level": "deny",
        "subject": "records/contacts-1",
        "requirement": "The content of every record is there",
        "remedy": "Ask compliance to decide on the license in policy/licenses.yaml",
        "where": {"file": "bundles/contacts/bundle.yaml", "line": 20, "field": "records.1.license"},
        "rule": {"file": "rego/admission/requirements/source/license.rego", "line": 12},
        "labels": {"owasp": "ASI04", "row": "A16"},
        "found": None,
        "policy_rows": [
            {"path": "licenses.licenses.WTFPL", "value": None, "nearest": [], "where": None},
            {
                "path": "licenses.default",
                "value": {"decision": "refuse"},
                "nearest": [],
                "where": {"file": "policy/licenses.yaml", "line": 7},
            },
        ],
    }
    assert json.loads(told("json", [allowed()]))["reports"][0]["decision"]["limits"]["max_requests"] == 3


@pytest.mark.parametrize("reports", [*ALL.values(), [hostile()], []], ids=[*ALL, "hostile", "none"])
def test_sarif_keeps_to_the_standard(reports: list[Report]) -> None:
    document = json.loads(told("sarif", reports))
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    ids = [rule["id"] for rule in rules]
    assert ids == sorted(set(ids))
    for rule in rules:
        assert rule["defaultConfiguration"]["level"] in {"none", "note", "warning", "error"}
        assert rule["help"]["text"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in {"none", "note", "warning", "error"}
        assert (result.get("kind", "fail") == "fail") == (result["level"] != "none")
        assert result["message"]["text"]
        for location in result["locations"]:
            _located(location)
        assert result["properties"]["mode"] == "check"
    (invocation,) = run["invocations"]
    assert isinstance(invocation["executionSuccessful"], bool)
    assert isinstance(invocation["exitCode"], int)


def _located(location: dict[str, Any]) -> None:
    uri = location["physicalLocation"]["artifactLocation"]["uri"]
    assert re.fullmatch(r"([A-Za-z0-9._~/-]|%[0-9A-F]{2})+", uri)
    assert location["physicalLocation"].get("region", {"startLine": 1})["startLine"] >= 1
    for logical in location.get("logicalLocations", []):
        assert logical["fullyQualifiedName"].endswith(logical["name"])


def test_sarif_maps_levels() -> None:
    results = json.loads(told("sarif", [denied(), confirmed(), warned(), allowed()]))["runs"][0]["results"]
    levels = {(result["ruleId"], result.get("kind", "fail"), result["level"]) for result in results}
    assert levels == {
        ("purpose_allowed", "fail", "error"),
        ("content_missing", "fail", "error"),
        ("license_unknown", "fail", "error"),
        ("license_review_required", "fail", "warning"),
        ("retention_short", "fail", "note"),
    }


@pytest.mark.parametrize(("case", "successful"), [("denied", True), ("faulted", False), ("unreadable", False)])
def test_sarif_distinguishes_a_deny_from_an_engine_failure(case: str, successful: bool) -> None:  # noqa: FBT001
    (invocation,) = json.loads(told("sarif", ALL[case]))["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is successful
    assert ("toolExecutionNotifications" in invocation) is not successful


def test_sarif_names_files_relative_to_the_base_and_quotes_them() -> None:
    item = replace(found(), where=Location("/check out/a b/#1?.yaml", 3))
    outside = replace(found("other"), where=Location("/elsewhere/x.yaml", 3))
    document = json.loads(told("sarif", [reported(item, outside)], base="/check out"))
    places = [result["locations"][0]["physicalLocation"] for result in document["runs"][0]["results"]]
    assert [place["artifactLocation"]["uri"] for place in places] == ["a%20b/%231%3F.yaml", "file:///elsewhere/x.yaml"]


def test_sarif_message_has_no_link_and_no_placeholder() -> None:
    document = json.loads(told("sarif", [reported(found(requirement="see [here](http://evil.example) {0}"))]))
    assert "see \\[here\\](http://evil.example) {{0}}" in document["runs"][0]["results"][0]["message"]["text"]


@pytest.mark.parametrize(
    ("case", "tests", "failures", "errors", "skipped"),
    [
        ("allowed", 4, 0, 0, 0),
        ("warned", 4, 0, 0, 0),
        ("confirmed", 4, 2, 0, 0),
        ("denied", 6, 4, 0, 0),
        ("faulted", 4, 0, 1, 3),
        ("unreadable", 1, 0, 1, 0),
    ],
)
def test_junit_counts(case: str, tests: int, failures: int, errors: int, skipped: int) -> None:
    root = ET.fromstring(told("junit", ALL[case]))  # noqa: S314 (our own text)
    counts = {"tests": tests, "failures": failures, "errors": errors, "skipped": skipped}
    assert {name: int(root[0].attrib[name]) for name in counts} == counts
    assert {name: int(root.attrib[name]) for name in ("tests", "failures", "errors")}.items() <= counts.items()
    tags = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
    assert {name: len([*root.iter(tag)]) for name, tag in tags.items()} == counts


def test_junit_of_hostile_text_is_xml_and_says_all_of_it() -> None:
    root = ET.fromstring(told("junit", [hostile()]))  # noqa: S314 (our own text)
    (failure,) = (case.find("failure") for case in root.iter("testcase") if case.get("name", "").startswith("records/"))
    assert "]]> <x a='1'>" in (there(failure).text or "")


def test_github_escapes_what_would_end_a_property_or_a_command() -> None:
    item = replace(found("a,b:c%"), where=Location("dir,x:y/100%.yaml", 3))
    (line,) = told("github", [reported(item)]).splitlines()
    assert line.startswith("::error file=dir%2Cx%3Ay/100%25.yaml,line=3,title=a%2Cb%3Ac%25::records/contacts-2: ")
    assert "%0Afix: " in line


def test_github_lists_the_first_findings_and_counts_the_rest() -> None:
    lines = told("github", [large()]).splitlines()
    assert len(lines) == 51
    assert lines[-1].startswith("::error title=deny::")
    assert "9,949 more findings" in lines[-1]


def test_clean_makes_every_character_visible() -> None:
    assert clean("plain ü 漢") == "plain ü 漢"
    assert clean("a\nb\x1b\u202e\u2028\udc80") == "a\\nb\\x1b\\u202e\\u2028\\udc80"


def test_relative_leaves_what_is_not_below_the_base() -> None:
    assert relative("/a/b/c.yaml", "/a") == "b/c.yaml"
    assert relative("/ab/c.yaml", "/a") == "/ab/c.yaml"
    assert relative("./b/../c.yaml", "/a") == "c.yaml"
    assert relative("/a/c.yaml", "") == "/a/c.yaml"


def test_formats_are_imported_when_used() -> None:
    program = (
        "import sys, engine.cli.formats as f; context = f.Context(exit=0); "
        "heavy = ('pydantic', 'rich', 'engine.model', 'engine.cli.formats.text', 'engine.cli.formats.json'); "
        "print([m for m in heavy if m in sys.modules]); f.render('json', [], context); print(heavy[-1] in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines() == ["[]", "True"]
