"""WebAssembly runs once the policy admits it to execution; nothing else has to change."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.facts.code.scan import scan
from tests.code.conftest import golden, printing
from tests.conftest import ROOT
from tests.facilities import needs

OUTPUT = json.loads(printing()[len("print(") : -1])
_QUOTED = json.dumps(OUTPUT)[1:-1]
IMPORT = '(import "wasi_snapshot_preview1" "fd_write" (func $say (param i32 i32 i32 i32) (result i32)))'
MODULE = f"""(module ;; says one line
  {IMPORT}
  (memory (export "memory") 1)
  (data (i32.const 64) "{_QUOTED}")
  (func (export "_start")
    (i32.store (i32.const 0) (i32.const 64))
    (i32.store (i32.const 4) (i32.const {len(OUTPUT)}))
    (drop (call $say (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
"""
VALUES = (
    "code.languages=[python, wasm]",
    "code.execution.wasm=wasm",
    "code.entrypoints=[main.wat]",
)


def document(code: str) -> dict[str, Any]:
    return golden(code, action={"language": "wasm", "entrypoint": "main.wat"}, policy_hints={"max_code_chars": 8000})


_RUNS = """
import json, sys
from pathlib import Path
from engine import Engine, Settings
from tests.code.conftest import PIPELINE
job = json.load(sys.stdin)
with Engine(Settings(state=Path(job["state"]), cache=Path(job["cache"])), values=tuple(job["values"])) as engine:
    runs = [engine.run_code(one, PIPELINE) for one in job["runs"]]
print(json.dumps([[one.ok, one.stop_reason, one.document] for one in runs]))
"""


# covers: E09 A94
@pytest.mark.full
@needs("wasmtime")
def test_a_module_runs_where_policy_admits_its_language(tmp_path: Path, cache: Path) -> None:
    """In a process of its own, as a user has it: the probe looks at the process that it is made from."""
    texts = (MODULE, MODULE.replace("fd_write", "path_open"), MODULE.replace("wasi_snapshot_preview1", "env"))
    job = {"state": str(tmp_path / "state"), "cache": str(cache), "values": VALUES, "runs": [*map(document, texts)]}
    run = subprocess.run(
        [sys.executable, "-c", _RUNS], input=json.dumps(job), capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert run.returncode == 0, run.stderr
    done, reaching, elsewhere = json.loads(run.stdout)
    assert done[0], done[2]
    assert done[2]["aggregate"]["metrics"]["sample_size"] == 60
    execution = done[2]["execution"]
    assert (execution["language"], execution["backend"], execution["isolation"]) == ("wasm", "wasmtime", "webassembly")
    assert execution["sandbox"].startswith("ran in the sandbox wasmtime (webassembly)")
    assert reaching[1].endswith("member_not_allowed:wasi_snapshot_preview1.path_open")
    assert elsewhere[1].endswith("import_not_allowed:env")


@pytest.mark.parametrize(
    "code",
    [
        "",
        "module",
        "(module",
        "(module))",
        '(module "open',
        "(module (; open)",
        '(module binary "\\00asm")',
        '(module quote "(import)")',
        "(component)",
        '(module (@custom "x"))',
        '(module (import "env"))',
        r'(module (data "\u{110000}"))',
        '(module (import "env" (item "x")))',
        "AGFzbQEAAAA=",
    ],
)
def test_a_module_that_hides_its_imports_is_refused(code: str) -> None:
    found = scan("wasm", code)
    assert (found.parsed, found.problem) == (False, "syntax")


def test_every_import_is_found_however_it_is_written() -> None:
    code = """(module (; (import "a" "b") (; "c" ;) ;) ;; (import "d" "e")
      (func $f(import "env" "one")) (memory (import"env""two")1) (import "e\\6ev" "three" (func)) (data "(import)"))"""
    found = scan("wasm", code)
    assert [(one.id, one.kind) for one in found.imports if one.kind == "module"] == [("env", "module")]
    assert [one.kind for one in found.imports] == ["computed", "module"]
    assert [one.id for one in found.members] == ["env.one", "env.two"]


@needs("wasmtime")
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x85", "\u2028", "\u2029", ";)", "\t"])
def test_a_comment_ends_where_wasmtime_ends_it(end: str) -> None:
    import wasmtime

    code = f"(module ;; (; x{end}{IMPORT}\n)"
    imports = wasmtime.Module(wasmtime.Engine(), bytes(wasmtime.wat2wasm(code))).imports
    assert [one.name for one in imports] == [one.id.partition(".")[2] for one in scan("wasm", code).members]


@pytest.mark.parametrize(
    ("text", "literals", "addresses"),
    [
        (r"one line\nand \"two\"\t\00\ff\u{e9}\'\\", [], 0),
        (r"\2fetc\2fpasswd", ["path"], 0),
        (r"\u{68}ttps:\2f/x.example", [], 1),
        (r"\5f_class__", ["dunder"], 0),
    ],
)
def test_a_text_is_read_without_its_escapes(text: str, literals: list[str], addresses: int) -> None:
    found = scan("wasm", f'(module (data "{text}"))')
    assert ([one.id for one in found.literals], found.network_literals) == (literals, addresses)


def test_nesting_and_size_end_the_scan() -> None:
    assert scan("wasm", "(" * 300 + ")" * 300).problem == "too_deep"
    assert scan("wasm", "()" * 30_000).problem == "too_large"
