"""A rule that fails while it is evaluated is a deny that names the rule's file and line, and nothing of the input."""

from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.engine import AsyncEngine, Engine
from engine.flow import Answer
from engine.record.layout import DECISIONS
from engine.settings import Settings
from tests.conftest import BUNDLES

REQUEST = {"path": str(BUNDLES / "offline_fixture"), "digest": None}
HEAD = """package admission.added.source.own

import future.keywords.not

# METADATA
# title: The word is known
# description: A rule of this test.
# custom:
#   code: own_word
#   remedy: None
known if {
	is_string(input.bundle.id) # so that the next line is not the first

	_held # this line
}

"""
CONFLICT = HEAD + '_held if input.bundle.purpose == "train"\n\n_held := false if input.bundle.purpose == "train"\n'
"""Line 19 gives another value than line 17."""

BUILTIN = HEAD.strip().replace("\t_held # this line", "\ttime.parse_rfc3339_ns(input.bundle.id) > 0") + "\n"
"""Written out into what is generated; the author's line is 14."""

ONE_LINE = HEAD.partition("known if")[0] + "known if time.parse_rfc3339_ns(input.bundle.id) > 0\n"

SETS = """package main

import rego.v1

# METADATA
# custom:
#   code: own_word
#   remedy: None
deny contains message if {
	time.parse_rfc3339_ns(input.bundle.id) > 0
	message := "never"
}
"""
OWN = "bundles/house/rules/source/own.rego"
FAULTS = {
    "conflict": (CONFLICT, f"{OWN}:19", "eval_conflict_error"),
    "built_in": (BUILTIN, f"{OWN}:14", "eval_builtin_error"),
    "on_the_line_of_its_name": (ONE_LINE, f"{OWN}:11", "eval_builtin_error"),
    "conftest": (SETS, f"{OWN}:10", "eval_builtin_error"),
}


def house(folder: Path, text: str) -> Path:
    """A recipe with one added rule."""
    recipe = folder / "house"
    shutil.copytree(Settings().recipe, recipe)
    (recipe / "rules" / "source").mkdir(parents=True)
    (recipe / "rules" / "source" / "own.rego").write_text(text, encoding="utf-8")
    (recipe / "inventory.yaml").write_text("source:\n  - own_word\n", encoding="utf-8")
    return recipe


def told(answer: Answer) -> tuple[str, str, str | None]:
    (finding,) = answer.decision.findings
    return finding.code, finding.requirement, finding.subject


def recorded(settings: Settings) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (settings.state / DECISIONS).read_bytes().splitlines()]


@pytest.mark.full
@pytest.mark.parametrize("name", FAULTS)
def test_an_added_rule_that_fails_is_named_by_file_and_line(name: str, settings: Settings, tmp_path: Path) -> None:
    text, place, code = FAULTS[name]
    chosen = replace(settings, recipe=house(tmp_path, text))
    with Engine(chosen) as engine:
        answers = [engine.decide("source", REQUEST), *engine.decide_many("source", [REQUEST] * 2)]

    async def asked() -> Answer:
        async with AsyncEngine(replace(chosen, state=tmp_path / "other")) as engine:
            return await engine.decide("source", REQUEST)

    answers.append(asyncio.run(asked()))
    wanted = ("engine.opa_error", f"{place}: OPA could not evaluate a rule: {code}", place)
    assert [told(answer) for answer in answers] == [wanted] * len(answers)
    lines = recorded(chosen)
    assert [line["findings"][0]["subject"] for line in lines] == [place] * 3
    assert all("contacts-2026-11" not in json.dumps(line["findings"]) for line in lines)


@pytest.mark.full
def test_a_shipped_helper_that_fails_is_named_by_file_and_line(settings: Settings, tmp_path: Path) -> None:
    """Comments are blanked in what is served, so lines stay."""
    rego = tmp_path / "rego"
    shutil.copytree(settings.rego, rego)
    helper = rego / "admission" / "lib" / "origin.rego"
    text = helper.read_text(encoding="utf-8") + "\n# Another one.\noffline(record) := false if is_object(record)\n"
    helper.write_text(text, encoding="utf-8")
    line = len(text.splitlines())
    with Engine(replace(settings, rego=rego)) as engine:
        answer = engine.decide("source", REQUEST)
    assert told(answer)[2] == f"rego/admission/lib/origin.rego:{line}"
