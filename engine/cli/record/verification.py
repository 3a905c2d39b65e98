"""The result of verifying a record, for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from engine.cli.outputs import rows
from engine.documents.files import counted, printable

if TYPE_CHECKING:
    from engine.record.bulk import RunVerification
    from engine.record.layout import Break
    from engine.record.verify import Verification

_MEANINGS = {
    "bad_json": "the engine would not have written this line",
    "bad_keys": "the line is JSON but not a record",
    "seq_gap": "a line was removed, doubled or moved",
    "chain_break": "the line was changed after it was written",
    "torn_tail": "the last write did not finish",
    "orphan_events": "source events were written, but their decision was not",
    "events_mismatch": "source events were changed after they were written",
    "retention_mismatch": "the anchor and the record disagree about what was removed",
    "left_segment": "retention was about to remove this file",
    "missing_segment": "a file of the record is gone",
    "unknown_segment": "this file does not belong to the record",
    "before_checkpoint": "the file is shorter than when it was signed",
    "checkpoint_mismatch": "the file is not the one that was signed",
    "checkpoint_missing": "there is no checkpoint, so a truncated or rewritten record looks like an intact one",
    "rolled_back": "a line that the state or a checkpoint proves is missing: this is an older copy, or was rewritten",
    "installation_missing": "the installation that wrote this record is unknown",
    "manifest_missing": "the run did not end, so nothing proves that its record is whole",
    "bad_signature": "this file is not signed with the key of this record",
}
_UNFINISHED = "nothing: no answer depended on it; the next start moves it to records/cut and records that"
_LEFT = "nothing: the next start removes it"
_TAMPERED = (
    "copy the state folder unchanged, compare it with a backup, find out who could write to it, then restore it or "
    "move it aside; engines read only the end of the record, and go on deciding if that is intact"
)
_RUN = {
    "manifest_missing": "if it was interrupted, run the same command again: units that are whole are kept; "
    "if not, find out who could write to this folder",
    "bad_signature": "name the state folder of the run with --state; if that is the one, find out who could write here",
}


def verification_text(found: Mapping[int, Verification]) -> str:
    """What was verified, chain by chain; for each break the place, the meaning and what to do."""
    if len(found) == 1:
        return chain_text("", found[1])
    text = [chain_text(f"chain {number}: ", chain) for number, chain in found.items()]
    broken = ", ".join(str(number) for number, chain in found.items() if not chain.ok)
    chains = f"{counted(len(found), 'chain')}, {f'not intact: {broken}' if broken else 'all intact'}"
    return "\n".join([*text, f"{chains}: {counted(_sum(found, 'records'), 'record')}, {_sum(found, 'size'):,} bytes"])


def chain_text(name: str, found: Verification, tampered: str = _TAMPERED) -> str:
    """One chain; `tampered` is what to do about a break that no crash explains."""
    if found.ok and found.checkpoint is None:
        return f"{name}nothing has been recorded yet"
    counts = f"{counted(found.records, 'record')}, {counted(found.source_events, 'source event')}, {found.size:,} bytes"
    text = [f"{name}{_head(found)} {counts}"]
    pairs = {
        "last line": found.head and f"{found.removed + found.records:,}, sha256 {found.head}",
        "segments": f"{found.segments:,}" if found.segments > 1 else None,
    }
    if (gone := found.anchor) is not None:
        retained = f"by line {gone.retained_by:,}, signed {gone.time}"
        pairs["removed"] = f"{counted(gone.seq, 'record')} before these, by retention; {retained}"
    if (signed := found.checkpoint) is not None:
        pairs["checkpoint"] = f"line {signed.seq:,}, {signed.time}, signed with key {signed.key}"
    text += rows(pairs, 11)
    text += [f"  contains    line {seq:,}, which the state or a checkpoint requires" for seq in found.contained]
    if found.writing:
        text.append("  an engine is writing to this record; unfinished lines are not counted")
    for broken in found.breaks:
        text += break_text(broken, tampered)
    return "\n".join(text)


def _sum(found: Mapping[int, Verification], name: str) -> int:
    return sum(getattr(chain, name) for chain in found.values())


def _head(found: Verification) -> str:
    if found.ok:
        return "record intact:"
    return "record intact up to a torn tail:" if found.repairable else "record BROKEN; intact part:"


def break_text(broken: Break, tampered: str) -> list[str]:
    """A break, with its meaning and what to do."""
    crash = _LEFT if broken.kind.value == "left_segment" else _UNFINISHED
    pairs = {
        "what": _MEANINGS[broken.kind.value],
        "expected": printable(broken.expected),
        "found": printable(broken.found),
        "what to do": crash if broken.repairable else tampered,
    }
    return ["", f"{broken.file}:{broken.line}: {broken.kind} at byte {broken.offset:,}", *rows(pairs, 11)]


def verification_document(found: Mapping[int, Verification]) -> dict[str, Any]:
    """Each chain, and all of them in sum."""
    chains = [chain_document(number, chain) for number, chain in found.items()]
    return {
        "ok": all(chain.ok for chain in found.values()),
        "repairable": any(chain.repairable for chain in found.values())
        and all(chain.ok or chain.repairable for chain in found.values()),
        "breaks": [{"chain": chain["chain"], **broken} for chain in chains for broken in chain.pop("breaks")],
        "records": _sum(found, "records"),
        "source_events": _sum(found, "source_events"),
        "bytes": _sum(found, "size"),
        "removed": _sum(found, "removed"),
        "writing": any(chain.writing for chain in found.values()),
        "chains": chains,
    }


def run_text(found: RunVerification) -> str:
    """What was verified of a bulk run; for each break the place, the meaning and what to do."""
    counts = f"{counted(found.records, 'record')} in {counted(found.segments, 'segment')}, {found.size:,} bytes"
    text = [f"run {'intact' if found.ok else 'BROKEN; intact part'}: {counts}"]
    if (signed := found.manifest) is not None:
        policy = {"rules": signed.policy.rules, "values": signed.policy.values}
        text += rows({"manifest": f"{signed.time}, signed with key {signed.key}", **policy}, 11)
    for broken in found.breaks:
        text += break_text(broken, _RUN.get(broken.kind.value, _TAMPERED))
    return "\n".join(text)


def run_document(found: RunVerification) -> dict[str, Any]:
    """A bulk run, with the kind of each break as its code."""
    return {
        "ok": found.ok,
        "breaks": [asdict(broken) for broken in found.breaks],
        "records": found.records,
        "segments": found.segments,
        "bytes": found.size,
        "manifest": None if found.manifest is None else found.manifest.model_dump(mode="json", exclude={"segments"}),
    }


def chain_document(number: int, found: Verification) -> dict[str, Any]:
    """One chain, with the kind of each break as its code."""
    document = {name: value for name, value in asdict(found).items() if name not in {"ends", "size"}}
    return document | {
        "chain": number,
        "ok": found.ok,
        "repairable": found.repairable,
        "breaks": [{**asdict(broken), "repairable": broken.repairable} for broken in found.breaks],
        "bytes": found.size,
        "removed": found.removed,
        "anchor": None if found.anchor is None else found.anchor.model_dump(mode="json"),
        "checkpoint": None if found.checkpoint is None else found.checkpoint.model_dump(mode="json"),
    }
