"""Scale: `engine check` on source bundles of 1,000, 3,000 and 10,000 records.

Time that grows linearly is time per record that does not grow. The wall seconds are for people and
differ from machine to machine; the ratio of CPU time per record, largest bundle to smallest, shows it
whether anything is worse than linear. What every start costs makes it smaller than 1.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.measure import Bench, Row, interleaved
from benchmarks.processes import Cost, cost, environment

_SIZES = (1_000, 3_000, 10_000)
_GOAL = 1.0
_NOW = "2026-11-21T00:00:00Z"
_HEAD = """format: 1
id: bench-contacts
purpose: train
environment: contacts_sqlite
export_license: CC-BY-4.0
network:
  enabled: true
  allowed_hosts: [data.example.org]
  budget: {max_requests: %d}
  audit_required: true
sandbox: {generated_code: disabled, filesystem: artifact_subdir, redaction: true, network: none}
"""
_RECORD = """  - id: contact-%(index)d
    kind: external
    path: content/%(index)d.json
    url: https://data.example.org/contacts/%(index)d.json
    origin_alias: partner-directory
    sha256: "%(sha256)s"
    media_type: application/json
    license: CC-BY-4.0
    retrieved_at: "2026-11-02T09:30:00Z"
    retention: {until: "2035-11-02", basis: license}
    export: allowed
"""
_DECISION = """  - record: contact-%(index)d
    sha256: "%(sha256)s"
    decision: accepted
    decided_by: legal@example.org
    decided_at: "2026-11-03T10:00:00Z"
"""


def rows(bench: Bench) -> Iterator[Row]:
    """Wall seconds for a thousand records in each bundle, then how CPU time per record grows."""
    surroundings = environment(bench.folder("scale"))
    bundles = []
    for size in _SIZES:
        bench.report(f"scale: writing a source bundle of {size} records")
        bundles.append(write_bundle(bench.folder(f"scale-{size}"), size))

    def check(bundle: Path) -> Cost:
        return cost([sys.executable, "-m", "engine", "check", str(bundle), "--now", _NOW], bench.root, surroundings)

    found = interleaved(
        [partial(check, bundle) for bundle in bundles],
        bench.rounds,
        partial(bench.report_round, "scale"),
    )
    for index, size in enumerate(_SIZES):
        values = tuple(costs[index].wall * 1000 / size for costs in found)
        yield Row("scale", f"engine check, {size:,} records, wall seconds per 1,000", None, values, "s")
    grown = tuple(costs[-1].cpu / _SIZES[-1] * _SIZES[0] / costs[0].cpu for costs in found)
    yield Row("scale", f"CPU per record, {_SIZES[-1]:,} records ÷ {_SIZES[0]:,}", _GOAL, grown)


def write_bundle(folder: Path, records: int) -> Path:
    """A good source bundle of external records with a license decision each; returns its folder."""
    (folder / "content").mkdir()
    made = []
    for index in range(records):
        content = json.dumps({"name": f"Contact {index}", "mail": f"contact-{index}@example.org"}).encode()
        (folder / "content" / f"{index}.json").write_bytes(content)
        made.append({"index": index, "sha256": hashlib.sha256(content).hexdigest()})
    with (folder / "bundle.yaml").open("w", encoding="utf-8") as file:
        file.write(_HEAD % records)
        file.write("records:\n")
        file.writelines(_RECORD % one for one in made)
        file.write("license_decisions:\n")
        file.writelines(_DECISION % one for one in made)
    return folder
