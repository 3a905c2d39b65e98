"""The text of a new `bundle.yaml`; statements that only a person can make are left as comments."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from engine.documents.edits import scalar


@dataclass(frozen=True, slots=True)
class Statements:
    """What only a person can state; None is left open.

    `license` is that of files whose metadata names none. `decided_by` accepts the licenses of exactly
    these contents, at `now`; both times are of RFC 3339, `retention_until` is a day.
    """

    now: str
    license: str | None = None
    purpose: str | None = None
    environment: str | None = None
    export_license: str | None = None
    retention_until: str | None = None
    retention_basis: str | None = None
    retrieved_at: str | None = None
    decided_by: str | None = None


@dataclass(frozen=True, slots=True)
class NewRecord:
    """One file, as it will be described."""

    id: str
    path: str
    sha256: str
    media_type: str
    license: str | None
    url: str | None
    host: str | None


def written(name: str, origin: str, records: list[NewRecord], stated: Statements) -> str:
    """The document as YAML, with the id `name` and the origin's alias."""
    return "\n".join(
        [*_head(name, records, stated), *_records(origin, records, stated), *_decisions(records, stated), ""]
    )


def _head(name: str, records: list[NewRecord], stated: Statements) -> Iterator[str]:
    yield "# Source bundle, format 1: see docs/source-bundles.md. Run `engine check` on this folder."
    yield "format: 1"
    yield f"id: {scalar(name)}"
    yield _stated("purpose", stated.purpose, "train, eval, tool or environment")
    yield f"environment: {scalar(stated.environment or name)}"
    export = scalar(stated.export_license) if stated.export_license else "null # the result is not given to others"
    yield f"export_license: {export}"
    hosts = sorted({record.host for record in records if record.host})
    remote = sum(record.url is not None for record in records)
    yield "network:"
    yield f"  enabled: {'true' if remote else 'false'}"
    yield f"  allowed_hosts: [{', '.join(map(scalar, hosts))}]"
    yield f"  budget: {{max_requests: {remote}}}"
    yield "  audit_required: true"
    yield "sandbox: {generated_code: disabled, filesystem: artifact_subdir, redaction: true, network: none}"


def _records(origin: str, records: list[NewRecord], stated: Statements) -> Iterator[str]:
    own = " # downloaded content has its url, retrieved_at and kind: external; without them, it counts as your own"
    yield f"records:{own if any(record.url is None for record in records) else ''}" if records else "records: []"
    for record in records:
        yield f"  - id: {scalar(record.id)}"
        yield f"    path: {scalar(record.path)}"
        if record.url is not None:
            yield "    kind: external"
        yield f"    url: {'null' if record.url is None else scalar(record.url)}"
        yield f"    origin_alias: {scalar(origin)}"
        yield f"    sha256: {record.sha256}"
        yield f"    media_type: {scalar(record.media_type)}"
        yield _stated("license", record.license, "an SPDX expression, such as CC-BY-4.0", 4)
        if record.url is not None:
            yield _stated("retrieved_at", stated.retrieved_at, "when it was downloaded, as 2026-11-02T09:30:00Z", 4)
        if stated.retention_until and stated.retention_basis:
            until, basis = json.dumps(stated.retention_until), scalar(stated.retention_basis)
            yield f"    retention: {{until: {until}, basis: {basis}}}"
        else:
            yield '    # retention: {until: "2030-12-31", basis: license} # state the last day and the legal basis'
        yield f"    export: {'allowed' if stated.export_license else 'forbidden'}"


def _decisions(records: list[NewRecord], stated: Statements) -> Iterator[str]:
    licensed = [record for record in records if record.license is not None]
    if stated.decided_by is None or not licensed:
        yield "# For each record: a person has reviewed this content and accepts its license."
        yield "#  - {record: ID, sha256: HASH, decision: accepted, decided_by: NAME, decided_at: TIME}"
        yield "license_decisions: []"
        return
    yield "license_decisions:"
    for record in licensed:
        yield f"  - record: {scalar(record.id)}"
        yield f"    sha256: {record.sha256}"
        yield "    decision: accepted"
        yield f"    decided_by: {scalar(stated.decided_by)}"
        yield f"    decided_at: {json.dumps(stated.now)}"


def _stated(name: str, value: str | None, choice: str, indent: int = 0) -> str:
    line = f"# {name}: # state {choice}" if value is None else f"{name}: {scalar(value)}"
    return " " * indent + line
