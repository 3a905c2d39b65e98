"""Results of probes: kept, signed, bound to this machine, and made again whenever one of these does not hold."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from admission_adapters.sandbox.model import Bounds, Program, RunResult
from admission_adapters.sandbox.probe.rows import Act, Row
from engine import Engine
from engine.enforce import enforceable
from engine.errors import EnforceError, WorkError
from engine.model import Limits, SandboxFacts
from engine.sandboxes.cache import AHEAD_SECONDS, KEPT_SECONDS
from engine.sandboxes.evidence import RETRY_SECONDS, Sandboxes
from engine.sandboxes.registry import Registered, registered
from engine.settings import Settings
from tests.facilities import needs
from tests.threads import at_once

NOW = 1_790_000_000


def row(boundary: str, *, enforced: bool) -> Row:
    act = Act("try", "refused:ENOENT" if enforced else "did", "did", enforced)
    return Row(boundary, "kernel" if enforced else "unsupported", enforced, (act,), f"sha256:{len(boundary):064}")


HELD, OPEN = row("files", enforced=True), row("network", enforced=False)


@dataclass
class Machine:
    """A backend on a machine that changes as a test wants it to; counts how often it was tried."""

    name: str = "simulated"
    lack: str | None = None
    kernel: str = "one"
    rows: tuple[Row, ...] = (HELD,)
    fault: Exception | None = None
    now: int = NOW
    probes: int = 0
    entered: threading.Event = field(default_factory=threading.Event)

    def run(self, program: Program, bounds: Bounds, cancel: threading.Event | None = None) -> RunResult:
        raise NotImplementedError

    def available(self) -> str | None:
        return self.lack

    def machine(self) -> str:
        return self.kernel

    def probe(self) -> tuple[Row, ...]:
        self.probes += 1
        if self.fault is not None:
            raise self.fault
        return self.rows

    def registered(self) -> Mapping[str, Registered]:
        return {self.name: Registered(self, self.probe)}

    def sandboxes(self, state: Path) -> Sandboxes:
        return Sandboxes(state, lambda: self.now, self.registered)

    def facts(self, state: Path) -> SandboxFacts:
        """As an engine that has just started gets them."""
        return self.sandboxes(state).facts(self.name)


def kept(state: Path) -> Path:
    return state / "sandbox" / "simulated.json"


def test_a_result_is_kept_for_the_next_engine(tmp_path: Path) -> None:
    machine = Machine()
    first = machine.facts(tmp_path)
    (boundary,), (probe,) = first.boundaries, first.probes
    wanted = {"backend": "simulated", "boundary": "files", "kind": "kernel", "enforced": True}
    assert boundary.model_dump() == {**wanted, "evidence": HELD.evidence, "run": None}
    assert (probe.id, probe.probed_at, probe.authentic, probe.subject) == ("simulated", NOW, True, probe.machine)
    machine.now += 100
    assert machine.facts(tmp_path) == first
    assert machine.probes == 1
    assert {oct(path.stat().st_mode)[-3:] for path in (kept(tmp_path), tmp_path / "keys" / "sandbox.key")} == {"600"}
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["sandbox.key", "simulated.json"]


def edited(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def change_file(state: Path) -> None:
        document = json.loads(kept(state).read_bytes())
        change(document)
        kept(state).write_text(json.dumps(document), encoding="utf-8")

    return change_file


def made_by_another_installation(state: Path) -> None:
    other = state.with_name("other")
    Machine().facts(other)
    shutil.copy(kept(other), kept(state))


def linked(state: Path) -> None:
    kept(state).rename(state / "elsewhere")
    kept(state).symlink_to(state / "elsewhere")


def renamed(state: Path) -> None:
    """A result of another backend under this one's name."""
    other = Machine(name="other")
    other.facts(state)
    (state / "sandbox" / "other.json").rename(kept(state))


