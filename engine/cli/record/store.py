"""What was shipped to an object store, and the result of verifying what is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from engine.cli.record.verification import break_text, chain_document, chain_text
from engine.documents.files import counted, printable

if TYPE_CHECKING:
    from engine.record.layout import Break
    from engine.record.shipping import Shipped
    from engine.record.stored import StoredVerification

_TAMPERED = (
    "keep what is at the store, compare it with the record of the engine or with earlier versions of the object, "
    "and find out who could write there"
)


def shipped_lines(url: str, done: Mapping[int, Shipped]) -> Iterator[str]:
    """The store, then one line a chain."""
    yield _store_line(url)
    for number, shipped in done.items():
        closed = counted(shipped.segments, "closed segment")
        sent = f"{shipped.size:,} bytes sent and read back, {closed}" if shipped.size else "nothing new"
        yield f"chain {number}: shipped up to line {shipped.seq:,}; {sent}"


def store_text(url: str, found: Sequence[StoredVerification], strange: Sequence[Break]) -> str:
    """The store, chain by chain, then what belongs to none, then all of it in one line."""
    text = [_store_line(url)]
    for one in found:
        text.append(chain_text(f"engine {one.engine[:12]}, chain {one.chain}: ", one.found, _TAMPERED))
        if one.key and not one.signed:
            text.append(f"  signature   not checked: give a copy of keys/record.key with id {one.key} as --key")
        if one.unverified:
            text.append(
                f"  not read    {counted(one.unverified, 'segment')} before the removed ones, which nothing vouches for"
            )
    for broken in strange:
        text += break_text(broken, _TAMPERED)
    total = _total(found, strange)
    summary = "all intact" if total["ok"] else f"not intact: {sum(not one.found.ok for one in found)}"
    unsigned = sum(bool(one.key) and not one.signed for one in found)
    summary += f", signature not checked: {unsigned}" if unsigned else ""
    counts = (
        f"{counted(total['records'], 'record')}, {total['removed']:,} removed by retention, {total['bytes']:,} bytes"
    )
    places = f"{counted(total['engines'], 'engine')}, {counted(len(found), 'chain')}"
    return "\n".join([*text, f"{places}, {summary}: {counts}"])


def store_document(url: str, found: Sequence[StoredVerification], strange: Sequence[Break]) -> dict[str, Any]:
    """The store, each chain, and all of them in sum."""
    chains = [
        chain_document(one.chain, one.found)
        | {"engine": one.engine, "signed": one.signed, "unverified": one.unverified}
        for one in found
    ]
    breaks = [
        {"engine": one["engine"], "chain": one["chain"], **broken} for one in chains for broken in one.pop("breaks")
    ]
    return {"store": url, **_total(found, strange), "breaks": [*breaks, *map(asdict, strange)], "chains": chains}


def _store_line(url: str) -> str:
    return f"store: {printable(url)}"


def _total(found: Sequence[StoredVerification], strange: Sequence[Break]) -> dict[str, Any]:
    return {
        "ok": not strange and all(one.found.ok for one in found),
        "signed": all(one.signed for one in found),
        "engines": len({one.engine for one in found}),
        "records": sum(one.found.records for one in found),
        "removed": sum(one.found.removed for one in found),
        "bytes": sum(one.found.size for one in found),
    }
