"""Point `source`: whether a source bundle may enter environment construction.

Everything that can be computed is computed here: content hashes, the bundle's digest, license
alternatives, hosts, which content a license decision was taken for, how many retrievals it needs.

Longer than other files because it is the whole of one point: request, input, limits, gather, events.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeVar

from engine.documents.canonical import canonical, digest
from engine.documents.files import counted, load, printable
from engine.errors import GatherError, Location
from engine.facts.archives.archive import Tree, open_bundle
from engine.facts.archives.source_bundle import DOCUMENT, Reading, SchemaError, last_second, read
from engine.facts.archives.stating import Stating
from engine.facts.licenses import Aliases, license_alternatives
from engine.facts.net.urls import UrlFacts, url_facts
from engine.facts.text.hidden import is_blank
from engine.model import Boundary, Decision, Digest, Limits, Line, Mode, Model, Outcome, Pace, Sha256, is_reserved
from engine.points import GatherContext, Gathered, Point
from engine.policy_bundle.lookups import Lookups
from engine.record.source_events import EventName, Hashes, SourceEvent
from engine.times import seconds

if TYPE_CHECKING:
    from engine.policy_bundle.catalogue import Catalogue

FactT = TypeVar("FactT")

_EMPTY = "describe the content in it, as docs/source-bundles.md shows, or have `engine source init` write it"
_MOST_UNDECLARED, _MOST_NAMES = 1_000, 20
"""Undeclared files and folders named one by one."""


class SourceRequest(Model):
    """Ask about the source bundle at `path`; null means material that comes without any bundle.

    `digest` is the digest an earlier check gave for the bundle, or null when there was none; a
    bundle that has changed since is refused (A96).
    """

    path: Line | None
    digest: Digest | None


class LicenseDecision(Model):
    """A person's or process's decision on one content; `decided_at` in seconds since 1970 UTC."""

    sha256: Sha256 | None = None
    decision: str | None = None
    decided_at: int | None = None


class License(Model):
    """A license label as SPDX alternatives: any one of them, each a set of licenses that all apply."""

    stated: bool
    alternatives: tuple[tuple[str, ...], ...] | None = None
    decisions: tuple[LicenseDecision, ...]


class ExportLicense(Model):
    """The license under which the result will be shared with others; no alternatives if it cannot be parsed."""

    alternatives: tuple[tuple[str, ...], ...] | None = None


class Content(Model):
    """A content file: its SHA-256, computed from its bytes, and its size in bytes."""

    sha256: Sha256
    bytes: int


class Retention(Model):
    """`until` is the last second of the stated day, in seconds since 1970 UTC."""

    until: int | None = None
    basis: str | None = None


class SourceRecord(Model):
    """One record's facts.

    `remote`: the record names a URL; absent when that is not known. `requests_used` counts the
    records before this one that are external or remote: each is one retrieval (A21).
    """

    id: str | None = None
    id_count: int
    kind: str | None = None
    origin_alias: str | None = None
    media_type: str | None = None
    sha256: Sha256 | None = None
    content: Content | None = None
    license: License | None = None
    remote: bool | None = None
    url: UrlFacts | None = None
    retrieved_at: int | None = None
    retention: Retention | None = None
    export: str | None = None
    requests_used: int | None = None


class Budget(Model):
    """How many requests the network policy allows."""

    max_requests: int | None = None


class Network(Model):
    """The bundle's network policy, as far as it is stated."""

    enabled: bool | None = None
    allowed_hosts: tuple[str, ...] | None = None
    budget: Budget | None = None
    audit_required: bool | None = None


class Sandbox(Model):
    """The bundle's sandbox policy, as far as it is stated."""

    generated_code: str | None = None
    filesystem: str | None = None
    redaction: bool | None = None
    network: str | None = None


class BundleFacts(Model):
    """The source bundle. `unchanged`: it has the expected digest, or none was expected."""

    id: str | None = None
    purpose: str | None = None
    environment: str | None = None
    digest: Digest
    unchanged: bool
    exported: bool | None = None
    export_license: ExportLicense | None = None
    network: Network | None = None
    sandbox: Sandbox | None = None
    records: tuple[SourceRecord, ...] | None = None


class Undeclared(Model):
    """Content that no record names: a file, or a folder (with `/`) without named content.

    `regular`: it is a file, or contains only files; no link, device or the like.
    `names` are the different names of these files, without their folders; empty if there are more than 20.
    """

    id: str
    regular: bool
    names: tuple[str, ...]


