"""Large source bundles: right answers, and work that grows as the number of records does.

What is asserted is counted work (files opened, bytes sent to OPA, bytes recorded, expressions OPA evaluates), because
time says as much about the machine as about us. Times are printed.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from engine.binaries import find_binary
from engine.documents.canonical import canonical
from engine.documents.files import load
from engine.engine import Engine
from engine.facts.archives.source_bundle import DOCUMENT
from engine.points.registry import find
from engine.record.layout import DECISIONS, EVENTS
from engine.settings import ReadLimits, Settings
from tests.command import Command, decisions
from tests.conftest import BUNDLES, ROOT
from tests.expect import there

MOMENT = datetime(2026, 11, 21, tzinfo=UTC)
FAULTS: dict[str, Callable[[dict[str, Any], dict[str, Any]], object]] = {
    "content_hash_mismatch": lambda record, decision: [one.update(sha256="0" * 64) for one in (record, decision)],
    "license_unknown": lambda record, _: record.update(license="LicenseRef-nobody-knows"),
    "retention_expired": lambda record, _: record["retention"].update(until="2026-11-20"),
    "license_decision_missing": lambda _, decision: decision.update(record="another"),
}


def large(folder: Path, count: int) -> dict[str, str]:
    """A source bundle of `count` records with a content file each; returns the few that are wrong, and their codes."""
    (folder / "content").mkdir(parents=True)
    bundle = load((BUNDLES / "offline_fixture" / DOCUMENT).read_bytes(), DOCUMENT, ReadLimits()).value
    (record,), (decision,) = bundle.pop("records"), bundle.pop("license_decisions")
    wrong = {(count * share) // 5: code for share, code in enumerate(FAULTS, start=1)}
    records, decided = [], []
    for index in range(count):
        name = f"ticket-{index:05d}"
        content = f"ticket {index}\n".encode()
        (folder / "content" / f"{name}.txt").write_bytes(content)
        sha256 = hashlib.sha256(content).hexdigest()
        path = f"content/{name}.txt"
        records.append(record | {"id": name, "path": path, "sha256": sha256, "retention": dict(record["retention"])})
        decided.append(decision | {"record": name, "sha256": sha256})
        if index in wrong:
            FAULTS[wrong[index]](records[-1], decided[-1])
    lines = [f"{key}: {json.dumps(value)}" for key, value in bundle.items()]
    for key, items in (("records", records), ("license_decisions", decided)):
        lines += [f"{key}:", *(f"  - {json.dumps(item)}" for item in items)]
    (folder / DOCUMENT).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {f"records/ticket-{index:05d}": code for index, code in wrong.items()}


COUNTING = """
import json, sys
opened = 0

def count(event, _):
    global opened
    opened += event == "open"

sys.addaudithook(count)
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from engine.engine import Engine
from engine.settings import Settings

state, cache, small, *bundles = map(Path, sys.argv[1:])
with Engine(Settings(state=state, cache=cache), now=lambda: datetime(2026, 11, 21, tzinfo=UTC)) as engine:
    engine.check("source", {"path": str(small), "digest": None})  # whatever is opened once only
    for bundle in bundles:
        opened = 0
        engine.check("source", {"path": str(bundle), "digest": None})
        print(opened)
