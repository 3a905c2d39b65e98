"""`engine record`: check the whole record, read it as a person wants to, hand it on, and remove what is old."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack, closing, nullcontext
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli import acts, options
from engine.errors import Exit, GatherError, Location
from engine.files import shown

if TYPE_CHECKING:
    from engine.record.chain import Entry
    from engine.record.layout import Break
    from engine.record.model import (
        DecisionRecord,
        PolicyRecord,
        RecoveryRecord,
        ReplayRecord,
        ResultRecord,
        RetentionRecord,
    )
    from engine.record.reader import Selection
    from engine.record.verify import Verification

app = typer.Typer(help="Verify, show, export and prune the decision record.", no_args_is_help=True)


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


class Exports(StrEnum):
    """What `--format` of an export takes."""

    CLOUDEVENTS = "cloudevents"
    CSV = "csv"


How = Annotated[Format, typer.Option("--format", help="Output format.")]

_LONG = 4_000  # characters of one row; limits of a large source bundle are cut, --format json has them whole

_MOST_DAYS = 36_500  # a hundred years

_MEANINGS = {
    "bad_json": "the line is none that the engine would have written",
    "bad_keys": "the line is JSON but not a record",
    "seq_gap": "a line was removed, doubled or moved",
    "chain_break": "the line was changed after it was written",
    "torn_tail": "the last write did not finish",
    "orphan_events": "source events were written, but their decision was not",
    "events_mismatch": "source events were changed after they were written",
    "retention_mismatch": "what the anchor says was removed is not what the record says",
    "left_segment": "retention was about to remove this file",
    "missing_segment": "a file of the record is gone",
    "unknown_segment": "a file stands here that does not belong to the record",
    "before_checkpoint": "the file is shorter than it was when it was signed",
    "checkpoint_mismatch": "the file is not the one that was signed",
    "checkpoint_missing": "there is no checkpoint, so a cut or rewritten record cannot be told from a whole one",
    "rolled_back": "the record has not the line that is remembered elsewhere: it is an older copy, or was rewritten",
    "installation_missing": "it is not known which installation wrote this record",
    "bad_signature": "this file is not signed with the key of this record",
}
_UNFINISHED = "nothing: no answer depended on it; the next start cuts it, keeps it in records/cut and records that"
_LEFT = "nothing: the next start removes it"
_TAMPERED = (
    "copy the state folder as it is, compare it with a backup, find out who could write to it; "
    "nothing is decided until it is restored or moved aside"
)


Since = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="TIME", help="Start time, such as 2026-11-21T09:30:00Z, or an age, such as 2h or 7d."
    ),
]


@app.command("verify")
def verify_record(
    state: options.State = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against", metavar="CHECKPOINT", help="Copy of checkpoints/decisions.json that was kept elsewhere."
        ),
    ] = None,
    how: How = Format.TEXT,
) -> None:
    """Verify lines, segments, signatures and source events, and that nothing is missing.

    Exits with 0; with 1 if a crash left a torn tail, which the next start repairs; with 4 if
    the record is broken, or older than the engine's state or the --against checkpoint.
    """
    from engine.record.verify import verify
    from engine.record_heads import StateHeads
    from engine.state import open_store

    folder = state_folder(state)
    copy = None if against is None else _copy(against)
    with ExitStack() as stack:
        heads = StateHeads(folder, lambda: stack.enter_context(closing(open_store(folder)))).known()
    found = verify(folder, heads, copy)
    typer.echo(_verification_json(found) if how is Format.JSON else _verification_text(found))
    raise typer.Exit(Exit.ALLOW if found.ok else Exit.DENY if found.repairable else Exit.FAILED_CLOSED)


def _copy(path: Path) -> bytes:
    """A checkpoint that was kept elsewhere. Raises GatherError."""
    try:
        with path.open("rb") as file:
            return file.read(1 << 16)
    except OSError as error:
        raise GatherError(
            f"`{shown(str(path))}` cannot be read: {(error.strerror or 'input failed').lower()}",
            remedy="name a copy of checkpoints/decisions.json",
        ) from error


@app.command("show")
def show_record(
    state: options.State = None,
    decision_id: Annotated[
        str | None,
        typer.Option(
            "--decision-id", metavar="ID", help="Show one decision in full; a unique prefix of its id is enough."
        ),
    ] = None,
    point: Annotated[str | None, typer.Option("--point", help="Filter by decision point, such as source.")] = None,
    outcome: Annotated[Outcomes | None, typer.Option("--outcome", help="Filter by outcome.")] = None,
    mode: Annotated[
        Modes | None, typer.Option("--mode", help="Filter by mode: dry runs or enforced decisions.")
    ] = None,
    since: Since = None,
    code: Annotated[str | None, typer.Option("--code", help="Filter by the code of a finding.")] = None,
    principal: Annotated[str | None, typer.Option("--principal", help="Filter by caller.")] = None,
    trace: Annotated[str | None, typer.Option("--trace", help="Filter by trace id.")] = None,
    request_id: Annotated[str | None, typer.Option("--request-id", help="Filter by request id.")] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=100_000, help="Maximum number of entries; the last ones are shown.")
    ] = 20,
    how: How = Format.TEXT,
) -> None:
    """Show the last decisions, or one in full. Does not verify the chain; `engine record verify` does."""
    from engine.points.registry import POINTS
    from engine.record.reader import Filter, select

    wanted = Filter(
        decision_id=decision_id,
        point=point,
        outcome=outcome and outcome.value,
        mode=mode and mode.value,
        since=since_time(since),
        code=code,
        principal=principal,
        trace=trace,
        request_id=request_id,
    )
    if point is not None and point not in POINTS:
        typer.echo(
            f"engine: there is no decision point `{shown(point, 40)}`; use one of: {', '.join(POINTS)}", err=True
        )
    selection = select(state_folder(state), wanted, limit)
    if how is Format.JSON:
        typer.echo(_selection_json(selection))
    else:
        typer.echo(_selection_text(selection, detailed=decision_id is not None))
    for place in selection.unreadable:
        _tell_unreadable(place)
    if decision_id is not None and not selection.entries:
        raise typer.Exit(Exit.UNREADABLE)


@app.command("export")
def export_record(
    state: options.State = None,
    how: Annotated[
        Exports, typer.Option("--format", help="Output format: CloudEvents as JSON lines, or CSV.")
    ] = Exports.CLOUDEVENTS,
    since: Since = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="New file to write to (default: standard output)."),
    ] = None,
) -> None:
    """Export the record for other tools: one CloudEvent per line, or one CSV row per decision.

    Does not verify the chain. CSV cells that a spreadsheet would run start with an apostrophe.
    """
    from engine.record.export import cloudevents, csv_rows
    from engine.record.reader import Filter

    make = cloudevents if how is Exports.CLOUDEVENTS else csv_rows
    folder, wanted = state_folder(state), Filter(since=since_time(since))
    try:
        opened = nullcontext() if output is None else output.open("x", encoding="utf-8", newline="")
        with opened as file:
            for line in make(folder, wanted):
                if isinstance(line, Location):
                    _tell_unreadable(line)
                elif file is None:
                    typer.echo(line, nl=False)
                else:
                    file.write(line)
    except FileExistsError as error:
        raise GatherError(f"`{shown(str(output))}` is there already", remedy="name a new file") from error
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = (error.strerror or "output failed").lower()
        raise GatherError(f"the export cannot be written: {reason}", remedy="name a file that can be made") from error


@app.command("retain")
def retain_record(
    keep_days: Annotated[
        int,
        typer.Option(
            "--keep-days", min=0, max=_MOST_DAYS, metavar="N", help="Age in days up to which every line is kept."
        ),
    ],
    reason: acts.Reason = None,
    state: options.State = None,
    policy: options.Policy = None,
    rego: options.Rego = None,
    bundle: options.Recipe = None,
    release: options.Release = None,
    release_key: options.ReleaseKey = None,
    how: How = Format.TEXT,
) -> None:
    """Remove old segments of the record, if decision point `record` allows it, and record the removal.

    Decided under the policy of the last enforced decision.
    """
    from engine.engine import Engine
    from engine.record.layout import LOCK

    chosen = options.settings(state_folder(state), policy, rego, bundle, (release, release_key))
    if not (chosen.state / LOCK).exists():
        typer.echo("nothing to remove: nothing has been recorded yet", err=True)
        return
    with Engine(chosen) as engine:
        options.tell_recovered(engine)
        answer = engine.retain(keep_days, reason, options.context(None))
    done = None if answer.result is None or answer.fault is not None else answer.result.facts
    if how is Format.JSON:
        decision = answer.decision.model_dump(mode="json")
        typer.echo(_json({"keep_days": keep_days, "decision": decision, "removed": done or None}))
    elif answer.decision.findings:
        for finding in answer.decision.findings:
            typer.echo(f"{finding.code}: required: {shown(finding.message)}\n  {finding.remedy}", err=True)
    elif answer.fault is not None:
        raise answer.fault
    elif not done:
        typer.echo(f"nothing to remove: no whole segment is older than {keep_days} days")
    else:
        first, last = done["first"], done["last"]
        segments = f"segment {first}" if first == last else f"segments {first} to {last}"
        typer.echo(f"removed {segments}: {done['lines']:,} lines, {done['size']:,} bytes; the removal is recorded")
    raise typer.Exit(answer.exit)


def state_folder(state: Path | None) -> Path:
    """The state folder, with or without a record. Raises GatherError where there is none."""
    folder = options.settings(state).state
    if not folder.is_dir():
        raise GatherError(
            f"there is no state folder `{shown(str(folder))}`",
            remedy="name the state folder of the engine with --state, or in ENGINE_STATE_DIR",
        )
    return folder


def since_time(text: str | None) -> str | None:
    """The time of `--since` as the record writes it."""
    from engine.record.model import timestamp

    if text is None:
        return None
    try:
        moment = _moment(text)
    except (ValueError, OverflowError):
        moment = None
    if moment is None or moment.tzinfo is None:
        raise typer.BadParameter("write 2026-11-21T09:30:00Z, or a span such as 2h or 7d", param_hint="--since")
    return timestamp(moment)


def _moment(text: str) -> datetime | None:
    if span := re.fullmatch(r"([0-9]{1,6})([smhdw])", text):
        names = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
        return datetime.now(UTC) - timedelta(**{names[span[2]]: int(span[1])})
    return datetime.fromisoformat(text.upper()) if re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]", text) else None


def _tell_unreadable(place: Location) -> None:
    typer.echo(f"{place} is no record; run `engine record verify`", err=True)


def _verification_text(found: Verification) -> str:
    if found.ok and found.checkpoint is None:
        return "nothing has been recorded yet"
    text = [f"{_head(found)} {found.records:,} records, {found.source_events:,} source events, {found.size:,} bytes"]
    if found.head is not None:
        text.append(f"  last line   {found.removed + found.records:,}, sha256 {found.head}")
    if found.segments > 1:
        text.append(f"  segments    {found.segments:,}")
    if found.anchor is not None:
        told = f"by line {found.anchor.retained_by:,}, signed {found.anchor.time}"
        text.append(f"  removed     {found.removed:,} records before these, by retention; {told}")
    if found.checkpoint is not None:
        signed = found.checkpoint
        text.append(f"  checkpoint  line {signed.seq:,}, {signed.time}, signed with key {signed.key}")
    text += [f"  contained   line {seq:,}, as remembered outside the record" for seq in found.contained]
    if found.writing:
        text.append("  an engine is writing to this record; unfinished lines are not counted")
    for broken in found.breaks:
        text += _break_text(broken)
    return "\n".join(text)


def _head(found: Verification) -> str:
    if found.ok:
        return "record intact:"
    return "record intact up to a torn tail:" if found.repairable else "record BROKEN; intact part:"


def _break_text(broken: Break) -> list[str]:
    return [
        "",
        f"{broken.file}:{broken.line}: {broken.kind} at byte {broken.offset:,}",
        f"  what        {_MEANINGS[broken.kind.value]}",
        f"  expected    {shown(broken.expected)}",
        f"  found       {shown(broken.found)}",
        f"  what to do  {_what_to_do(broken)}",
    ]


def _what_to_do(broken: Break) -> str:
    if not broken.repairable:
        return _TAMPERED
    return _LEFT if broken.kind.value == "left_segment" else _UNFINISHED


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
            "segments": found.segments,
            "removed": found.removed,
            "anchor": None if found.anchor is None else found.anchor.model_dump(mode="json"),
            "checkpoint": None if found.checkpoint is None else found.checkpoint.model_dump(mode="json"),
            "contained": list(found.contained),
            "writing": found.writing,
        }
    )


def _selection_text(selection: Selection, *, detailed: bool) -> str:
    if not selection.entries:
        return "no matching decision in this record"
    text = [line for entry in selection.entries for line in (_details(entry) if detailed else _summary(entry))]
    hidden = selection.fitting - len(selection.entries)
    if hidden:
        text.append(f"{hidden:,} earlier {'entry' if hidden == 1 else 'entries'} not shown; see --limit")
    return "\n".join(text)


def _summary(entry: Entry) -> list[str]:
    body = entry.body
    if body.kind == "decision":
        place = f"{body.outcome.value:<8} {shown(body.point):<14} {body.mode.value:<8} {shown(body.decision_id)}"
        who = "" if body.principal is None else f"  by {shown(body.principal)}"
        findings = [f"      {finding}" for finding in _findings(body)]
        return [f"{body.time}  {place}{who}", *_act(body), *findings]
    if body.kind == "result":
        return [f"{body.time}  result of {shown(body.decision_id)}: {shown(body.status)}"]
    if body.kind == "replay":
        return [f"{body.time}  replayed: {shown(body.decision_id)}{_times(body)}"]
    if body.kind == "policy":
        return [f"{body.time}  policy {body.outcome}: {_changed(body)}"]
    return [f"{body.time}  {body.kind}: {_cut(body) if body.kind == 'recovery' else _removed(body)}"]


def _details(entry: Entry) -> list[str]:
    body = entry.body
    if body.kind == "decision":
        return _decision(entry, body)
    if body.kind == "result":
        return _result(entry, body)
    return _replay(entry, body) if body.kind == "replay" else _summary(entry)


def _decision(entry: Entry, body: DecisionRecord) -> list[str]:
    took = (f"{verb} {_milliseconds(spent)}" for verb, spent in body.durations if spent is not None)
    rows: dict[str, str | None] = {
        "time": body.time,
        "principal": body.principal,
        "run": body.run,
        "request": body.request_id,
        "trace": body.trace,
        "approval": body.approval,
        "act": next(iter(_act(body)), "").strip() or None,
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


def _times(body: ReplayRecord) -> str:
    return "" if body.times == 1 else f", {body.times:,} times"


def _result(entry: Entry, body: ResultRecord) -> list[str]:
    return [
        f"RESULT  {shown(body.status)}  {shown(body.decision_id)}",
        f"  {'time':<10} {body.time}",
        f"  {'facts':<10} {shown(_inline(body.facts), _LONG)}",
        f"  {'took':<10} {_milliseconds(body.duration)}",
        f"  {'record':<10} line {entry.seq:,}",
    ]


def _replay(entry: Entry, body: ReplayRecord) -> list[str]:
    rows = {"time": body.time, "principal": body.principal, "request": body.request_id, "trace": body.trace}
    return [
        f"REPLAYED  {shown(body.decision_id)}",
        *(f"  {name:<10} {shown(value, _LONG)}" for name, value in rows.items() if value is not None),
        f"  {'record':<10} line {entry.seq:,}",
    ]


def _act(body: DecisionRecord) -> list[str]:
    """What an administrative decision is about, and why."""
    if body.point != "administration" or body.input is None:
        return []
    facts = body.input
    about = facts.get("scope") or facts.get("prefix") or facts.get("approval") or {}
    told = [f"{name} {_inline(value)}" for name, value in about.items()]
    head = f"{facts.get('act')} {facts.get('id')}"
    return [f"      {shown(', '.join([head, *told]), _LONG)}{_why(facts.get('reason'))}"]


def _why(reason: object) -> str:
    return f": {shown(str(reason), _LONG)}" if reason else ""


def _changed(body: PolicyRecord) -> str:
    now = "no policy was built" if body.revisions is None else f"values {body.revisions.values}"
    code = "" if body.code is None else f" ({shown(body.code)})"
    return f"{now}{code} by {shown(body.principal or 'an unnamed caller')}{_why(body.reason)}"


def _removed(body: RetentionRecord) -> str:
    return (
        f"segments {body.first_segment} to {body.last_segment} removed, all lines up to {body.last_seq:,}: "
        f"from before {body.before}, kept for {body.keep_days} days, "
        f"by {shown(body.principal or 'an unnamed caller')}{_why(body.reason)}"
    )


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
            "unreadable_lines": [str(place) for place in selection.unreadable],
        }
    )


def _inline(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)
