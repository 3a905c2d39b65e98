"""Law 7: the same input gives the same decision, alone, in a batch, served or from the files."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.cases.run import CaseFile, Runner
from engine.drive import run
from engine.engine import Engine
from engine.flow import answer
from engine.model import Mode
from engine.points.registry import POINTS
from engine.policy_bundle.catalogue import Entries
from tests.conftest import ROOT, case_id
from tests.lanes import covering, lane
from tests.laws.asking import DECIDED, codes, context, parts, served_values, taken


@pytest.mark.parametrize("file", lane(DECIDED, codes), ids=case_id)
def test_7_a_repeated_decision_gives_the_same_bytes(file: CaseFile, runner: Runner) -> None:
    engine = runner.at(file)
    fixed = replace(parts(engine), new_id=lambda: "0" * 32)
    twice = [
        run(answer(POINTS[file.case.point], runner.request(file), Mode.CHECK, fixed, context(file))) for _ in range(2)
    ]
    assert twice[0].decision.model_dump_json() == twice[1].decision.model_dump_json()


def test_7_one_by_one_and_in_a_batch_agree(runner: Runner) -> None:
    cases = [taken(runner, file) for file in covering(DECIDED, codes) if not file.case.values]
    engine = cases[0][0]
    documents = [document for _, document, _ in cases]
    one_by_one = [engine.opa.ask("decision", document).result for document in documents]
    assert engine.opa.ask("decisions", {"items": documents}).result == one_by_one


def test_7_the_served_archive_and_the_sources_agree(runner: Runner, tmp_path: Path) -> None:
    """Every requirement asked by itself, by `opa eval` on the files as written, gives the served findings.

    A finding may be hidden, but only behind another one that its requirement is `after`.
    """
    cases = [taken(runner, file) for file in DECIDED if not file.case.values]
    engine = cases[0][0]
    assert engine.policy is not None
    documents = [document for _, document, _ in cases]
    for document, found in zip(documents, _by_hand(engine, documents, tmp_path), strict=True):
        entries = engine.policy.catalogue.points[document["point"]]
        served = {
            (found["code"], found["subject"])
            for found in engine.opa.ask("decision", document).result["findings"]
            if found["code"] in entries.requirements
        }
        refused = {(code, subject) for code, subject in found if code in entries.requirements}
        assert served <= refused, document
        for code, subject in refused - served:
            assert entries.before(code) & {other for other, _ in refused}, (document["point"], code, subject)


def _by_hand(engine: Engine, documents: list[Any], folder: Path) -> list[list[list[Any]]]:
    """What each requirement refuses of each document, as `code, subject`."""
    from engine.binaries import find_binary

    assert engine.policy is not None
    (folder / "by_hand.rego").write_text(_rules(engine.policy.catalogue.points), encoding="utf-8")
    values = {"policy": served_values(engine)}
    (folder / "values.json").write_text(json.dumps(values), encoding="utf-8")
    (folder / "input.json").write_text(json.dumps(documents), encoding="utf-8")
    query = "[r | some item in input; r := data.by_hand.refused[item.point] with input as item]"
    done = subprocess.run(
        [find_binary().path, "eval", "-d", ROOT / "rego", "-d", folder / "by_hand.rego", "-d", folder / "values.json",
         "-i", folder / "input.json", "-f", "json", query],
        capture_output=True, check=True, env={},
    )  # fmt: skip
    result: list[list[list[Any]]] = json.loads(done.stdout)["result"][0]["expressions"][0]["value"]
    return result


def _rules(points: Mapping[str, Entries]) -> str:
    """A module in which every requirement of every point is asked by itself."""
    module = "package by_hand\n\nimport future.keywords.not\n\n"
    for point, entries in points.items():
        for code, one in entries.requirements.items():
            rule, head = f"data.admission.requirements.{one.point}.{one.topic}.{one.rule}", f"refused.{point} contains"
            if one.each is None:
                module += f'{head} ["{code}", null] if not {rule} == true\n\n'
                continue
            name = one.each.rpartition(".")[2]
            module += (
                f'{head} ["{code}", concat("/", ["{name}", object.get(item, "id", sprintf("#%d", [i]))])] if {{\n'
                f"\tsome i, item in input.{one.each}\n\tnot {rule}{'(item)' if one.arity else ''} == true\n}}\n\n"
            )
    return module
