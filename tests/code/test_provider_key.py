"""The key of the remote model reaches nothing that generated code, tools or environments are made of."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from admission_adapters.llm_provider import VARIABLES
from admission_adapters.tools.effects import Effects
from admission_adapters.tools.process import in_process
from engine.completing import Prompt
from engine.engine import Engine
from engine.model import StopSignal
from tests.adapters import isolated_tools
from tests.code.conftest import WIDER, golden
from tests.conftest import BUNDLES, ROOT
from tests.environments.bundles import AGENT, CONTACTS, MOMENT, OPTIONS
from tests.expect import there
from tests.facilities import needs
from tests.llm.server import HELLO, KEY, ModelServer, completion, model_serving, resolving, use, values, variables

LOOKS = "import json, os\nos.write(2, json.dumps(dict(os.environ)).encode())\nos._exit(3)"


def with_key(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


def asked(engine: Engine, server: ModelServer) -> None:
    resolving(engine, lambda _: ("127.0.0.1",))
    use(engine, os.environ, server.authority.path, lambda _: None)
    server.answers(completion(f"print('{KEY[:9]}')"))
    assert there(engine.complete(Prompt(HELLO)).text)
    assert KEY.encode() in server.requests[0]  # the control: the adapter has it


# covers: A66.1-7, C32.1
@needs("bubblewrap")
def test_a_planted_key_reaches_nothing_but_the_adapter(
    opening: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = tmp_path / "authority"
    authority.mkdir()
    with model_serving(authority) as server:
        for name, text in {**variables(server), "OPENAI_API_KEY": KEY}.items():
            monkeypatch.setenv(name, text)
        own = (*WIDER, *values(server.server.port))
        with opening("state", values=own, now=lambda: MOMENT) as bench:
            engine = bench.engine
            asked(engine, server)
            rejections: list[Any] = []
            done = engine.repair_code(golden(LOOKS), rejections.append)  # gives no other action
            assert done.stop_reason == "code_runtime_error:3"
            seen = json.loads(json.loads(bench.kept(done.document["stored"]["log"]))["stderr"])
            assert "PYTHONNOUSERSITE" in seen  # the control: this is the environment of the program
            assert not [name for name in seen if name.startswith(("AGENT_DATA", "OPENAI"))]
            tool = in_process(
                isolated_tools.environment,
                {"name": "AGENT_DATA_API_KEY"},
                20.0,
                1_000,
                Effects(),
                {"A": "b"},
                StopSignal(),
            )
            assert '"value": null' in there(tool.result_text).text
            assert engine.build(ROOT / "fixtures/material/contacts", tmp_path / "built").result is not None
            with engine.open_environment(tmp_path / "built" / CONTACTS, AGENT, **OPTIONS) as session:
                arguments = {"id": "n-1", "name": "Nia"}
                session.call({"name": f"{CONTACTS}_add", "arguments": arguments})
                assert session.trajectory
            assert engine.admit(BUNDLES / "offline_fixture", tmp_path / "admitted").result is not None
        assert KEY not in json.dumps(done.document)
        assert KEY not in repr(rejections)
    assert with_key(tmp_path) == []
    (tmp_path / "control").write_text(KEY, encoding="utf-8")
    assert with_key(tmp_path) == [tmp_path / "control"]


# covers: A66.2
def test_a_tool_in_a_process_gets_no_variable_of_the_remote_model() -> None:
    for asked, value in (("AGENT_DATA_API_KEY", "null"), ("OTHER", '"1"')):
        stated = {**dict.fromkeys(VARIABLES, "canary-key-1"), "OTHER": "1"}
        tool = isolated_tools.environment
        done = in_process(tool, {"name": asked}, 20.0, 1_000, Effects(), stated, StopSignal())
        assert f'"value": {value}' in there(done.result_text).text