"""


def grows_as(work: dict[int, int]) -> None:
    """Assert that work is proportional to the count, but for what is there at any count."""
    counts = sorted(work)
    for fewer, more in pairwise(counts):
        assert work[fewer] > fewer, work  # the control: every record was met
        assert work[more] / work[fewer] < 1.05 * more / fewer, work


def test_superlinear_growth_fails_the_check() -> None:
    for power in (1.1, 2):
        with pytest.raises(AssertionError):
            grows_as({count: int(10 * count**power) for count in (1000, 3000)})


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[Path, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("large")
    return {count: (folder / str(count), large(folder / str(count), count)) for count in (1000, 3000)}


@pytest.mark.full
def test_a_few_wrong_records_among_thousands_are_found_exactly_with_linear_work(
    bundles: dict[int, tuple[Path, dict[str, str]]],
    tmp_path: Path,
    cache: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    sent: dict[int, int] = {}
    written: dict[int, int] = {}
    settings = Settings(state=tmp_path / "state", cache=cache)
    for count, (path, wrong) in bundles.items():
        own = replace(settings, state=tmp_path / f"state-{count}")
        with Engine(own, now=lambda: MOMENT) as engine:
            started = time.perf_counter()
            answer = engine.check("source", {"path": str(path), "digest": None})
            took = time.perf_counter() - started
        assert {one.subject: one.code for one in answer.decision.findings} == wrong
        sent[count] = len(canonical(there(answer.gathered).input.model_dump(mode="json", exclude_none=True)))
        written[count] = sum((own.state / file).stat().st_size for file in (DECISIONS, EVENTS))
        events = [json.loads(line) for line in (own.state / EVENTS).read_bytes().splitlines()]
        assert len(events) == count
        causes = Counter(cause for event in events for cause in event["rejection_causes"])
        assert causes == Counter(wrong.values())
        with capsys.disabled():
            sys.stderr.write(f"\n{count:,} records: {took:.2f} s, {sent[count]:,} bytes to OPA\n")
    grows_as(sent)
    grows_as(written)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Enough records to tell how counted work grows."""
    folder = tmp_path_factory.mktemp("small")
    for count in (200, 600):
        large(folder / str(count), count)
    return {count: folder / str(count) for count in (200, 600)}


@pytest.mark.full
def test_files_opened_grow_with_the_records(small: dict[int, Path], tmp_path: Path, cache: Path) -> None:
    arguments = [tmp_path / "state", cache, BUNDLES / "offline_fixture", *small.values()]
    done = subprocess.run(
        [sys.executable, "-c", COUNTING, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    opened = dict(zip(small, map(int, done.stdout.split()), strict=True))
    grows_as(opened)
    assert opened[600] < 5 * 600  # a folder and a file a record, each as descriptor and stream, and a few besides


@pytest.mark.full
def test_the_number_of_evaluations_grows_linearly_with_the_records(
    small: dict[int, Path], tmp_path: Path, cache: Path
) -> None:
    """Counted by OPA's own profiler on the served archives."""
    evaluated: dict[int, int] = {}
    with Engine(Settings(state=tmp_path / "state", cache=cache), now=lambda: MOMENT) as engine:
        assert engine.policy is not None
        archives = ["-b", str(engine.policy.rules.path), "-b", str(engine.policy.values.path)]
        for count, path in small.items():
            gathered = there(engine.check("source", {"path": str(path), "digest": None}).gathered)
            document = tmp_path / f"{count}.json"
            document.write_bytes(canonical(find("source").document(gathered, int(MOMENT.timestamp()))))
            profile = ["--profile", "--profile-limit", "100000", "--format", "json", "-i", str(document)]
            done = subprocess.run(
                [str(find_binary().path), "eval", *archives, *profile, "data.admission.decision"],
                capture_output=True,
                check=True,
                env={},
            )
            answer = json.loads(done.stdout)
            assert answer["result"][0]["expressions"][0]["value"]["outcome"] == "deny"
            evaluated[count] = sum(one["num_eval"] + one["num_redo"] for one in answer["profile"])
    grows_as(evaluated)


@pytest.mark.full
def test_ten_thousand_records_on_the_command_line(
    tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = Command.of(tmp_path, cache)
    wrong = large(tmp_path / "bundle", 10_000)
    started = time.perf_counter()
    run = command.check(tmp_path / "bundle", "--output", f"json={tmp_path / 'report.json'}")
    took = time.perf_counter() - started
    with capsys.disabled():
        sys.stderr.write(f"\n10,000 records on the command line: {took:.2f} s\n")
    assert run.code == 1
    (report,) = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["reports"]
    assert {finding["subject"]: finding["code"] for finding in report["findings"]} == wrong
    assert len(report["subjects"]) == 10_000
    lines = (tmp_path / "bundle" / DOCUMENT).read_text(encoding="utf-8").splitlines()
    for finding in report["findings"]:
        assert finding["subject"].removeprefix("records/") in lines[finding["where"]["line"] - 1]
        assert finding["subject"] in run.stdout
        assert finding["code"] in run.stdout
    assert len(run.stdout.splitlines()) < 60
    (decision,) = decisions(command.state)
    assert decision["source_events"]["count"] == 10_000