class SourceTerms(Model):
    """What a record is admitted for and under: its license and that of the result, as SPDX alternatives.

    `kept_until` is the last second until which it may be kept, in seconds since 1970 UTC.
    """

    purpose: str | None = None
    license: tuple[tuple[str, ...], ...] | None = None
    export_license: tuple[tuple[str, ...], ...] | None = None
    kept_until: int | None = None


class SourceInput(Model):
    """The facts for OPA; `bundle` is absent for material without one.

    `errors` are the fields of the source bundle that do not fit its format, `undeclared` the content that
    no record names; both are normally empty.
    """

    errors: tuple[SchemaError, ...]
    undeclared: tuple[Undeclared, ...]
    bundle: BundleFacts | None = None
    boundaries: tuple[Boundary, ...]


class AdmittedRecord(Model):
    """A record that may be used, with its exact content."""

    id: str
    sha256: Sha256
    bytes: int


class AdmittedExport(Model):
    """Whether the result may be shared with others."""

    allowed: bool


class AdmittedNetwork(Model):
    """What may be reached, with how many requests."""

    enabled: bool
    allowed_hosts: tuple[str, ...]
    max_requests: int


class AdmittedSandbox(Model):
    """What the sandbox must be."""

    generated_code: str
    filesystem: str
    redaction: bool
    network: str


class SourceLimits(Limits):
    """What environment construction may use: exactly these records, for this purpose, in this sandbox."""

    purpose: str
    environment: str
    bundle_digest: Digest
    records: tuple[AdmittedRecord, ...]
    export: AdmittedExport
    network: AdmittedNetwork
    sandbox: AdmittedSandbox
    audit: Literal[True]

    def boundaries(self) -> frozenset[str]:
        """The file system isolation that was admitted."""
        return frozenset({self.sandbox.filesystem})


def gather(request: SourceRequest, context: GatherContext) -> Gathered:
    """Read and measure the source bundle. Raises GatherError when it cannot be read as one."""
    boundaries = context.boundaries()
    if request.path is None:
        return Gathered(
            SourceInput(boundaries=boundaries, errors=(), undeclared=()),
            "material without a source bundle",
        )
    with ExitStack() as stack:
        tree = stack.enter_context(open_bundle(beneath(request.path, context.root), context.read))
        text = tree.read_document(DOCUMENT, context.read.document_bytes)
        context.progress("reading", 0, 0)
        reading = read(load(text, tree.place(DOCUMENT), context.read, _EMPTY))
        members = tree.members()
        contents = _contents(tree, reading, members, context)
        facts = _bundle(reading, contents, _digest(text, contents), request.digest, context.lookups)
        stack.pop_all()
    paths = {record.get("id", ""): record.get("path", "") for record in _records(reading)}
    opened = OpenedSource(tree, paths, facts)
    declared = dict.fromkeys(_paths(reading))
    undeclared = _undeclared(members, declared)
    gathered = SourceInput(boundaries=boundaries, errors=reading.errors, undeclared=undeclared, bundle=facts)
    places = _places(facts, reading, tree, undeclared)
    title = _title(facts, [contents[path] for path in declared])
    hashes = [None if record.content is None else record.content.sha256 for record in facts.records or ()]
    stated = Stating(reading, _subjects(facts), hashes)
    notes = {f"errors/{field}": f"{field}: {note}" for field, note in reading.notes.items()}
    notes |= {f"undeclared/{one.id}": _irregular(one.id) for one in undeclared if not one.regular and one.id != "…"}
    return Gathered(gathered, title, places, _subjects(facts), opened, tree.close, stated=stated.field, notes=notes)


def beneath(path: str, root: Path | None) -> Path:
    """The path a request means. Where a root is set it is relative to it and no link leads out. Raises GatherError."""
    if root is None:
        return Path(path)
    try:
        found = (root / path).resolve(strict=True)
        inside = found.is_relative_to(root.resolve(strict=True))
    except (OSError, ValueError, RuntimeError):
        inside = False
    if not inside or Path(path).is_absolute():
        raise GatherError(
            "there is no source bundle at this path below the folder that this engine serves",
            remedy="name a source bundle relative to the folder of `--root`, or upload it as an archive",
        )
    return found


@dataclass(frozen=True, slots=True)
class OpenedSource:
    """The source bundle that was decided on, still open, for the executor that copies from it."""

    tree: Tree
    paths: Mapping[str, str]
    facts: BundleFacts

    def content(self, record_id: str) -> AbstractContextManager[BinaryIO]:
        """The content of a record as a stream. Raises GatherError if it no longer exists."""
        return self.tree.open(self.paths.get(record_id, ""))


def _digest(text: bytes, contents: dict[str, Content | None]) -> str:
    """One digest over the document and every member, which changes with any change of the bundle."""
    hashes = {path: None if content is None else content.sha256 for path, content in contents.items()}
    return digest(canonical({"document": digest(text), "content": hashes}))


