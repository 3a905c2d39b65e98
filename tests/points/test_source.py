"""What point `source` reads of a source bundle, within bounds."""

from __future__ import annotations

import json
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path

from engine.points import GatherContext
from engine.points.source import SourceRequest, gather


def test_many_deep_declared_paths_use_bounded_memory(tmp_path: Path) -> None:
    records = [{"path": f"{number}/{'a/' * 400}b"} for number in range(1_000)]
    (tmp_path / "bundle.yaml").write_text(json.dumps({"records": records}), encoding="utf-8")
    (tmp_path / "0" / "c").mkdir(parents=True)
    (tmp_path / "0" / "c" / "d").touch()
    (tmp_path / "e").touch()
    with ProcessPoolExecutor(1, get_context("spawn")) as alone:  # memory of other threads would be counted too
        undeclared, peak = alone.submit(gathered, tmp_path).result()
    assert undeclared == ["0/c/", "e"]
    assert peak < 64 << 20


def gathered(folder: Path) -> tuple[list[str], int]:
    """What no record names, and the most bytes in use while the source bundle is read."""
    context = GatherContext(clock=lambda: 0, boundaries=lambda: ())
    tracemalloc.start()
    with closing(gather(SourceRequest(path=str(folder), digest=None), context)) as found:
        return [one["id"] for one in found.input.model_dump()["undeclared"]], tracemalloc.get_traced_memory()[1]
