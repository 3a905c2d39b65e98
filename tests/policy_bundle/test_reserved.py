"""Codes that only the engine gives: no rule may claim one, of whatever form it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.model import RESERVED_CODES
from tests.policy_bundle.trees import REQUIREMENTS, RULES, policy, problems, requirement, topic

OWN = "package admission.added.source.own\n\nimport future.keywords.not\n\n"
SET = """package house

import rego.v1

# METADATA
# custom:
#   code: CODE
deny contains "no" if input.bundle.closed
"""


def texts(code: str) -> dict[str, tuple[str, str]]:
    """A requirement, an added requirement and an added set of findings, each with this code."""
    rule = requirement("ours(record)", 'record.license == "MIT"', code=code)
    return {
        "requirement": (f"{REQUIREMENTS}/own.rego", topic(rule, name="own")),
        "added_requirement": (f"{RULES}/own.rego", f"{OWN}{rule}\n"),
        "added_set": (f"{RULES}/own.rego", SET.replace("CODE", code)),
    }


@pytest.mark.parametrize("form", ["requirement", "added_requirement", "added_set"])
# covers: H13
@pytest.mark.parametrize("code", sorted({*RESERVED_CODES, "engine.opa_error", "engine.anything"}))
def test_a_reserved_code_is_refused(code: str, form: str, tmp_path: Path) -> None:
    file, text = texts(code)[form]
    assert any(f"`{code}` is reserved" in one.message for one in problems(tmp_path, {file: text}))


@pytest.mark.parametrize("form", ["requirement", "added_requirement", "added_set"])
def test_any_other_code_is_taken(form: str, tmp_path: Path) -> None:
    """The control."""
    file, text = texts("policy_unavailable_here")[form]
    assert "policy_unavailable_here" in policy(tmp_path, {file: text}).catalogue.codes("source")
