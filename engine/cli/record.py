"""`engine record`: check the whole record, and read it as a person wants to."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import options
from engine.errors import Exit
from engine.files import shown

if TYPE_CHECKING:
    from engine.record.chain import Entry
    from engine.record.layout import Break
    from engine.record.model import DecisionRecord, RecoveryRecord, ResultRecord
    from engine.record.reader import Selection
    from engine.record.verify import Verification

app = typer.Typer(help="Check and read the record of decisions.", no_args_is_help=True)


class Format(StrEnum):
    """What `--format` takes."""

    TEXT = "text"
    JSON = "json"


class Outcomes(StrEnum):
    """What `--outcome` takes."""

    ALLOW = "allow"
    CONFIRM = "confirm"
    DENY = "deny"


class Modes(StrEnum):
    """What `--mode` takes."""

    CHECK = "check"
    ENFORCE = "enforce"


How = Annotated[Format, typer.Option("--format", help="How to tell it.")]

_LONG = 4_000  # characters of one row; limits of a large source bundle are cut, --format json has them whole

_MEANINGS = {
    "bad_json": "the line is none that the engine would have written",
    "bad_keys": "the line is JSON but not a record",
    "seq_gap": "a line was removed, doubled or moved",
    "chain_break": "the line was changed after it was written",
    "torn_tail": "the last write did not finish",
    "orphan_events": "source events were written, but their decision was not",
    "events_mismatch": "source events were changed after they were written",
    "missing_segment": "a file of the record is gone",
    "unknown_segment": "a file stands here that does not belong to the record",
    "before_checkpoint": "the file is shorter than it was when it was signed",
    "checkpoint_mismatch": "the file is not the one that was signed",
    "checkpoint_missing": "there is no checkpoint, so a cut or rewritten record cannot be told from a whole one",
    "installation_missing": "it is not known which installation wrote this record",
    "bad_signature": "the checkpoint is not signed with the key of this record",
}
_UNFINISHED = "nothing: no answer depended on it; the next start cuts it, keeps it in records/cut and records that"
_TAMPERED = (
    "copy the state folder as it is, compare it with a backup, find out who could write to it; "
    "nothing is decided until it is restored or moved aside"
)


@app.command("verify")
def verify_record(state: options.State = None, how: How = Format.TEXT) -> None:
    """Check every line, the checkpoint and the source events; ends with 0, or with 4 where something is broken."""
    from engine.record.verify import verify

    found = verify(options.settings(state).state)
    typer.echo(_verification_json(found) if how is Format.JSON else _verification_text(found))
    raise typer.Exit(Exit.ALLOW if found.ok else Exit.FAILED_CLOSED)


@app.command("show")
def show_record(
    state: options.State = None,
    decision_id: Annotated[
        str | None,
        typer.Option("--decision-id", metavar="ID", help="All about one decision; its first characters will do."),
    ] = None,
    point: Annotated[str | None, typer.Option("--point", help="Only decisions at this point, such as source.")] = None,
    outcome: Annotated[Outcomes | None, typer.Option("--outcome", help="Only decisions with this outcome.")] = None,
    mode: Annotated[Modes | None, typer.Option("--mode", help="Only dry runs, or only the real thing.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="At most this many, the last ones.")] = 20,
    how: How = Format.TEXT,
) -> None:
    """Show the last decisions, or all about one. Does not check the chain: `engine record verify` does."""
    from engine.record.reader import Filter, select

    wanted = Filter(decision_id, point, outcome and outcome.value, mode and mode.value)
    selection = select(options.settings(state).state, wanted, limit)
    if how is Format.JSON:
        typer.echo(_selection_json(selection))
    else:
        typer.echo(_selection_text(selection, detailed=decision_id is not None))
    for line in selection.unreadable:
        typer.echo(f"line {line} is no record; run `engine record verify`", err=True)
    if decision_id is not None and not selection.entries:
        raise typer.Exit(Exit.UNREADABLE)


def _verification_text(found: Verification) -> str:
    if found.ok and found.checkpoint is None:
        return "nothing is recorded here yet"
    text = [f"{_head(found)} {found.records:,} records, {found.source_events:,} source events, {found.size:,} bytes"]
    if found.head is not None:
        text.append(f"  last line   {found.records:,}, sha256 {found.head}")
    if found.checkpoint is not None:
        signed = found.checkpoint
        text.append(f"  checkpoint  line {signed.seq:,}, {signed.time}, signed with key {signed.key}")
    if found.writing:
        text.append("  an engine is writing to it now; what it has not finished is not counted")
    for broken in found.breaks:
        text += _break_text(broken)
    return "\n".join(text)


def _head(found: Verification) -> str:
    if found.ok:
        return "the record holds:"
    return "the record has an unfinished end; before it:" if found.repairable else "the record is BROKEN; what holds:"


def _break_text(broken: Break) -> list[str]:
    return [
        "",
        f"{broken.file}:{broken.line}: {broken.kind} at byte {broken.offset:,}",
        f"  what        {_MEANINGS[broken.kind.value]}",
        f"  expected    {shown(broken.expected)}",
        f"  found       {shown(broken.found)}",
        f"  what to do  {_UNFINISHED if broken.repairable else _TAMPERED}",
    ]


def _verification_json(found: Verification) -> str:
    breaks = [
        {
            "file": broken.file,
            "line": broken.line,
            "offset": broken.offset,
            "seq": broken.seq,
            "kind": broken.kind.value,
            "expected": broken.expected,
            "found": broken.found,
            "repairable": broken.repairable,
        }
        for broken in found.breaks
    ]
    return _json(
        {
            "ok": found.ok,
            "repairable": found.repairable,
            "breaks": breaks,
            "records": found.records,
            "source_events": found.source_events,
            "bytes": found.size,
            "head": found.head,
            "checkpoint": None if found.checkpoint is None else found.checkpoint.model_dump(mode="json"),
            "writing": found.writing,
        }
    )


def _selection_text(selection: Selection, *, detailed: bool) -> str:
    if not selection.entries:
        return "no such decision is recorded here"
    text = [line for entry in selection.entries for line in (_details(entry) if detailed else _summary(entry))]
    hidden = selection.fitting - len(selection.entries)
    if hidden:
        text.append(f"{hidden:,} earlier {'is' if hidden == 1 else 'are'} not shown; see --limit")
    return "\n".join(text)


def _summary(entry: Entry) -> list[str]:
    body = entry.body
    if body.kind == "decision":
        place = f"{body.mode.value:<8} {shown(body.point):<14} {body.outcome.value:<8} {shown(body.decision_id)}"
        findings = [f"      {finding}" for finding in _findings(body)]
        return [f"{body.time}  {place}", *findings]
    if body.kind == "result":
        return [f"{body.time}  result of {shown(body.decision_id)}: {shown(body.status)}"]
    return [f"{body.time}  recovery: {_cut(body)}"]


def _details(entry: Entry) -> list[str]:
    body = entry.body
    if body.kind == "decision":
        return _decision(entry, body)
    return _result(entry, body) if body.kind == "result" else _summary(entry)


def _decision(entry: Entry, body: DecisionRecord) -> list[str]:
    took = (f"{verb} {_milliseconds(spent)}" for verb, spent in body.durations if spent is not None)
    rows: dict[str, str | None] = {
        "time": body.time,
        "principal": body.principal,
        "run": body.run,
        "limits": None if body.limits is None else _inline(body.limits),
        "input": body.input_digest,
        "redacted": ", ".join(body.redactions) or None,
        "rules": None if body.policy is None else body.policy.rules,
        "values": None if body.policy is None else body.policy.values,
        "versions": f"engine {body.versions.engine}, OPA {body.versions.opa or 'not reached'}",
        "took": ", ".join(took) or None,
        "events": None if body.source_events is None else f"{body.source_events.count:,} in source_events.jsonl",
        "record": f"line {entry.seq:,}",
    }
    return [
        f"{body.outcome.value.upper()}  {shown(body.point)}  {_meaning(body.mode.value)}  {shown(body.decision_id)}",
        *(f"  {finding}" for finding in _findings(body)),
        *(f"  {name:<10} {shown(value, _LONG)}" for name, value in rows.items() if value is not None),
    ]


def _result(entry: Entry, body: ResultRecord) -> list[str]:
    return [
        f"RESULT  {shown(body.status)}  {shown(body.decision_id)}",
        f"  {'time':<10} {body.time}",
        f"  {'facts':<10} {shown(_inline(body.facts), _LONG)}",
        f"  {'took':<10} {_milliseconds(body.duration)}",
        f"  {'record':<10} line {entry.seq:,}",
    ]


def _findings(body: DecisionRecord) -> list[str]:
    return [
        f"{finding.level.value:<8} {shown(finding.code)}  {shown(finding.subject or '')}".rstrip()
        for finding in body.findings
    ]


def _cut(body: RecoveryRecord) -> str:
    return f"{body.bytes:,} unfinished bytes cut from {shown(body.file)}, kept in records/{shown(body.kept)}"


def _meaning(mode: str) -> str:
    return "dry run" if mode == Modes.CHECK else "enforced"


def _milliseconds(microseconds: int) -> str:
    return f"{microseconds / 1000:.1f} ms"


def _selection_json(selection: Selection) -> str:
    from engine.record.chain import plain_json

    return _json(
        {
            "entries": [plain_json(entry) for entry in selection.entries],
            "fitting": selection.fitting,
            "unreadable_lines": list(selection.unreadable),
        }
    )


def _inline(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)