FAULTS: dict[str, Callable[[Path], object]] = {
    "kind": edited(lambda document: document["result"]["rows"][0].update(kind="supervised")),
    "enforced": edited(lambda document: document["result"]["rows"][0].update(boundary="network")),
    "time": edited(lambda document: document["result"].update(probed_at=NOW + 1)),
    "subject": edited(lambda document: document["result"].update(subject="sha256:" + "9" * 64)),
    "field": edited(lambda document: document["result"].update(more=1)),
    "no_mac": edited(lambda document: document.pop("mac")),
    "other_mac": edited(lambda document: document.update(mac="0" * 64)),
    "half": lambda state: kept(state).write_bytes(kept(state).read_bytes()[:-9]),
    "empty": lambda state: kept(state).write_bytes(b""),
    "huge": lambda state: kept(state).write_bytes(kept(state).read_bytes() + b" " * (2 << 20)),
    "removed": lambda state: kept(state).unlink(),
    "readable_by_others": lambda state: kept(state).chmod(0o644),
    "linked": linked,
    "renamed": renamed,
    "foreign": made_by_another_installation,
    "key_changed": lambda state: (state / "keys" / "sandbox.key").write_bytes(b"k" * 32),
    "key_open": lambda state: (state / "keys" / "sandbox.key").chmod(0o640),
}


# covers: H05
@pytest.mark.parametrize("fault", FAULTS)
def test_a_missing_or_untrusted_result_is_probed_again(tmp_path: Path, fault: str) -> None:
    machine, state = Machine(), tmp_path / "state"
    first = machine.facts(state)
    FAULTS[fault](state)
    machine.now += 5
    again = machine.facts(state)
    assert machine.probes == 2
    assert again.boundaries == first.boundaries
    assert [probe.probed_at for probe in again.probes] == [NOW + 5]


# covers: H05
@pytest.mark.parametrize(
    ("seconds", "probes"),
    [(KEPT_SECONDS, 1), (KEPT_SECONDS + 1, 2), (-AHEAD_SECONDS, 1), (-AHEAD_SECONDS - 1, 2)],
    ids=["a_day", "older", "clock_set_back", "from_the_future"],
)
def test_an_old_result_is_made_again(tmp_path: Path, seconds: int, probes: int) -> None:
    for lasting in (True, False):
        machine = Machine()
        state = tmp_path / str(lasting)
        sandboxes = machine.sandboxes(state)
        sandboxes.facts("simulated")
        machine.now += seconds
        found = (sandboxes if lasting else machine.sandboxes(state)).facts("simulated")
        assert machine.probes == probes
        assert found.probes[0].probed_at == (NOW if probes == 1 else machine.now)


# covers: H05
def test_a_result_of_another_machine_is_made_again(tmp_path: Path) -> None:
    machine = Machine()
    sandboxes = machine.sandboxes(tmp_path)
    first = sandboxes.facts("simulated").probes[0]
    machine.kernel = "two"
    for again in (sandboxes.facts("simulated"), machine.facts(tmp_path)):
        assert again.probes[0].subject == again.probes[0].machine != first.subject
    assert machine.probes == 2


def test_a_policy_that_wants_younger_results_gets_them(tmp_path: Path) -> None:
    machine = Machine()
    sandboxes = machine.sandboxes(tmp_path)
    assert sandboxes.facts("simulated", 600).probes[0].probed_at == NOW
    machine.now = NOW + 600
    assert sandboxes.facts("simulated", 600).probes[0].probed_at == NOW
    machine.now = NOW + 601
    assert sandboxes.facts("simulated", 600).probes[0].probed_at == NOW + 601
    assert machine.probes == 2


# covers: A94
def test_an_unregistered_backend_is_not_probed(tmp_path: Path) -> None:
    machine = Machine()
    sandboxes = machine.sandboxes(tmp_path)
    assert sandboxes.facts("container") == sandboxes.facts("subprocess") == SandboxFacts()
    assert machine.probes == 0
    assert "subprocess" not in registered()
    assert "bubblewrap" in registered()


# covers: A94
def test_results_of_two_backends_are_kept_apart(tmp_path: Path) -> None:
    one, two = Machine(name="one"), Machine(name="two", rows=(HELD, OPEN))
    sandboxes = Sandboxes(tmp_path, lambda: NOW, lambda: {**one.registered(), **two.registered()})
    found = {name: sandboxes.facts(name) for name in ("one", "two")}
    assert [(each.backend, each.boundary, each.enforced) for one in found.values() for each in one.boundaries] == [
        ("one", "files", True),
        ("two", "files", True),
        ("two", "network", False),
    ]
    assert [probe.id for one in found.values() for probe in one.probes] == ["one", "two"]


