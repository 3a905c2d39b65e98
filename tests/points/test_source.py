"""What point `source` reads of a source bundle, within bounds."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

from engine.points import GatherContext
from engine.points.source import SourceRequest, gather


def test_many_deep_declared_paths_use_bounded_memory(tmp_path: Path) -> None:
    records = [{"path": f"{number}/{'a/' * 400}b"} for number in range(1_000)]
    (tmp_path / "bundle.yaml").write_text(json.dumps({"records": records}), encoding="utf-8")
    (tmp_path / "0" / "c").mkdir(parents=True)
    (tmp_path / "0" / "c" / "d").touch()
    (tmp_path / "e").touch()
    context = GatherContext(clock=lambda: 0, boundaries=lambda: ())
    tracemalloc.start()
    try:
        found = gather(SourceRequest(path=str(tmp_path), digest=None), context)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    found.close()
    assert [one["id"] for one in found.input.model_dump()["undeclared"]] == ["0/c/", "e"]
    assert peak < 64 << 20
