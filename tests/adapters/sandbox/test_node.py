"""JavaScript runs on the machine's Node by the same launcher, within the same bounds."""

from __future__ import annotations

from typing import Any

from admission_adapters.sandbox.model import RunResult, Status
from tests.adapters.sandbox.programs import bounds, ran
from tests.facilities import needs

pytestmark = needs("bubblewrap", "node")


def node(code: str, **fields: Any) -> RunResult:
    within = bounds(processes=16, memory_bytes=512 << 20, **fields)
    return ran(code, within=within, language="javascript", stdin=b'{"n": 3}')


# covers: C71
def test_code_reads_its_payload_and_answers() -> None:
    ended = node(
        "const given = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
        "console.log(JSON.stringify([given.n + 1, process.cwd().startsWith('/work/code_exec_agent_')]))"
    )
    assert (ended.status, ended.stdout, ended.stderr) == (Status.OK, b"[4,true]\n", b"")


def test_the_payload_is_available_only_through_input() -> None:
    code = "console.log(JSON.parse(input()).n, input().length, Object.keys(globalThis).includes('input'))"
    assert node(code).stdout == b"3 0 false\n"
    assert node("const input = 5; console.log(input)").stdout == b"5\n"
    assert b"main.js:2" in node("\nthrow new Error('no')").stderr


def test_javascript_runs_within_256_mib() -> None:
    within = bounds(memory_bytes=256 << 20, processes=12)
    assert ran("console.log(1)", within=within, language="javascript").stdout == b"1\n"


def test_each_end_of_a_javascript_program_has_its_status() -> None:
    assert node("process.exit(3)").exit_code == 3
    failed = node("throw new Error('no')")
    assert (failed.status, failed.exit_code) == (Status.RUNTIME_ERROR, 1)
    assert b"Error: no" in failed.stderr
    assert node("process.kill(process.pid, 'SIGKILL')").signal == 9


def test_limits_hold_for_javascript() -> None:
    assert node("for (;;) {}", wall_seconds=0.5).status is Status.TIMEOUT_WALL
    assert node("for (;;) {}", cpu_seconds=1, wall_seconds=600.0).status is Status.TIMEOUT_CPU
    assert node("for (;;) require('fs').writeSync(1, 'x'.repeat(999))").status is Status.OUTPUT_LIMIT
    heap = node("const kept = []; for (;;) kept.push(new Array(1e5).fill(7))", stderr_bytes=1 << 16)
    assert heap.status in {Status.SIGNAL, Status.OOM, Status.RUNTIME_ERROR}


def test_javascript_reaches_no_host_file_or_network() -> None:
    code = """
const fs = require('fs');
const closed = [
  () => fs.readFileSync('/etc/passwd'), () => fs.writeFileSync('/usr/x', ''), () => fs.readdirSync('/proc'),
  () => process.setuid(0),
].filter(f => { try { f(); return false } catch { return true } }).length;
console.log(closed, Object.keys(process.env).sort().join());
require('net').connect(80, '127.0.0.1').on('error', e => console.log(e.code));
"""
    ended = node(code)
    first, _, second = ended.stdout.decode().partition("\n")
    assert first.startswith("4 HOME,LANG,PATH")
    assert second.strip() in {"EPERM", "EACCES"}