# covers: D19
def test_a_missing_backend_claims_no_boundary(tmp_path: Path) -> None:
    machine = Machine(lack="bubblewrap is missing: install it")
    assert machine.facts(tmp_path) == SandboxFacts()
    assert not any(tmp_path.iterdir())
    machine.lack = None
    assert machine.facts(tmp_path).boundaries


@pytest.mark.parametrize("fault", [WorkError("it does not start", remedy="mend it"), OSError(28, "no space")])
def test_a_failed_probe_claims_no_boundary_and_is_retried_later(tmp_path: Path, fault: Exception) -> None:
    machine = Machine(fault=fault)
    sandboxes = machine.sandboxes(tmp_path)
    for _ in range(3):
        assert sandboxes.facts("simulated") == SandboxFacts()
    assert machine.probes == 1
    machine.now, machine.fault = machine.now + RETRY_SECONDS, None
    assert sandboxes.facts("simulated").boundaries
    assert machine.probes == 2


def test_a_result_with_an_open_boundary_is_not_kept_for_long(tmp_path: Path) -> None:
    machine = Machine(rows=(HELD, OPEN))
    sandboxes = machine.sandboxes(tmp_path)
    for _ in range(3):
        found = sandboxes.facts("simulated")
        assert [each.enforced for each in found.boundaries] == [True, False]
    assert machine.probes == 1
    assert not kept(tmp_path).exists()
    machine.now, machine.rows = machine.now + RETRY_SECONDS, (HELD,)
    assert [each.enforced for each in sandboxes.facts("simulated").boundaries] == [True]


def test_an_unwritable_state_folder_does_not_prevent_probing(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    machine = Machine()
    sandboxes = machine.sandboxes(tmp_path / "state")
    assert sandboxes.facts("simulated").boundaries == sandboxes.facts("simulated").boundaries
    assert machine.probes == 1


def test_concurrent_requests_share_one_probe(tmp_path: Path) -> None:
    machine = Machine()
    sandboxes, together = machine.sandboxes(tmp_path), threading.Barrier(8)

    def ask() -> SandboxFacts:
        together.wait()
        return sandboxes.facts("simulated")

    found = at_once([ask] * 8)
    assert machine.probes == 1
    assert found == [found[0]] * 8


def test_engines_starting_concurrently_share_one_key(tmp_path: Path) -> None:
    machines = [Machine() for _ in range(8)]
    at_once(partial(machine.facts, tmp_path) for machine in machines)
    late = Machine()
    late.facts(tmp_path)
    assert late.probes == 0
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["sandbox.key", "simulated.json"]


class Bound(Limits):
    """Limits that one backend has to hold."""

    def boundaries(self) -> frozenset[str]:
        return frozenset({"files", "network"})

    def on_backend(self) -> str:
        return "simulated"


# covers: D19
def test_limits_with_a_boundary_that_was_not_shown_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EnforceError, match="not shown to enforce `network`"):
        enforceable(Bound(), Machine(rows=(HELD, OPEN)).facts(tmp_path).boundaries)
    held = row("network", enforced=True)
    other = Machine(name="other", rows=(HELD, held)).facts(tmp_path).boundaries
    with pytest.raises(EnforceError):
        enforceable(Bound(), other)
    enforceable(Bound(), Machine(rows=(HELD, held)).facts(tmp_path / "more").boundaries)


@pytest.mark.full
@needs("bubblewrap")
def test_a_backend_is_probed_only_on_request(settings: Settings) -> None:
    with Engine(settings, now=lambda: datetime.fromtimestamp(NOW, UTC)) as engine:
        assert engine.services is not None
        engine.check("license", {"expression": "MIT", "purpose": "train"})
        assert not (settings.state / "sandbox").exists()
        assert engine.services.gather_context.sandbox_facts("unknown", None) == SandboxFacts()
        assert not (settings.state / "sandbox").exists()
        found = engine.services.gather_context.sandbox_facts("bubblewrap", None)
        assert {each.backend for each in found.boundaries} == {"bubblewrap"}
        assert [probe.probed_at for probe in found.probes] == [NOW]
