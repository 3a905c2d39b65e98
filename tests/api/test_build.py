"""`POST /v1/build`: what `engine build` does, below the operator's folder, in a folder of the caller's own."""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from engine.state import open_store
from tests.api.serving import Reply, Serving, serving
from tests.command import decisions
from tests.conftest import ROOT
from tests.environments.bundles import CONTACTS

POINTS = ["source", "environment"]
HOSTILE = "../../agent.7"


@dataclass(slots=True)
class Building:
    """A serving engine with a folder for what is built, and tokens by principal."""

    api: Serving
    root: Path
    tokens: dict[str, str]

    def __call__(self, principal: str | None = "agent-7", key: str = "", **changes: Any) -> Reply:
        body = {"path": "contacts", "into": "crm", **changes}
        headers = {} if principal is None else {"Authorization": f"Bearer {self.tokens[principal]}"}
        return self.api.ask("POST", "/v1/build", body, {**headers, "Idempotency-Key": key})

    def made(self) -> set[str]:
        return {str(path.parent.relative_to(self.root)) for path in self.root.rglob("environment.json")}


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Building]:
    folder = tmp_path_factory.mktemp("building")
    root = folder / "built"
    root.mkdir()
    material = shutil.copytree(ROOT / "fixtures" / "material", folder / "material")
    store, now = open_store(folder / "state"), int(time.time())
    names = {"agent-7": POINTS, "agent-8": POINTS, HOSTILE: POINTS, "half": POINTS[:1]}
    tokens = {name: store.issue(name, points, now + 3600, now).text for name, points in names.items()}
    store.close()
    with serving(folder, cache, "--root", material, "--build-root", root) as api:
        yield Building(api, root, tokens)


def codes(reply: Reply) -> list[str]:
    return sorted({finding["code"] for finding in reply.json["decision"]["findings"]})


def test_without_a_folder_of_the_operator_nothing_is_built(api: Serving) -> None:
    reply = api.ask("POST", "/v1/build", {"path": "contacts", "into": "a"}, {"X-Request-ID": "no-build"})
    assert (reply.status, reply.json["code"]) == (403, "engine.build_disabled")
    assert "--build-root" in reply.json["remedy"]
    (line,) = [one for one in decisions(api.state) if one["request_id"] == "no-build"]
    assert (line["point"], line["outcome"]) == ("source", "deny")


def test_an_environment_is_built_in_the_folder_of_its_caller_and_once_for_a_key(build: Building) -> None:
    key = str(uuid.uuid4())
    reply = build("agent-8", key, into="once")
    assert reply.status == 200, reply.body
    assert (reply.json["folder"], reply.json["environment"]["rows"]) == (f"agent-8/once/{CONTACTS}", 5)
    assert (reply.json["decision"]["point"], reply.json["decision"]["outcome"]) == ("environment", "allow")
    assert f"agent-8/once/{CONTACTS}" in build.made()
    again = build("agent-8", key, into="once")
    assert (again.status, again.json, again.headers["idempotent-replayed"]) == (200, reply.json, "true")
    other = build("agent-8", key, into="other")
    assert (other.status, other.json["code"]) == (422, "engine.idempotency_conflict")
    taken = build("agent-8", into="once")
    assert (taken.status, taken.json["code"]) == (409, "engine.environment_exists")


def test_a_caller_builds_only_in_its_own_folder(build: Building) -> None:
    for principal, folder in (("agent-7", "agent-7"), (HOSTILE, "%2E%2E%2F%2E%2E%2Fagent%2E7")):
        assert build(principal).json["folder"] == f"{folder}/crm/{CONTACTS}"
    assert not (build.root.parent.parent / "agent.7").exists()
    assert build(None).status == 401
    half = build("half")  # it may have source bundles admitted, and build nothing
    assert (codes(half), half.json["folder"]) == (["caller_out_of_scope"], None)
    assert not [name for name in build.made() if name.startswith("half")]


@pytest.mark.parametrize("into", ["../x", "a/b", "/x", "..", ".", "", "A", "a\u0000", None, 7])
def test_a_name_that_is_not_a_plain_folder_name_is_refused(build: Building, into: Any) -> None:
    before = build.made()
    reply = build(into=into)
    assert (reply.status, reply.json["code"]) == (422, "engine.request_invalid")
    assert (reply.json["decision"]["outcome"], build.made()) == ("deny", before)


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"path": "contact_with_formula"}, 200, "formula_in_text"),
        ({"digest": "sha256:" + "ab" * 32}, 200, "bundle_changed"),
        ({"path": "../built/agent-8/once"}, 400, "engine.input_unreadable"),
        ({"path": "/etc"}, 400, "engine.input_unreadable"),
        ({"path": "nothing"}, 400, "engine.input_unreadable"),
        ({"digest": "ab"}, 422, "engine.request_invalid"),
        ({"admitted": True}, 422, "engine.request_invalid"),
    ],
)
def test_a_refused_build_is_answered_and_creates_no_files(
    build: Building, changes: dict[str, Any], status: int, code: str
) -> None:
    before = build.made()
    reply = build(into="refused", **changes)
    assert (reply.status, codes(reply)) == (status, [code])
    assert build.made() == before
