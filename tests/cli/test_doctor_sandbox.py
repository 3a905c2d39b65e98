"""The doctor of sandboxes: its table, what is missing and how to get it, on machines that have it and that lack it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner

from admission_adapters.sandbox.model import Bounds, Program, RunResult
from admission_adapters.sandbox.probe.control import WORDING
from admission_adapters.sandbox.probe.rows import REQUESTED, Act, Row
from engine.cli import app
from engine.cli.machine import doctor_sandbox
from engine.errors import Exit, WorkError
from engine.sandboxes.registry import Registered
from tests.facilities import needs

NOW = 1_790_000_000.0


@dataclass
class Simulated:
    """A backend of a machine that is not this one."""

    name: str = "simulated"
    lack: str | None = None
    rows: tuple[Row, ...] = ()
    fault: Exception | None = None

    def run(self, program: Program, bounds: Bounds, cancel: object = None) -> RunResult:
        raise NotImplementedError

    def available(self) -> str | None:
        return self.lack

    def machine(self) -> str:
        return "sha256:" + "0" * 64

    def probe(self) -> tuple[Row, ...]:
        if self.fault is not None:
            raise self.fault
        return self.rows

    def registered(self) -> Mapping[str, Registered]:
        return {self.name: Registered(self, self.probe)}


def row(boundary: str, kind: str, *acts: Act) -> Row:
    return Row(boundary, kind, kind != "unsupported", acts, f"sha256:{boundary.encode().hex():0>64}")


HELD = Act("tcp", "refused:EPERM", "did", enforced=True)
FILES, NETWORK = row("files", "kernel", HELD, HELD), row("network", "kernel", HELD)
MEMORY = row(
    "memory", "bounded", Act("memory_process", "kernel", "", enforced=True), Act("flood", "did", "did", enforced=None)
)
OPEN = row(
    "network", "unsupported", Act("tcp", "did", "did", enforced=False), Act("udp", "missing", "did", enforced=False)
)


@pytest.fixture(autouse=True)
def _another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_sandbox, "_languages", lambda: {"python": "ok", "javascript": "missing: install it"})
    monkeypatch.setattr(doctor_sandbox, "_memory_cgroup", lambda: "run below a delegated cgroup v2")
    monkeypatch.setattr("time.monotonic", lambda: 0.0)


def told(capsys: pytest.CaptureFixture[str], format_: str, *backends: Simulated) -> tuple[Exit, str]:
    everything = {name: entry for one in backends for name, entry in one.registered().items()}
    code = doctor_sandbox.run(format_, lambda: everything, lambda: NOW)
    return code, capsys.readouterr().out


# covers: A94
def test_text_of_machines(capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    whole = Simulated("whole", rows=(FILES, NETWORK, MEMORY))
    lacking = Simulated("lacking", lack="bubblewrap is missing: install it")
    failing = Simulated("failing", fault=WorkError("it does not start", remedy="allow user namespaces"))
    leaking = Simulated("leaking", rows=(FILES, OPEN))
    assert told(capsys, "text", whole, lacking, failing, leaking) == snapshot(name="some")
    assert told(capsys, "text", lacking) == snapshot(name="none")


# covers: D19 E33.1
@pytest.mark.parametrize(
    ("backend", "code"),
    [
        (Simulated(rows=(FILES, NETWORK)), Exit.ALLOW),
        (Simulated(rows=(FILES, NETWORK, MEMORY)), Exit.ALLOW),
        (Simulated(rows=(FILES, OPEN)), Exit.FAILED_CLOSED),
        (Simulated(rows=()), Exit.FAILED_CLOSED),
        (Simulated(lack="it is missing"), Exit.FAILED_CLOSED),
        (Simulated(fault=OSError(28, "no space left")), Exit.FAILED_CLOSED),
    ],
    ids=["whole", "bounded", "open", "empty", "missing", "failing"],
)
def test_the_exit_code_is_0_only_if_every_boundary_is_enforced(
    capsys: pytest.CaptureFixture[str], backend: Simulated, code: Exit
) -> None:
    assert told(capsys, "text", backend)[0] is code
    found, text = told(capsys, "json", backend)
    assert (found, json.loads(text)["exit"]) == (code, int(code))


def test_json_has_every_act(capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    assert json.loads(told(capsys, "json", Simulated(rows=(FILES, OPEN, MEMORY)))[1]) == snapshot


# covers: C80.2
def test_the_plain_subprocess_is_never_called_a_sandbox(capsys: pytest.CaptureFixture[str]) -> None:
    for format_ in ("text", "json"):
        text = told(capsys, format_, Simulated(rows=(FILES,)))[1]
        assert WORDING in text
        about = [line for line in text.splitlines() if "subprocess" in line]
        assert about
        assert all("sandbox" not in line.replace(WORDING, "") for line in about)


def test_an_act_that_is_refused_outside_of_the_sandbox_too_is_counted_apart(capsys: pytest.CaptureFixture[str]) -> None:
    raw = Act("socket_raw", "refused:EPERM", "refused:EPERM", enforced=None)
    text = told(capsys, "text", Simulated(rows=(row("network", "kernel", HELD, raw),)))[1]
    assert "kernel       1 of 1 enforced, 1 possible outside, 1 not possible either way; " in text


def test_words_of_a_probe_cannot_move_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    evil = row("files", "unsupported", Act("a", "\x1b[31mred\n", "did", enforced=False))
    assert "\x1b" not in told(capsys, "text", Simulated(rows=(evil,)))[1]


@pytest.mark.full
@needs("bubblewrap")
def test_the_command_tries_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    done = CliRunner().invoke(app, ["doctor", "--sandbox", "--format", "json"])
    document = json.loads(done.stdout)
    (found,) = [one for one in document["backends"] if one["backend"] == "bubblewrap"]
    assert done.exit_code == document["exit"]
    assert [one["boundary"] for one in found["boundaries"]] == list(REQUESTED)
    assert {"boundary", "requested", "class", "enforced", "evidence", "probed_at", "acts"} == {*found["boundaries"][0]}
