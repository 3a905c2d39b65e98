"""`engine decide POINT` as a pipeline calls it: a request in, one enforced and recorded decision out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.points.registry import POINTS
from tests.command import Command, Run, codes, decisions
from tests.conftest import BUNDLES, NOW, case


def license_request(name: str) -> Any:
    """The request of a case of point `license`."""
    return case("license", name).case.request


def source_request(name: str) -> dict[str, Any]:
    return {"path": str(BUNDLES / name), "digest": None}


def decide(command: Command, point: str, request: Any, *options: str) -> Run:
    """Ask by standard input."""
    return command("decide", point, "--now", NOW, *options, stdin=json.dumps(request))


NOTHING = {"path": None, "digest": None}
ANSWERS: dict[str, tuple[Any, int, str, list[str]]] = {
    "source-allow": (source_request("offline_fixture"), 0, "allow", []),
    "source-deny": (source_request("hash_mismatch"), 1, "deny", ["content_hash_mismatch"]),
    "source-confirm": (source_request("license_review_required"), 3, "confirm", ["license_review_required"]),
    "source-unreadable": (NOTHING | {"path": "nowhere"}, 2, "deny", ["engine.input_unreadable"]),
    "source-no-bundle": (NOTHING, 1, "deny", ["bundle_missing", "records_missing"]),
    "license-allow": (license_request("accepted"), 0, "allow", []),
    "license-deny": (license_request("label_unknown"), 1, "deny", ["license_unknown"]),
    "license-confirm": (license_request("review_required"), 3, "confirm", ["license_review_required"]),
}


@pytest.mark.full(after=1)
@pytest.mark.parametrize("name", ANSWERS)
def test_the_answer_the_exit_code_and_the_record_agree(name: str, command: Command) -> None:
    (request, *wanted), point = ANSWERS[name], name.partition("-")[0]
    run = decide(command, point, request)
    answer = run.json
    assert [run.code, answer["outcome"], codes(answer)] == wanted
    assert (answer["point"], answer["mode"]) == (point, "check")  # a time to try makes it a dry run
    assert (answer["limits"] is not None) == (answer["outcome"] == "allow")
    assert all(finding["requirement"] and finding["remedy"] for finding in answer["findings"])
    (recorded,) = decisions(command.state)
    for key in ("decision_id", "point", "mode", "outcome", "limits", "policy", "input_digest"):
        assert recorded[key] == answer[key], key
    assert [finding["code"] for finding in recorded["findings"]] == [finding["code"] for finding in answer["findings"]]


def test_an_unknown_license_is_answered_with_the_nearest_one(command: Command) -> None:
    request = license_request("label_unknown") | {"license": "Apache Two Licence"}
    run = decide(command, "license", request, "--format", "text")
    assert "found: it cannot be read; did you mean `Apache-2.0`?" in run.stdout


BAD_REQUESTS: dict[str, tuple[bytes, str, str]] = {
    "empty": (b"", "engine.input_unreadable", "standard input"),
    "not-yaml": (b"{path: [", "engine.input_unreadable", "standard input:"),
    "duplicate-key": (b'{"path": null, "path": "a", "digest": null}', "engine.input_unreadable", "twice"),
    "not-finite": (b'{"path": NaN, "digest": null}', "engine.input_unreadable", "finite"),
    "list": (b"[]", "engine.request_invalid", "`source`"),
    "field-missing": (b'{"path": null}', "engine.request_invalid", "`digest`"),
    "field-unknown": (b'{"path": null, "digest": null, "outcome": "allow"}', "engine.request_invalid", "`outcome`"),
    "digest-malformed": (b'{"path": "a", "digest": "md5:1"}', "engine.request_invalid", "`digest`"),
    "path-with-zero-byte": (b'{"path": "a\\u0000b", "digest": null}', "engine.input_unreadable", "a?b"),
}


@pytest.mark.full(after=1)
@pytest.mark.parametrize("way", ["standard input", "file"])
def test_a_bad_request_is_a_recorded_deny_that_says_what_is_wrong(way: str, command: Command, tmp_path: Path) -> None:
    """Half of them each way: both are read by the same reader."""
    half = list(BAD_REQUESTS.items())[0 if way == "file" else 1 :: 2]
    for number, (name, (request, code, said)) in enumerate(half, start=1):
        if way == "file":
            file = tmp_path / f"{name}.json"
            file.write_bytes(request)
            run, place = command("decide", "source", "-i", file), str(file)
        else:
            run, place = command("decide", "source", stdin=request), "standard input"
        assert run.code == 2, name
        answer = run.json
        assert (answer["outcome"], codes(answer)) == ("deny", [code]), name
        assert said.replace("standard input", place) in answer["findings"][0]["requirement"], name
        assert answer["findings"][0]["remedy"], name
        assert len(decisions(command.state)) == number, name


@pytest.mark.full
def test_a_file_that_is_not_there_is_a_recorded_deny(command: Command) -> None:
    run = command("decide", "source", "-i", "/nonexistent.json")
    assert (run.code, codes(run.json)) == (2, ["engine.input_unreadable"])
    assert "/nonexistent.json" in run.json["findings"][0]["requirement"]
    assert len(decisions(command.state)) == 1


def test_a_request_may_be_yaml(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "request.yaml"
    file.write_text(f"# which source bundle\npath: {BUNDLES / 'offline_fixture'}\ndigest: null\n", encoding="utf-8")
    assert command("decide", "source", "-i", file, "--now", NOW).code == 0


@pytest.mark.full
def test_an_unknown_point_is_refused_with_the_list_of_points(command: Command) -> None:
    run = command("decide", "nowhere", stdin="{}")
    run.refused("`nowhere`")
    assert all(point in run.stderr for point in POINTS)


@pytest.mark.full
def test_values_and_time_change_the_outcome(command: Command) -> None:
    request = source_request("offline_fixture")
    refused = decide(command, "source", request, "--values", "licenses.licenses.CC-BY-4.0.decision=refuse")
    assert (refused.code, codes(refused.json)) == (1, ["license_incompatible"])
    late = command("decide", "source", "--now", "2036-01-01T00:00:00Z", stdin=json.dumps(request))
    assert (late.code, codes(late.json)) == (1, ["retention_expired"])
    wrong = decide(command, "source", request, "--values", "licenses.licenses.MIT.decision=perhaps")
    assert (wrong.code, wrong.stdout) == (2, "")
    assert len(decisions(command.state)) == 2


@pytest.mark.full
def test_only_without_a_value_or_time_to_try_it_is_enforced(command: Command) -> None:
    """A caller must not choose the policy or the clock of an enforced decision."""
    request = json.dumps(license_request("accepted"))
    for options, mode in (
        ((), "enforce"),
        (("--now", NOW), "check"),
        (("--values", "licenses.licenses.ISC.decision=review"), "check"),
    ):
        run = command("decide", "license", *options, stdin=request)
        assert (run.code, run.json["outcome"], run.json["mode"]) == (0, "allow", mode)
    assert [decision["mode"] for decision in decisions(command.state)] == ["enforce", "check", "check"]


def test_decide_and_check_give_one_decision(command: Command) -> None:
    name = "mixed_licenses"
    run = decide(command, "source", source_request(name))
    (report,) = command.reports(BUNDLES / name)
    volatile = {"decision_id", "input_digest"}  # who decides is a part of the input, who only checks is nobody
    answers = [{key: answer[key] for key in answer.keys() - volatile} for answer in (run.json, report["decision"])]
    assert answers[0] == answers[1]
    assert len(decisions(command.state)) == 2


def test_it_explains_to_people_what_it_decided_and_on_which_facts(command: Command) -> None:
    request = json.dumps(license_request("accepted") | {"license": "WTFPL-9", "decisions": []})
    run = command("decide", "license", "--format", "text", "--explain", stdin=request)
    assert run.code == 1
    assert run.stdout.startswith("DENY standard input (license for purpose train)")
    for said in ("required: ", "fix: ", "rule: rego/", 'purpose = "train"', "license.stated = true"):
        assert said in run.stdout, run.stdout


@pytest.mark.parametrize(
    ("point", "name", "found"),
    [
        ("episode", "invented_key", "problems/admin\n"),
        ("episode", "resolution_missing", "problems/propose_resolution\n"),
        ("provisioning", "turns_as_text", "found: problems constraints.max_turns type\n"),
    ],
)
def test_it_names_each_field_that_does_not_fit_a_schema(command: Command, point: str, name: str, found: str) -> None:
    request = case(point, name).case.request
    assert found in decide(command, point, request, "--format", "text").stdout
