"""What the documentation shows runs as shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.record.chains import chain_folders
from engine.record.verify import verify
from tests.api.serving import serving
from tests.command import decisions, lines
from tests.conftest import ROOT
from tests.facilities import needs

EXAMPLES = ROOT / "docs" / "examples"


def run(example: str, home: Path, cache: Path) -> list[str]:
    """The lines that an example prints, run by a user with this home folder."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT}:{ROOT}/adapters",
        "ENGINE_STATE_DIR": str(home / "state"),
        "XDG_CACHE_HOME": str(cache.parent),
        "HOME": str(home),
    }
    done = subprocess.run(
        [sys.executable, EXAMPLES / example], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.full
def test_deciding_in_process(tmp_path: Path, cache: Path) -> None:
    words = [line.split()[:2] for line in run("in_process.py", tmp_path, cache)]
    assert words == [
        ["deny:", "license_incompatible:"],
        ["CC0-1.0:", "allow"],
        ["CC-BY-4.0:", "allow"],
        ["Nobody-1.0:", "deny"],
    ]
    assert [one["principal"] for one in decisions(tmp_path / "state")] == ["curation"] * 4


@pytest.mark.full
@needs("bubblewrap")
def test_a_data_pipeline(tmp_path: Path, cache: Path) -> None:
    used, stopped, exported = run("pipeline.py", tmp_path, cache)
    assert used == "used: ['row 0', 'row 2']"
    assert stopped.startswith("stopped: policy_block:static_policy_violation:import_not_allowed:os")
    sample = json.loads(exported.removeprefix("exported: "))
    assert sample["content"]["messages"][1] == {"role": "assistant", "content": "3"}
    assert all(verify(folder).ok for folder in chain_folders(tmp_path / "state").values())


@pytest.mark.full
def test_a_data_pipeline_stops_when_the_engine_fails(tmp_path: Path, cache: Path) -> None:
    """It drops no rows, and its pool does not wait."""
    (tmp_path / "state").write_text("a file in place of the folder", encoding="utf-8")
    with pytest.raises(subprocess.CalledProcessError) as failed:
        run("pipeline.py", tmp_path, cache)
    assert "engine.errors.RecordError: " in failed.value.stderr
    assert failed.value.stdout == ""


# covers: A07.1 B02.1 B04
@pytest.mark.full
def test_an_agent_with_real_tools(tmp_path: Path, cache: Path) -> None:
    printed = run("tool_gate.py", tmp_path, cache)
    assert printed[:2] == ["calendar_read: not admitted: tool_unknown", "without a policy, tools: []"]
    assert {line.partition("tools: ")[2] for line in printed if line.startswith("prompt: ")} == {
        "contacts_add, contacts_list, files_read, http_get"
    }
    names = ("files_read:", "calendar_read:", "contacts_list:", "contacts_add:", "http_get:")
    assert [line for line in printed[1:] if line.startswith(names)] == [
        "files_read: ok: Ask Ada about the engine.",
        "files_read: refused: denied_by_rule",
        "calendar_read: refused: tool_unknown",
        "contacts_list: error: search_not_letters",
        'contacts_list: ok: [["Ada", "ada at work"]]',
        "contacts_add: awaiting_approval: confirmation_by_default",
        "contacts_add: ok: Grace is a contact now",
        "http_get: awaiting_approval: confirmation_by_default",
        "http_get: ok: Ada has moved to room 7.",
    ]
    assert sum(line.startswith("granted by user:") for line in printed) == 2
    assert any(line.startswith("record intact: ") for line in printed)
    recorded = lines(tmp_path / "state")
    outcomes = [one["outcome"] for one in recorded if one["kind"] == "decision" and one["point"] == "tool_call"]
    assert outcomes == ["allow", "deny", "deny", "allow", "allow", "confirm", "allow", "confirm", "allow"]
    effects = [effect for one in recorded for effect in one.get("facts", {}).get("side_effects", ())]
    assert [(one["class"], one["id"]) for one in effects] == [
        ("read", "file"),
        ("read", "contacts"),
        ("write", "contacts"),
        ("network", "page"),
    ]


# covers: A45.1 A43.1
@pytest.mark.full
def test_an_mcp_client_of_an_adapter(tmp_path: Path, cache: Path) -> None:
    assert run("mcp_adapter.py", tmp_path, cache) == [
        "refused: adapter_disabled",
        "tools: contacts_list",
        'result: ["Ada", "Alan"]',
        "error: adapter_contract_rejected: arguments",
    ]


def test_the_request_of_the_readme(tmp_path: Path, cache: Path) -> None:
    with serving(tmp_path, cache) as api:
        answer = api.decide("license", (EXAMPLES / "license.json").read_bytes())
    assert (answer.status, answer.json["outcome"]) == (200, "allow")
    assert answer.json["limits"] == {"purpose": "train", "export": {"allowed": False}}
    assert json.loads(answer.body)["approval"] is None
