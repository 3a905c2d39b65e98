"""docs/wasm-report.md: OPA's server and OPA's own Wasm answer the same question differently, and no Wasm is served."""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.facilities import needs
from tests.first_hour.pages import blocks
from tests.policy_bundle.trees import opa, problems

PAGE = "docs/wasm-report.md"
INPUTS = ({"a": 1, "l": [3]}, {"a": 2, "l": [3]}, {"a": 1, "l": [2]}, {"a": 2, "l": [2]})


def ran(*arguments: str, folder: Path, given: str = "") -> str:
    """What the bundled OPA prints."""
    command = [str(opa().path), *arguments]
    done = subprocess.run(command, cwd=folder, input=given, capture_output=True, text=True, check=True)
    return done.stdout


def by_opa(folder: Path, given: dict[str, Any]) -> list[str]:
    found: list[str] = json.loads(
        ran("eval", "-I", "-d", "two.rego", "data.two.f", "-f", "raw", folder=folder, given=json.dumps(given))
    )
    return found


def by_wasm(module: bytes, given: dict[str, Any]) -> list[str]:
    """The result of the only entry point, called as OPA documents it (ABI 1.2)."""
    import wasmtime

    engine = wasmtime.Engine()
    store, linker = wasmtime.Store(engine), wasmtime.Linker(engine)
    compiled = wasmtime.Module(engine, module)
    memory = wasmtime.Memory(store, wasmtime.MemoryType(wasmtime.Limits(2, None)))
    linker.define(store, "env", "memory", memory)
    linker.define_unknown_imports_as_traps(compiled)
    made = linker.instantiate(store, compiled).exports(store)

    def written(data: bytes) -> int:
        at: int = made["opa_malloc"](store, len(data))  # type: ignore[operator]
        memory.write(store, data, at)
        return at

    data, text = b"{}", json.dumps(given).encode()
    parsed = made["opa_json_parse"](store, written(data), len(data))  # type: ignore[operator]
    asked = written(text)
    heap = made["opa_heap_ptr_get"](store)  # type: ignore[operator]
    answer = made["opa_eval"](store, 0, 0, parsed, asked, len(text), heap, 0)  # type: ignore[operator]
    said = bytes(memory.read(store, answer, memory.data_len(store))).partition(b"\0")[0]
    found: list[str] = json.loads(said)[0]["result"]
    return found


@pytest.fixture
def rules(tmp_path: Path) -> str:
    """The rules of the report, also as a file."""
    (text,) = blocks(PAGE, "rego")
    (tmp_path / "two.rego").write_text(text, encoding="utf-8")
    return text


def compiled(folder: Path, target: str, member: str) -> bytes:
    ran("build", "-t", target, "-e", "two/f", "two.rego", "-o", "built.tar.gz", folder=folder)
    with tarfile.open(folder / "built.tar.gz") as archive:
        found = archive.extractfile(member)
        assert found is not None
        return found.read()


@needs("wasmtime")
@pytest.mark.usefixtures("rules")
def test_the_defect_that_the_report_describes_is_still_there(tmp_path: Path) -> None:
    """If this fails because the answers agree, OPA was mended: update the report, and look at Wasm again."""
    module = compiled(tmp_path, "wasm", "/policy.wasm")
    answers = [(by_opa(tmp_path, given), by_wasm(module, given)) for given in INPUTS]
    assert answers == [
        (["second"], []),
        (["first", "second"], ["first", "second"]),
        ([], []),
        (["first"], ["first"]),
    ]


@needs("wasmtime")
def test_under_a_name_of_its_own_the_rule_is_right(rules: str, tmp_path: Path) -> None:
    """The workaround of the report, and the control of the test above."""
    (tmp_path / "two.rego").write_text(
        rules.replace('f contains "second"', 'g contains "second"') + "\nf contains x if some x in g\n",
        encoding="utf-8",
    )
    module = compiled(tmp_path, "wasm", "/policy.wasm")
    assert [by_wasm(module, given) for given in INPUTS] == [by_opa(tmp_path, given) for given in INPUTS]


@pytest.mark.usefixtures("rules")
def test_the_plan_shows_the_cause(tmp_path: Path) -> None:
    """Both rules mark success in one local, which nothing resets in front of the second."""
    plan = json.loads(compiled(tmp_path, "plan", "/plan.json"))
    (function,) = plan["funcs"]["funcs"]
    marks = [one for one in _statements(function["blocks"]) if one[0] in {"IsDefinedStmt", "ResetLocalStmt", "NotStmt"}]
    tested = [target for kind, target in marks if kind == "IsDefinedStmt"]
    assert len(tested) == 2
    assert len(set(tested)) == 1
    assert ("ResetLocalStmt", tested[0]) not in marks


def _statements(blocks_: list[Any]) -> list[tuple[str, Any]]:
    found = []
    for block in blocks_:
        for one in block["stmts"]:
            found.append((one["type"], one["stmt"].get("source", one["stmt"].get("target"))))
            inner = one["stmt"].get("block")
            found += _statements([inner] if inner else one["stmt"].get("blocks", []))
    return found


@pytest.mark.parametrize("folder", ["rego/admission/requirements/license", "policy", "bundles/house/rules"])
def test_a_wasm_file_beside_rules_or_values_is_refused(folder: str, tmp_path: Path) -> None:
    found = problems(tmp_path, {f"{folder}/policy.wasm": b"\0asm\1\0\0\0"})
    assert [one.where.file.removeprefix(f"{tmp_path}/") for one in found] == [f"{folder}/policy.wasm"]


def test_the_bundled_opa_has_no_evaluator_of_wasm(tmp_path: Path) -> None:
    assert "WebAssembly: unavailable" in ran("version", folder=tmp_path)