def _contents(
    tree: Tree, reading: Reading, members: Mapping[str, bool], context: GatherContext
) -> dict[str, Content | None]:
    """Everything that records name and everything that exists; None for entries without content."""
    paths = dict.fromkeys([*_paths(reading), *members])
    contents: dict[str, Content | None] = {}
    for done, path in enumerate(paths):
        context.progress("hashing", done, len(paths))
        hashed = tree.hash(path) if members.get(path, True) else None
        contents[path] = None if hashed is None else Content(sha256=hashed[0], bytes=hashed[1])
    return contents


def _paths(reading: Reading) -> Iterator[str]:
    return (record["path"] for record in _records(reading) if "path" in record)


def _undeclared(members: Mapping[str, bool], declared: Collection[str]) -> tuple[Undeclared, ...]:
    """What no record names, a whole folder as one; beyond `_MOST_UNDECLARED` the rest is one more."""
    paths, found = sorted(declared), dict[str, tuple[bool, set[str]]]()
    for path, regular in members.items():
        if path == DOCUMENT or path in declared:
            continue
        parts = path.removeprefix("../").split("/")
        outside = path.startswith("../")
        folders = ("/".join(parts[:end]) for end in range(1, len(parts)))
        top = next((f"{folder}/" for folder in folders if outside or not _begins(paths, f"{folder}/")), "/".join(parts))
        if top not in found and len(found) == _MOST_UNDECLARED:
            found["…"] = False, set()
            break
        before, names = found.get(top, (True, set()))
        if len(names) <= _MOST_NAMES:
            names.add(printable(parts[-1]))
        found[top] = before and regular, names
    return tuple(
        Undeclared(id=printable(path), regular=regular, names=tuple(sorted(names)) if len(names) <= _MOST_NAMES else ())
        for path, (regular, names) in found.items()
    )


def _begins(paths: list[str], folder: str) -> bool:
    """Whether one of these sorted paths is in a folder. All their folders may be more than memory can hold."""
    at = bisect_left(paths, folder)
    return at < len(paths) and paths[at].startswith(folder)


def _irregular(name: str) -> str:
    what = f"a file in `{name}`" if name.endswith("/") else f"`{name}`"
    return f"{what} is a link or no file with content of its own; replace it by the file"


def _records(reading: Reading) -> list[dict[str, Any]]:
    records = reading.pruned.get("records")
    return records if isinstance(records, list) else []


def _bundle(
    reading: Reading,
    contents: dict[str, Content | None],
    found: str,
    expected: str | None,
    lookups: Lookups,
) -> BundleFacts:
    raw = reading.pruned
    wrong = {error.id for error in reading.errors}
    decisions = _decisions(raw.get("license_decisions"))
    counts = Counter(record.get("id") for record in _records(reading))
    records, used = [], 0
    for index, record in enumerate(_records(reading)):
        facts = _record(record, f"records.{index}", wrong, contents, decisions, counts, lookups)
        if facts.kind == "external" or facts.remote:
            facts = facts.model_copy(update={"requests_used": used})
            used += 1
        records.append(facts)
    exports = {} if "export_license" not in raw else export_of(raw["export_license"], lookups.license_aliases)
    return BundleFacts(
        **{key: raw[key] for key in ("id", "purpose", "environment") if key in raw},
        digest=found,
        unchanged=expected is None or expected == found,
        **exports,
        network=Network.model_validate(raw["network"], strict=False) if "network" in raw else None,
        sandbox=Sandbox(**raw["sandbox"]) if "sandbox" in raw else None,
        records=tuple(records) if isinstance(raw.get("records"), list) else None,
    )


def _record(
    raw: dict[str, Any],
    path: str,
    wrong: set[str],
    contents: dict[str, Content | None],
    decisions: dict[str, tuple[LicenseDecision, ...]],
    counts: Counter[str | None],
    lookups: Lookups,
) -> SourceRecord:
    kind = raw.get("kind")
    if not any(f"{path}.{key}" in wrong for key in ("kind", "url")) and kind is None:
        kind = lookups.kind_without_origin if raw.get("url") is None else "external"
    identity = raw.get("id")
    label, decided = raw.get("license"), decisions.get(identity or "", ())
    retention = raw.get("retention")
    return SourceRecord(
        **{key: raw[key] for key in ("id", "origin_alias", "media_type", "sha256", "export") if key in raw},
        id_count=counts[identity],
        kind=kind,
        content=contents.get(raw.get("path", "")),
        license=None if label is None else license_of(label, decided, lookups.license_aliases),
        remote=raw["url"] is not None if "url" in raw else None,
        url=_converted(url_facts, raw.get("url")),
        retrieved_at=_converted(seconds, raw.get("retrieved_at")),
        retention=None
        if retention is None
        else Retention(until=_converted(last_second, retention.get("until")), basis=retention.get("basis")),
    )


