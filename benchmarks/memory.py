"""P18: what OPA's memory does when a hundred times as much is known.

Sources, licenses and decisions reach OPA as facts of the request that is about them, and
OPA keeps none. So the first row lets the same number of source bundles of the same size come in, once
drawn from a hundred sources and once all different. Only the small tables of policy/ are data of OPA:
the second row makes the largest of them a hundred times as long. The others have no goal: what a single
huge request takes while it lasts, and the peer, an OPA that holds the same sources as its data.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.documents import Documents
from benchmarks.licenses import policy_of
from benchmarks.measure import Bench, Row, interleaved
from benchmarks.processes import resident
from benchmarks.served import Served

_GOAL = 1.1
_FEW, _MANY = 100, 10_000
_A_BUNDLE = 20
"""Sources in one source bundle of the first row."""
_LICENSES = (10, 1_000)


def rows(bench: Bench, many: int = _MANY) -> Iterator[Row]:
    """Resident memory of a fresh OPA after the same work, in each round."""
    documents = Documents(bench.root / "fixtures" / "cases", bench.folder("p18-cases"))
    good = documents.of("source", "external_contacts")
    bundles = many // _A_BUNDLE
    shipped = list(bench.archives)

    def known(sources: int) -> int:
        return _after(bench, shipped, (_bundle(good, _A_BUNDLE, number, sources) for number in range(bundles)))

    def licenses(archives: list[Path]) -> int:
        return _after(bench, archives, (good for _ in range(_A_BUNDLE)))

    def at_once(sources: int) -> int:
        return _after(bench, shipped, iter([_bundle(good, sources, 0, sources)]))

    def registry(sources: int) -> int:
        return _after(bench, [_as_data(bench, good, sources)], iter(()))

    tables = [[policy.rules.path, policy.values.path] for policy in (policy_of(bench, size) for size in _LICENSES)]
    few = many * _FEW // _MANY
    parts = [
        *(partial(known, sources) for sources in (few, many)),
        *(partial(licenses, table) for table in tables),
        *(partial(at_once, sources) for sources in (few, many)),
        *(partial(registry, sources) for sources in (few, many)),
    ]
    found = interleaved(parts, bench.rounds, partial(bench.report_round, "P18"))
    for first, what, goal in (
        (0, f"OPA memory, {many:,} known sources ÷ {few:,}, {bundles:,} bundles of {_A_BUNDLE}", _GOAL),
        (2, f"OPA memory, {_LICENSES[1]:,} license rows ÷ {_LICENSES[0]:,}", _GOAL),
        (4, f"OPA memory, one bundle of {many:,} sources ÷ one of {few:,}", None),
        (6, f"OPA memory, {many:,} sources as its data ÷ {few:,}", None),
    ):
        yield Row("P18", what, goal, tuple(each[first + 1] / each[first] for each in found))


def _bundle(good: dict[str, Any], size: int, number: int, sources: int) -> dict[str, Any]:
    """The input of a source bundle of so many records, whose sources follow on those of the bundle before."""
    document = copy.deepcopy(good)
    bundle = document["bundle"]
    record = bundle["records"][0]
    chosen = [(number * size + index) % sources for index in range(size)]
    bundle["records"] = [_record(record, source, used) for used, source in enumerate(chosen)]
    bundle["network"] |= {"budget": {"max_requests": size}}
    return document


def _record(record: dict[str, Any], source: int, used: int) -> dict[str, Any]:
    """A record of this source, with an address, content and a license decision of its own."""
    sha256 = hashlib.sha256(f"source {source}".encode()).hexdigest()
    return record | {
        "id": f"source-{source}",
        "sha256": sha256,
        "content": record["content"] | {"sha256": sha256},
        "license": record["license"]
        | {"decisions": [one | {"sha256": sha256} for one in record["license"]["decisions"]]},
        "requests_used": used,
    }


def _as_data(bench: Bench, good: dict[str, Any], sources: int) -> Path:
    """A bundle whose data are so many sources by id."""
    folder = bench.scratch / f"registry-{sources}"
    folder.mkdir(exist_ok=True)
    record = good["bundle"]["records"][0]
    table = {f"source-{source}": _record(record, source, 0) for source in range(sources)}
    (folder / "data.json").write_text(json.dumps({"sources": table}), encoding="utf-8")
    return folder


def _after(bench: Bench, archives: list[Path], documents: Iterator[Any]) -> int:
    """Bytes that a fresh OPA has once it has decided these."""
    folder = bench.scratch / "p18-opa"
    folder.mkdir(exist_ok=True)
    with Served(bench.binary.path, archives, folder) as opa:
        for document in documents:
            opa.allow(document)
        return resident(opa.process.pid)
