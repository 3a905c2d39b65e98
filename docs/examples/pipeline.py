"""A data pipeline: admit a source, decide rows in worker processes, run generated code, export samples.

Run it with `.venv/bin/python docs/examples/pipeline.py`; records go to the usual state folder.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from engine import Engine, Settings
from engine.errors import Exit

SOURCE = Path(__file__).parents[2] / "fixtures" / "source_bundles" / "offline_fixture"


@cache
def _engine_of(_process: int) -> Engine:
    """Opened at the first use in a process, for one decision point, and closed by the end of the process."""
    return Engine(Settings(), points=frozenset({"license"})).__enter__()


def may_train(rows: Sequence[dict[str, Any]]) -> list[bool]:
    """Whether each row may be used: the step of a pipeline, in any process. All rows are one question to OPA."""
    requests = [{"purpose": "train", "export_license": None, **row["origin"]} for row in rows]
    answers = _engine_of(os.getpid()).decide_many("license", requests)
    for answer in answers:
        if answer.fault is not None and answer.exit is Exit.FAILED_CLOSED:  # the engine failed: no verdict on the row
            raise answer.fault
    return [answer.decision.outcome == "allow" for answer in answers]


def rows() -> list[dict[str, Any]]:
    """Three rows; a person has accepted the license of each for exactly this content."""
    made = []
    for number, license_ in enumerate(["CC0-1.0", "CC-BY-NC-4.0", "CC-BY-4.0"]):
        sha256 = f"{number:064x}"  # of the content; computed from it in a real pipeline
        accepted = {"sha256": sha256, "decision": "accepted", "decided_at": "2026-11-02T10:00:00Z"}
        made.append(
            {"text": f"row {number}", "origin": {"license": license_, "sha256": sha256, "decisions": [accepted]}}
        )
    return made


def run(engine: Engine, code: str, numbers: list[int]) -> str | None:
    """What a program of a model prints about these numbers, or None if it may not run or fails."""
    action = {"id": "c1", "language": "python", "entrypoint": "main.py", "code": code, "input_payload": {"n": numbers}}
    done = engine.run_code({"action": action, "contract": "printed"}).document
    if done["status"] != "ok":
        print("stopped:", done["stop_reason"])
        return None
    return str(done["output"]["stdout"]).strip()


def main() -> None:
    """Run the pipeline."""
    found = rows()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as workers:
        used = [use for batch in workers.map(may_train, [found[:2], found[2:]]) for use in batch]
    print("used:", [row["text"] for row, use in zip(found, used, strict=True) if use])
    with Engine(Settings()) as engine, tempfile.TemporaryDirectory() as folder:
        source = engine.admit(SOURCE, into=Path(folder, "admitted"))
        if source.result is None:
            sys.exit(f"not admitted: {[finding.code for finding in source.decision.findings]}")
        made = [{"source": f"sha256:{source.result.facts['folder']}", "record": "contacts-1"}]
        messages = [
            {"role": "user", "content": "Add 1 and 2."},
            {"role": "assistant", "content": run(engine, "import json\nprint(sum(json.loads(input())['n']))", [1, 2])},
        ]
        run(engine, "import os\nprint(os.environ)", [])
        sample = {"kind": "synthetic", "provenance": made, "treatment": "fixture", "content": {"messages": messages}}
        Path(folder, "samples.jsonl").write_text(json.dumps(sample) + "\n", encoding="utf-8")
        exported = engine.export(Path(folder, "samples.jsonl"), Path(folder, "export.jsonl"))
        for refused in exported.refused:
            print("refused:", [finding.code for finding in refused.decision.findings])
        if exported.file is not None:
            print("exported:", exported.file.read_text(encoding="utf-8").strip())


if __name__ == "__main__":
    main()