def license_of(label: str, decisions: tuple[LicenseDecision, ...], aliases: Aliases) -> License:
    """The facts of a label and of what was decided about exactly this content."""
    return License(stated=not is_blank(label), alternatives=license_alternatives(label, aliases), decisions=decisions)


def export_of(label: str | None, aliases: Aliases) -> dict[str, Any]:
    """The facts `exported` and, of what is exported, `export_license`."""
    if label is None:
        return {"exported": False}
    return {"exported": True, "export_license": ExportLicense(alternatives=license_alternatives(label, aliases))}


def _decisions(raw: Any) -> dict[str, tuple[LicenseDecision, ...]]:
    named: defaultdict[str, list[LicenseDecision]] = defaultdict(list)
    for item in raw if isinstance(raw, list) else []:
        decision = LicenseDecision(
            sha256=item.get("sha256"),
            decision=item.get("decision"),
            decided_at=_converted(seconds, item.get("decided_at")),
        )
        named[item.get("record", "")].append(decision)
    return {record: tuple(items) for record, items in named.items()}


def _converted(convert: Callable[[str], FactT], text: str | None) -> FactT | None:
    """The fact for a stated field."""
    return None if text is None else convert(text)


def _title(facts: BundleFacts, contents: Iterable[Content | None]) -> str:
    size = sum(content.bytes for content in contents if content is not None)
    count = len(facts.records or ())
    use = f"purpose {facts.purpose or 'not stated'}"
    return f"{facts.id or 'no id'} · {use} · {counted(count, 'record')} · {size} bytes"


def _subjects(facts: BundleFacts) -> tuple[str, ...]:
    """Every record as findings name it."""
    return tuple(
        f"records/{f'#{index}' if record.id is None else record.id}" for index, record in enumerate(facts.records or ())
    )


def _places(
    facts: BundleFacts, reading: Reading, tree: Tree, undeclared: Iterable[Undeclared]
) -> dict[str | None, Location]:
    places: dict[str | None, Location] = {None: Location(tree.place(DOCUMENT), 1)}
    for index, subject in enumerate(_subjects(facts)):
        places[subject] = reading.document.where(("records", index))
    for error in reading.errors:
        places[f"errors/{error.id}"] = reading.places[error.id]
    for item in undeclared:
        places[f"undeclared/{item.id}"] = Location(tree.place(item.id))
    return places


def events(gathered: Gathered, decision: Decision, catalogue: Catalogue) -> tuple[SourceEvent, ...]:
    """The narrow view for data governance (A27): one event a record, seven facts and a name."""
    facts = gathered.input.bundle if isinstance(gathered.input, SourceInput) else None
    causes: defaultdict[str | None, set[str]] = defaultdict(set)
    for finding in decision.findings:
        own = finding.subject if finding.subject is not None and finding.subject.startswith("records/") else None
        causes[own].add(finding.code)
    undecided = any(is_reserved(code) for code in causes[None])
    licensing = catalogue.codes("source", "license") | catalogue.codes("source", "license_decision")
    hiding = {code for own in licensing for code in catalogue.points["source"].before(own)} - licensing

    def one(subject: str, record: SourceRecord) -> SourceEvent:
        own = causes.get(subject, set())
        refused = sorted(own & licensing)
        open_still = undecided or bool((own | causes[None]) & hiding)  # a finding may follow from another one
        return SourceEvent(
            event=event_of(decision),
            source_id=subject.removeprefix("records/"),
            source_kind=record.kind,
            policy_outcome=decision.outcome,
            origin_alias=record.origin_alias,
            hashes=Hashes(declared=record.sha256, computed=None if record.content is None else record.content.sha256),
            license_outcome=refused[0] if refused else ("undecided" if open_still else "accepted"),
            rejection_causes=tuple(sorted(own | causes[None])),
        )

    if facts is None or facts.records is None:
        return ()
    return tuple(map(one, _subjects(facts), facts.records))


def event_of(decision: Decision) -> EventName:
    """What a decision on a source bundle is for data governance: a look at it, or its admission or rejection."""
    if decision.mode is Mode.CHECK:
        return EventName.SOURCE_CHECKED
    return EventName.ADMITTED if decision.outcome is Outcome.ALLOW else EventName.REJECTED


POINT = Point("source", SourceRequest, SourceInput, SourceLimits, gather, pace=Pace.BUNDLE, events=events)
