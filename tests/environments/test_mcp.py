"""`engine environment serve`: the official SDK's own client uses a built environment over stdio."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from mcp import Client

from engine.engine import Engine
from engine.settings import Settings
from tests.adapters.test_shim_server import ON, asking, names, refused, stdio, texts
from tests.command import Command, decisions, lines
from tests.conftest import ROOT
from tests.environments.bundles import CONTACTS

SOURCE = ROOT / "fixtures" / "material" / "contacts"


@pytest.fixture(scope="module")
def built(module_settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("built")
    with Engine(module_settings, points=frozenset({"source", "environment"})) as engine:
        assert engine.build(SOURCE, into).result is not None
    return into / CONTACTS


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    return shutil.copytree(built, tmp_path / CONTACTS)


def arguments(folder: Path, *more: str, source: Path = SOURCE) -> list[str]:
    how = ["--source", str(source), "--tool-policy", "environment", "--profile", "environment"]
    return ["environment", "serve", str(folder), *how, *more]


# covers: A44.1, A46
def test_the_sdks_client_lists_queries_and_deletes(command: Command, folder: Path) -> None:
    async def go(client: Client) -> None:
        assert await names(client) == [f"{CONTACTS}_{name}" for name in ("add", "delete", "get", "search", "update")]
        assert json.loads(texts(await client.call_tool(f"{CONTACTS}_get", {"id": "1"}))[1])["name"] == "Ada Example"
        assert texts(await client.call_tool(f"{CONTACTS}_delete", {"id": "1"})) == (False, '{"deleted": "1"}')
        failed, text = texts(await client.call_tool(f"{CONTACTS}_get", {"id": "1"}))
        assert (failed, text) == (True, "there is no contact of this id")
        assert texts(await client.call_tool(f"{CONTACTS}_get", {})) == (True, "adapter_contract_rejected: arguments")

    asking(stdio(command, ["-m", "engine", *arguments(folder, ON)]), go)
    trajectory = [json.loads(line) for line in (folder / "trajectory.jsonl").read_bytes().splitlines()]
    assert [line["event"] for line in trajectory] == ["undo_point", "changed"]
    points = [line["point"] for line in decisions(command.state)]
    assert [points.count(name) for name in ("source", "adapter", "tool_contract", "tool_call")] == [1, 1, 5, 3]
    effects = [one for line in lines(command.state) for one in line.get("facts", {}).get("side_effects", ())]
    assert [(one["class"], one["id"]) for one in effects] == [("destructive", "delete-2")]


# covers: A43.1, A98.1
def test_without_the_switch_or_from_another_source_nothing_is_served(command: Command, folder: Path) -> None:
    done = refused(command, *arguments(folder), ENGINE_ENABLE_MCP_ADAPTER="1")
    assert (done.code, done.stdout, "deny adapter_disabled" in done.stderr) == (1, "", True)
    other = refused(command, *arguments(folder, ON, source=SOURCE.with_name("documents")))
    assert (other.code, other.stdout, "deny source_policy_mismatch" in other.stderr) == (1, "", True)
