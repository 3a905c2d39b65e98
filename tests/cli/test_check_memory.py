"""Memory of `engine check`: it does not grow with the number of source bundles."""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.linear import write_bundle
from engine.documents.files import load
from engine.errors import EngineError, Exit
from engine.model import Decision, Mode, Outcome
from engine.reports.explain import Report
from engine.reports.spool import ReportSpool
from engine.settings import ReadLimits
from tests.conftest import NOW, ROOT
from tests.processes import limited

_RECORDS = 1_000
"""In each source bundle."""

MEASURED = """
import resource, sys
from engine.cli import main
sys.argv[0] = "engine"
try:
    main()
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def peak(bundle: Path, times: int, state: Path) -> int:
    """KiB of the process of the command, without its OPA, for a source bundle that is named so many times."""
    command = [sys.executable, "-c", MEASURED, "check", *[str(bundle)] * times, "--now", NOW, "--state", str(state)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{times:,} checked: {times:,} allow" in done.stdout
    return int(done.stderr.splitlines()[-1])


@pytest.mark.full
def test_memory_is_flat_from_10_000_records_to_160_000(tmp_path: Path) -> None:
    """Also beyond the 128 requests after which an engine that shares answers finds out what a point reads."""
    folder = tmp_path / "bundle"  # the state beside it is no part of it
    folder.mkdir()
    bundle = write_bundle(folder, _RECORDS)
    few, many = (peak(bundle, times, tmp_path / f"state-{times}") for times in (10, 160))
    assert many <= 1.25 * few, (few, many)


def resident() -> int:
    """MiB of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def test_the_text_of_a_document_is_freed_without_a_collection(tmp_path: Path) -> None:
    """The parser of YAML is part of a cycle, and collections are rare in commands."""
    text = f"a: {'x' * (4 << 20)}\n".encode()
    gc.collect()
    gc.disable()
    try:
        load(text, str(tmp_path), ReadLimits())
        before = resident()
        for _ in range(20):
            load(text, str(tmp_path), ReadLimits())
        assert resident() - before < 40
    finally:
        gc.enable()


def report(number: int) -> Report:
    decision = Decision(
        decision_id=f"{number:032x}",
        point="source",
        mode=Mode.CHECK,
        outcome=Outcome.ALLOW,
        findings=(),
        limits=None,
        policy=None,
        input_digest=None,
    )
    return Report(f"bundle-{number}", "", decision, (), tuple(f"records/{one}" for one in range(number)), Exit.ALLOW)


@pytest.mark.parametrize("memory", [1, 4 << 20])
def test_reports_are_read_back_unchanged_from_memory_and_from_a_file(
    memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.reports.spool._MEMORY_BYTES", memory)
    made = [report(number) for number in range(30)]
    with closing(ReportSpool()) as spool:
        for one in made:
            spool.add(one)
        assert list(spool) == made
        assert list(spool) == made


def test_a_full_disk_is_reported_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.reports.spool._MEMORY_BYTES", 1)
    with (
        closing(ReportSpool()) as spool,
        limited(resource.RLIMIT_FSIZE, 0),
        pytest.raises(EngineError, match="file too large") as caught,
    ):
        spool.add(report(1))
    assert "TMPDIR" in caught.value.remedy
