"""`engine record`: verify, show, export and prune the decision record."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn, TextIO, TypeVar

import typer

from engine.cli import options
from engine.cli.administration import acts
from engine.cli.outputs import json_text, print_text
from engine.cli.record.entries import selection_document, selection_text
from engine.cli.record.store import shipped_lines, store_document, store_text
from engine.cli.record.verification import run_document, run_text, verification_document, verification_text
from engine.cli.waiting import Waiting, during
from engine.documents.files import counted, printable, read_bytes
from engine.errors import Exit, GatherError, Location, reason_of
from engine.state import exists, open_store
from engine.times import moment, timestamp

if TYPE_CHECKING:
    from engine.policy_bundle.build import PolicyBundle
    from engine.record.verify import Verification

app = typer.Typer()


Outcomes = Literal["allow", "confirm", "deny"]
Modes = Literal["check", "enforce"]

_MOST_DAYS = 36_500  # a hundred years


def since_time(text: str) -> str:
    """The time of `--since` as the record writes it."""
    names = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
    try:
        if span := re.fullmatch(r"([0-9]{1,6})([smhdw])", text):
            return timestamp(datetime.now(UTC) - timedelta(**{names[span[2]]: int(span[1])}))
        return timestamp(moment(f"{text}T00:00:00Z" if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) else text))
    except (ValueError, OverflowError) as error:
        message = "write 2026-11-21T09:30:00Z, 2026-11-21 for 00:00 UTC, or an age such as 2h or 7d"
        raise typer.BadParameter(message) from error


Since = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Start time, such as 2026-11-21T09:30:00Z, a day in UTC, or an age, such as 2h or 7d.",
        parser=since_time,
    ),
]
Point = Annotated[str | None, typer.Option(help="Filter by decision point, such as source.", **options.POINT)]
Principal = Annotated[str | None, typer.Option(metavar="NAME", help="Filter by caller.")]
Mode = Annotated[Modes | None, typer.Option(help="Filter by mode: dry runs or enforced decisions.")]


@app.command("verify")
def verify_record(
    url: Annotated[
        str | None, typer.Argument(metavar="URL", help="Store with shipped records, to verify in place of the state.")
    ] = None,
    state: options.State = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="CHECKPOINT", help="Copy of checkpoints/decisions.json that was kept elsewhere."),
    ] = None,
    bulk: Annotated[
        Path | None, options.folder(help="Verify a bulk run in place of the state: its manifest, segments and rows.")
    ] = None,
    key: Annotated[
        list[Path] | None, options.file(help="Copy of keys/record.key of an engine that ships to the URL; repeatable.")
    ] = None,
    how: options.Output = "text",
) -> None:
    """Verify lines, segments, signatures and source events of all chains, and that nothing is missing.

    Exits with 0; with 1 if a crash left a torn tail, which the next start repairs, or if a signature at the URL was
    not checked because its key is missing; with 4 if the record is broken, or older than the engine's state or the
    --against checkpoint. At a URL, keys and receipts of the state folder are used too.
    """
    if url is not None:
        if bulk is not None:
            raise typer.BadParameter("a bulk run is verified in its folder", param_hint="--bulk")
        verify_shipped(url, state, key or [], None if against is None else _copy(against), how)
    if key:
        raise typer.BadParameter("keys are for shipped records: name a URL", param_hint="--key")
    if bulk is not None:
        if against is not None:
            raise typer.BadParameter("a bulk run has a manifest in place of checkpoints", param_hint="--against")
        verify_bulk(bulk, existing_folder(state), how)
    found = verified(existing_folder(state), None if against is None else _copy(against))
    print_text(json_text(verification_document(found), sort=True) if how == "json" else verification_text(found))
    if all(chain.ok for chain in found.values()):
        raise typer.Exit(Exit.ALLOW)
    repairable = all(chain.ok or chain.repairable for chain in found.values())
    raise typer.Exit(Exit.DENY if repairable else Exit.FAILED_CLOSED)


def verify_bulk(run: Path, state: Path, how: str) -> NoReturn:
    """Verify a bulk run with the key of this state folder. Raises RecordError."""
    from engine.record.bulk import signer, verify_run

    with during("verifying the run"):
        found = verify_run(run, signer(state))
    print_text(json_text(run_document(found), sort=True) if how == "json" else run_text(found))
    raise typer.Exit(Exit.ALLOW if found.ok else Exit.FAILED_CLOSED)


def verified(folder: Path, copy: bytes | None = None) -> dict[int, Verification]:
    """The verification of each chain of a state folder. Raises RecordError, StateError."""
    from engine.record.verify_chains import verify_chains

    with closing(open_store(folder)) if exists(folder) else nullcontext() as store:
        heads = {} if store is None else store.record_heads()
    with during("verifying the record"):
        return verify_chains(folder, heads, copy)


def _copy(path: Path) -> bytes:
    """A copy of a checkpoint. Raises GatherError."""
    data = read_bytes(path, 1 << 16)
    if b'"mac"' not in data:
        remedy = "name a copy of checkpoints/decisions.json"
        raise GatherError(f"`{printable(str(path))}` is not a checkpoint", remedy=remedy)
    return data


@app.command("ship")
def ship_record(
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL", callback=options.text, help="Store, such as s3://bucket/records or file:///folder."
        ),
    ],
    state: options.State = None,
    how: options.Output = "text",
) -> None:
    """Copy the record to an object store, and read it back. From then on, retention keeps what is not there.

    Sends what the store lacks up to the last checkpoint; never replaces a closed segment. Run it again and again.
    """
    from engine.record.shipping import destination, ship

    folder = existing_folder(state)
    with during("shipping the record"):
        done, store = ship(folder, url), destination(folder)
    if how == "json":
        chains = [{"chain": chain, **asdict(shipped)} for chain, shipped in done.items()]
        print_text(json_text({"store": store, "chains": chains}, sort=True))
    elif store is None:
        print_text("nothing to ship: nothing has been recorded yet")
    else:
        print_text("\n".join(shipped_lines(store, done)))


def verify_shipped(
    url: str, state: options.StateAt | None, keys: list[Path], against: bytes | None, how: str
) -> NoReturn:
    """Verify the chains at a store. Raises RecordError."""
    from engine.record.objects import ObjectStore
    from engine.record.shipping import trust
    from engine.record.stored import verify_store

    folder = options.state_folder(state) if state is None else existing_folder(state)
    store = ObjectStore(url)
    with during("verifying the store"):
        found, strange = verify_store(store, trust(folder, store.url, [read_bytes(key, 64) for key in keys], against))
    there = store.url, found, strange
    print_text(json_text(store_document(*there), sort=True) if how == "json" else store_text(*there))
    if strange or not all(one.found.ok for one in found):
        raise typer.Exit(Exit.FAILED_CLOSED)
    raise typer.Exit(Exit.ALLOW if all(one.signed for one in found) else Exit.DENY)


@app.command("show")
def show_record(
    state: options.State = None,
    decision_id: Annotated[
        str | None, typer.Option(metavar="ID", help="Show one decision in full; a unique prefix of its id is enough.")
    ] = None,
    point: Point = None,
    outcome: Annotated[Outcomes | None, typer.Option(help="Filter by outcome.")] = None,
    mode: Mode = None,
    since: Since = None,
    code: Annotated[str | None, typer.Option(metavar="CODE", help="Filter by the code of a finding.")] = None,
    principal: Principal = None,
    run: Annotated[str | None, typer.Option(metavar="ID", help="Filter by the id of the pipeline run.")] = None,
    trace: Annotated[str | None, typer.Option(metavar="ID", help="Filter by trace id.")] = None,
    request_id: Annotated[
        str | None, typer.Option(metavar="ID", help="Filter by request id; of a run of code, by its id.")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=100000, help="Maximum number of entries; the last ones are shown.")
    ] = 20,
    how: options.Output = "text",
) -> None:
    """Show the last decisions, or one in full. Does not verify the chain; `engine record verify` does."""
    from engine.record.reader import Filter, select

    criteria = Filter(
        decision_id=decision_id,
        point=point,
        outcome=outcome,
        mode=mode,
        since=since,
        code=code,
        principal=principal,
        run=run,
        trace=trace,
        request_id=request_id,
    )
    selection = select(existing_folder(state), criteria, limit)
    if how == "json":
        print_text(json_text(selection_document(selection), sort=True))
    else:
        print_text(selection_text(selection, detailed=decision_id is not None))
    for place in selection.unreadable:
        report_unreadable(place)
    if decision_id is not None and not selection.entries:
        raise typer.Exit(Exit.UNREADABLE)


@app.command("export")
def export_record(
    state: options.State = None,
    how: Annotated[
        Literal["cloudevents", "csv"],
        typer.Option("--format", help="Output format: CloudEvents as JSON lines, or CSV."),
    ] = "cloudevents",
    since: Since = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="New file to write to (default: standard output).")
    ] = None,
) -> None:
    """Export the record for other tools: one CloudEvent per line, or one CSV row per decision.

    Does not verify the chain. CSV cells that a spreadsheet would run start with an apostrophe, and
    control characters in them become `?`.
    """
    from engine.record.export import cloudevents, csv_rows
    from engine.record.reader import Filter

    make = cloudevents if how == "cloudevents" else csv_rows
    folder, criteria = existing_folder(state), Filter(since=since)
    with nullcontext() if output is None else _new_file(output) as file:
        for line in make(folder, criteria):
            if isinstance(line, Location):
                report_unreadable(line)
            elif file is None:
                print_text(line)
            else:
                file.write(line)


@contextmanager
def _new_file(path: Path) -> Iterator[TextIO]:
    """A new file, which stays only if it is whole. Raises GatherError."""
    try:
        with path.open("x", encoding="utf-8", newline="") as file, ExitStack() as failed:
            failed.callback(path.unlink)
            yield file
            file.flush()
            failed.pop_all()
    except FileExistsError as error:
        raise GatherError(f"`{printable(str(path))}` already exists", remedy="name a new file") from error
    except OSError as error:
        reason = reason_of(error)
        raise GatherError(f"the export cannot be written: {reason}", remedy="name a writable file") from error


@app.command("retain")
@options.sourced("state", *options.SERVED)
def retain_record(
    sources: options.Sources,
    keep_days: Annotated[int, typer.Option(min=0, max=_MOST_DAYS, help="Number of days for which every line is kept.")],
    reason: acts.Reason = None,
    how: options.Output = "text",
) -> None:
    """Remove old segments of the record, if decision point `record` allows it, and record the removal.

    Decided under the policy of the last enforced decision. Running engines are asked to remove their own segments.
    """
    from engine.cli.formats.show import finding_text
    from engine.record.layout import LOCK
    from engine.record.shipping import destination

    if not (existing_folder(sources.state) / LOCK).exists():
        typer.echo("nothing to remove: nothing has been recorded yet", err=True)
        return
    with sources.engine("record") as engine:
        answer = engine.retain(keep_days, reason, options.Sources().context())
    done = {} if answer.result is None or answer.fault is not None else answer.result.facts
    if how == "json":
        decision = answer.decision.model_dump(mode="json")
        removal = {"removed": done.get("removed", []), "waiting": done.get("waiting", [])}
        print_text(json_text({"keep_days": keep_days, "decision": decision, **removal}, sort=True))
    elif answer.decision.findings:
        for finding in answer.decision.findings:
            typer.echo(finding_text(finding), err=True)
            if finding.code == "retention_below_floor" and engine.policy is not None:
                typer.echo(f"  found: {_below_floor(keep_days, engine.policy)}", err=True)
    elif answer.fault is not None:
        raise answer.fault
    else:
        url = destination(existing_folder(sources.state))
        print_text("\n".join(_retained(keep_days, done["removed"], done["waiting"], url)))
    raise typer.Exit(answer.exit)


def _below_floor(keep_days: int, policy: PolicyBundle) -> str:
    profile = policy.row(("operations", "profile")).value
    floor = policy.row(("operations", "profiles", profile, "retention_days_min"))
    return f"--keep-days {keep_days} is below the floor of {counted(floor.value, 'day')} ({floor.where})"


def _retained(
    keep_days: int, removed: list[dict[str, int]], waiting: list[int], shipped_to: str | None
) -> Iterator[str]:
    for old in removed:
        first, last = old["first"], old["last"]
        segments = f"segment {first}" if first == last else f"segments {first} to {last}"
        chain = f" of chain {old['chain']}" if old["chain"] > 1 else ""
        cut = f"{counted(old['lines'], 'line')}, {old['size']:,} bytes"
        yield f"removed {segments}{chain}: {cut}; the removal is recorded"
    for number in waiting:
        yield f"chain {number} is pending: the engine that writes to it will remove its old segments"
    if not removed and not waiting:
        shipped = "" if shipped_to is None else f" and shipped to {printable(shipped_to)}"
        yield f"nothing to remove: no whole segment is older than {counted(keep_days, 'day')}{shipped}"


def existing_folder(state: options.StateAt | None) -> Path:
    """The state folder, with or without a record. Raises GatherError where there is none."""
    folder = options.state_folder(state)
    if not folder.is_dir():
        raise GatherError(
            f"there is no state folder `{printable(str(folder))}`",
            remedy="name the state folder of the engine with --state, or in ENGINE_STATE_DIR",
        )
    return folder


def require_intact(folder: Path, *, broken: bool = False) -> int:
    """Verify the record and return the number of its lines. With `broken`, only report where it is broken.

    A torn tail breaks nothing: no answer depended on it.
    """
    found = verified(folder)
    if not all(chain.ok or chain.repairable for chain in found.values()):
        typer.echo(verification_text(found), err=True)
        if not broken:
            typer.echo("nothing was replayed; --broken replays the readable lines", err=True)
            raise typer.Exit(Exit.FAILED_CLOSED)
    return sum(chain.removed + chain.records for chain in found.values())


T = TypeVar("T")


def read_decisions(state: options.StateAt | None, read: Callable[[Path, Callable[[int], None]], T]) -> T | None:
    """Read the record and show progress. None if no state folder was named and the default one is missing."""
    if state is None and not options.state_folder(None).is_dir():
        return None
    with Waiting() as waiting:
        return read(existing_folder(state), lambda count: waiting.show(f"decisions read: {count:,}"))


def report_unreadable(place: Location) -> None:
    """Report on standard error that a line of the record could not be read."""
    typer.echo(f"{place} is not a valid record; run `engine record verify`", err=True)
