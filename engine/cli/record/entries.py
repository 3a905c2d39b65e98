"""Lines of the record, for people and for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from engine.cli.outputs import painted, rows
from engine.documents.files import counted, printable
from engine.model import is_reserved
from engine.times import with_times

if TYPE_CHECKING:
    from engine.record.chain import Entry
    from engine.record.model import (
        DecisionRecord,
        PolicyRecord,
        RecoveryRecord,
        ReplayRecord,
        ResultRecord,
        RetentionRecord,
    )
    from engine.record.reader import Selection

_LONG = 4_000  # characters of one row


def selection_text(selection: Selection, *, detailed: bool) -> str:
    """The selected lines, one each, or in full."""
    if not selection.entries:
        none = "no decision with this id in this record; `engine record show` lists the last ones"
        return none if detailed else "no matching decision in this record"
    text = [line for entry in selection.entries for line in (_details(entry) if detailed else _summary(entry))]
    hidden = selection.matching - len(selection.entries)
    if hidden:
        text.append(f"{hidden:,} earlier {'entry' if hidden == 1 else 'entries'} not shown; see --limit")
    return "\n".join(text)


def _summary(entry: Entry) -> list[str]:
    body = entry.body
    if body.kind == "decision":
        outcome = painted(body.outcome.value, 8)
        place = f"{outcome} {printable(body.point):<14} {body.mode.value:<8} {printable(body.decision_id)}"
        who = "" if body.principal is None else f"  by {printable(body.principal)}"
        findings = [f"      {finding}" for finding in _findings(body)]
        return [f"{body.time}  {place}{who}", *_act(body), *findings]
    if body.kind == "result":
        return [f"{body.time}  result of {printable(body.decision_id)}: {printable(body.status)}"]
    if body.kind == "replay":
        times = "" if body.times == 1 else f", {body.times:,} times"
        return [f"{body.time}  replayed: {printable(body.decision_id)}{times}"]
    if body.kind == "shadow":
        verdict = f"{body.candidate.outcome.value}, {body.change or 'unchanged'}"
        return [f"{body.time}  shadow of {printable(body.decision_id)}: {printable(verdict)}"]
    if body.kind == "policy":
        return [f"{body.time}  policy {body.outcome}: {_changed(body)}"]
    return [f"{body.time}  {body.kind}: {_cut(entry, body) if body.kind == 'recovery' else _removed(body)}"]


def _details(entry: Entry) -> list[str]:
    body = entry.body
    if body.kind == "decision":
        return _decision(entry, body)
    if body.kind == "result":
        return _result(entry, body)
    return _replay(entry, body) if body.kind == "replay" else _summary(entry)


def _decision(entry: Entry, body: DecisionRecord) -> list[str]:
    took = (f"{verb} {_milliseconds(spent)}" for verb, spent in body.durations if spent is not None)
    pairs = {
        "time": body.time,
        "principal": body.principal,
        "run": body.run,
        "request": body.request_id,
        "trace": body.trace,
        "approval": body.approval,
        "shared": None if body.shared_from is None else f"the answer to an equal case, {printable(body.shared_from)}",
        "act": next(iter(_act(body)), "").strip() or None,
        "codes": _requirements(body),
        "limits": None if body.limits is None else _inline(body.limits),
        "input": None if body.input_digest is None else f"{body.input_digest}, its facts with --format json",
        "redacted": ", ".join(body.redactions) or None,
        "rules": None if body.policy is None else body.policy.rules,
        "values": None if body.policy is None else body.policy.values,
        "versions": f"engine {body.versions.engine}, OPA {body.versions.opa or 'not reached'}",
        "took": ", ".join(took) or None,
        "events": None if body.source_events is None else f"{body.source_events.count:,} in source_events.jsonl",
        "record": _place(entry),
    }
    how = "dry run" if body.mode.value == "check" else "enforced"
    head = f"{body.outcome.value.upper()}  {printable(body.point)}  {how}"
    return [f"{head}  {printable(body.decision_id)}", *(f"  {finding}" for finding in _findings(body)), *rows(pairs)]


def _requirements(body: DecisionRecord) -> str | None:
    """The command that prints what the codes of the policy require."""
    if all(is_reserved(finding.code) for finding in body.findings):
        return None
    return f"`engine policy show {printable(body.point)}` has their requirements and fixes"


def _result(entry: Entry, body: ResultRecord) -> list[str]:
    pairs = {"time": body.time, "facts": _inline(body.facts), "took": _milliseconds(body.duration)}
    head = f"RESULT  {printable(body.status)}  {printable(body.decision_id)}"
    return [head, *rows(pairs | {"record": _place(entry)})]


def _replay(entry: Entry, body: ReplayRecord) -> list[str]:
    pairs = {"time": body.time, "principal": body.principal, "request": body.request_id, "trace": body.trace}
    return [f"REPLAYED  {printable(body.decision_id)}", *rows(pairs | {"record": _place(entry)})]


def _act(body: DecisionRecord) -> list[str]:
    """What an administrative decision is about, and why."""
    if body.point != "administration" or body.input is None:
        return []
    facts = body.input
    about = facts.get("scope") or facts.get("prefix") or facts.get("approval") or {}
    named = [f"{name} {value if name.endswith('_at') else _inline(value)}" for name, value in with_times(about).items()]
    head = f"{facts.get('act')} {facts.get('id')}"
    return [f"      {printable(', '.join([head, *named]), _LONG)}{_reason_text(facts.get('reason'))}"]


def _reason_text(reason: object) -> str:
    return f": {printable(str(reason), _LONG)}" if reason else ""


def _changed(body: PolicyRecord) -> str:
    now = "no policy was built" if body.revisions is None else f"values {body.revisions.values}"
    code = "" if body.code is None else f" ({printable(body.code)})"
    if (release := body.release) is not None:
        people = f"built by {printable(release.author)}, approved by {printable(release.approver or 'nobody')}"
        now = f"release {release.sequence} of {printable(release.name)}, {people}, {now}"
    return f"{now}{code} by {printable(body.principal or 'an unnamed caller')}{_reason_text(body.reason)}"


def _place(entry: Entry) -> str:
    return f"line {entry.seq:,}" + (f" of chain {entry.chain}" if entry.chain > 1 else "")


def _removed(body: RetentionRecord) -> str:
    return (
        f"segments {body.first_segment} to {body.last_segment} removed, all lines up to {body.last_seq:,}: "
        f"from before {body.before}, kept for {counted(body.keep_days, 'day')}, "
        f"by {printable(body.principal or 'an unnamed caller')}{_reason_text(body.reason)}"
    )


def _findings(body: DecisionRecord) -> list[str]:
    return [
        f"{painted(finding.level.value, 8)} {printable(finding.code)}  {printable(finding.subject or '')}".rstrip()
        + ("" if finding.waiver is None else f"  waived by {printable(finding.waiver)}")
        for finding in body.findings
    ]


def _cut(entry: Entry, body: RecoveryRecord) -> str:
    from engine.record.chains import chain_path

    kept = f"{chain_path(entry.chain)}records/{printable(body.kept)}"
    return f"{body.bytes:,} unfinished bytes cut from {printable(body.file)}, kept in {kept}"


def _milliseconds(microseconds: int) -> str:
    return f"{microseconds / 1000:.1f} ms"


def selection_document(selection: Selection) -> dict[str, Any]:
    """The selected lines as they are in the record, each with its chain."""
    from engine.record.chain import plain_json

    return {
        "entries": [{"chain": entry.chain, **plain_json(entry)} for entry in selection.entries],
        "matching": selection.matching,
        "unreadable_lines": [str(place) for place in selection.unreadable],
    }


def _inline(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
