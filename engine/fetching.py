"""The path of one fetch: from addresses to a source bundle of format 1, or from one address to its content.

    network ─(transfer)─> network_response ─(keep)─> … ─> bundle.yaml
     once for each address                            once, after the last one

Each decision is enforced and has its own record. Nothing is connected to before `network` allows it, and nothing is
kept before `network_response` does. The folder appears when every address was accepted, or not at all.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from admission_adapters.fetch import Fetcher, Transfer
from admission_adapters.files.new_folder import NewFolder
from engine.decide import parsed
from engine.drive import Call, Steps
from engine.errors import EngineError, Exit
from engine.facts.archives.source_bundle import DOCUMENT
from engine.facts.fetched import fetched_content
from engine.facts.net.urls import url_facts
from engine.flow import Answer, Context, Services, answer
from engine.idempotency import Whole, whole_once
from engine.model import Job, Mode, Outcome, Pace, Permit, Result
from engine.points.media import MediaLimits
from engine.points.network_response import NetworkResponseLimits
from engine.points.registry import find
from engine.sources.document import NewRecord, Statements, written
from engine.sources.start import as_id
from engine.times import time_text

_CONTENT = "content"
"""The folder of a source bundle for what was fetched."""


@dataclass(frozen=True, slots=True)
class FetchOrder:
    """What to fetch into the new folder `into`. Naming `hosts` enables the fetch.

    `license` is the SPDX label of the content, `alias` the public name of its origin (default: the name of the
    folder), `max_requests` the budget of the run.
    """

    urls: tuple[str, ...]
    into: Path
    license: str | None = None
    hosts: tuple[str, ...] = ()
    alias: str | None = None
    max_requests: int = 1


@dataclass(frozen=True, slots=True)
class Fetched:
    """Every answer of the run, two for each address that was fetched; `folder` is the new source bundle, if any.

    `unwritten` is why the folder could not be made of what was accepted. `replayed`: the first result of the
    idempotency key, again. `content` is in the place of a folder where one address was read into memory.
    """

    answers: tuple[Answer, ...]
    folder: Path | None
    unwritten: EngineError | None = None
    replayed: bool = False
    content: bytearray | None = None

    @property
    def fault(self) -> EngineError | None:
        """The first fault of the run; None for a refusal by the policy."""
        faults = (*(one.fault for one in self.answers), self.unwritten)
        return next((fault for fault in faults if fault is not None), None)

    @property
    def exit(self) -> Exit:
        """The exit code of the run."""
        return self.answers[-1].exit if self.fault is None else self.fault.exit


def fetch_once(order: FetchOrder, services: Services, fetcher: Fetcher, context: Context) -> Steps[Fetched]:
    """`fetch`, once for each idempotency key of a caller; a repetition returns the first result (C69).

    Raises what `fetch` does, and EngineError for a key that cannot be used.
    """
    stated = {**asdict(order), "into": str(order.into)}
    whole = Whole(
        "fetch",
        stated,
        lambda: fetch(order, services, fetcher, context),
        _kept,
        _again,
        lambda first, error: replace(first, unwritten=error),
    )
    return (yield from whole_once(whole, services, context))


def _kept(first: Fetched) -> tuple[Answer, Any] | None:
    """The whole result; None after a fault, when nothing was written."""
    if first.fault is not None:
        return None
    folder = None if first.folder is None else str(first.folder)
    decisions = [one.decision.model_dump(mode="json") for one in first.answers]
    return first.answers[-1], {"folder": folder, "decisions": decisions}


def _again(first: Any) -> tuple[Fetched, str]:
    """The first result again."""
    decisions = [parsed(find(fields["point"]), fields) for fields in first["decisions"]]
    folder = None if first["folder"] is None else Path(first["folder"])
    answers = tuple(Answer(one, None, None) for one in decisions)
    return Fetched(answers, folder, replayed=True), decisions[-1].decision_id


def fetch(order: FetchOrder, services: Services, fetcher: Fetcher, context: Context) -> Steps[Fetched]:
    """Fetch every address of the order in turn, up to the first one that is refused.

    Raises GatherError, before anything is asked, if there is something at `into`.
    """
    with NewFolder(order.into, _CONTENT) as folder:
        run = _Run(order, services, fetcher, context, folder.keep)
        for position in range(max(1, len(order.urls))):
            services.gather_context.progress("fetching", position + 1, len(order.urls))
            if not (yield from run.one(position)):
                return Fetched(tuple(run.answers), None)
        try:
            yield Call(lambda: folder.finish(DOCUMENT, run.document()), Pace.SLOW)
        except EngineError as error:
            return Fetched(tuple(run.answers), None, error)
    return Fetched(tuple(run.answers), order.into)


def get(
    order: FetchOrder, services: Services, fetcher: Fetcher, context: Context, media: MediaLimits | None = None
) -> Steps[Fetched]:
    """Fetch the one address of the order into memory, of `media` no more than that; nothing is written to `into`."""
    held: list[bytearray] = []

    def hold(_permit: Permit, _digest: str, data: bytearray, _name: str) -> Result:
        held.append(data)
        return Result("held", {"bytes": len(data)})

    run = _Run(order, services, fetcher, context, hold)
    run.media = media
    accepted = yield from run.one(0)
    return Fetched(tuple(run.answers), None, content=held[0] if accepted else None)


def get_media(
    media: dict[str, str], licensed: str, alias: str, services: Services, fetcher: Fetcher, context: Context
) -> Steps[Fetched]:
    """Fetch media by URL into memory, where point `media` permits it: as `get`, at the addresses that it decided on.

    `media` has `kind`, `url` and `media_type`; no more is read than that point permits.
    """
    granted: list[MediaLimits] = []

    def note(permit: Permit, job: Job) -> Result:
        granted.append(permit.demand("media", job.input_digest, MediaLimits))
        return Result("to_be_fetched", {})

    request = {**media, "source_type": "url"}
    answered = yield from answer(find("media"), request, Mode.ENFORCE, services, context, note)
    if not granted or answered.fault is not None:
        return Fetched((answered,), None)
    (where,) = granted[0].destinations
    order = FetchOrder((media["url"],), Path(alias), licensed, (where.host,), alias)
    known = replace(services.gather_context, addresses={where.host: where.addresses}.get)
    got = yield from get(
        order, replace(services, gather_context=known), fetcher, replace(context, approval=None), granted[0]
    )
    return replace(got, answers=(answered, *got.answers))


Keep = Callable[[Permit, str, bytearray, str], Result]
"""Keeps one content under the permit of its response, which was checked; the last argument is a name for it."""


class _Run:
    """One run: its answers so far, and the records of what was kept."""

    media: MediaLimits | None = None
    """What point `media` permits, where it led to this run."""

    def __init__(self, order: FetchOrder, services: Services, fetcher: Fetcher, context: Context, keep: Keep) -> None:
        self._order, self._services, self._fetcher, self._context = order, services, fetcher, context
        self._keep = keep
        self._alias = order.alias or as_id(order.into.absolute().name)
        self._records: list[NewRecord] = []
        self.answers: list[Answer] = []

    def one(self, position: int) -> Steps[bool]:
        """Fetch and keep one address; whether it was accepted."""
        order = self._order
        named = {"id": f"{self._alias}-{position + 1}" if len(order.urls) > 1 else self._alias, "alias": self._alias}
        budget = {"max_requests": order.max_requests}
        network = {"enabled": bool(order.hosts), "allowed_hosts": list(order.hosts), "budget": budget}
        licensed = {} if order.license is None else {"license": order.license}
        request = {**named, "urls": list(order.urls), "position": position, "network": network, **licensed}
        moved: list[Transfer] = []

        def transfer(permit: Permit, job: Job) -> Result:
            most = None if self.media is None else self.media.max_bytes
            url = order.urls[position]
            result, found = self._fetcher.fetch(permit, job.input_digest, url, job.stop, most)
            moved.append(found)
            return result

        answered = yield from self._ask("network", request, transfer)
        if answered.decision.outcome is not Outcome.ALLOW:
            return False
        found = moved[0] if moved else Transfer()
        facts: dict[str, Any] = yield Call(lambda: self._facts(found), Pace.HEAVY)
        typed = {} if self.media is None else {"media_type": self.media.media_type}
        response = {**named, "request": answered.decision.decision_id, **typed, **facts}

        def keep(permit: Permit, job: Job) -> Result:
            limits = permit.demand("network_response", job.input_digest, NetworkResponseLimits)
            name = f"{limits.id}{mimetypes.guess_extension(limits.media_type) or ''}"
            kept = self._keep(permit, job.input_digest, found.data, name)
            self._records.append(self._record(limits, name, order.urls[position]))
            return kept

        judged = yield from self._ask("network_response", response, keep)
        return judged.decision.outcome is Outcome.ALLOW and judged.fault is None

    def _facts(self, found: Transfer) -> dict[str, Any]:
        """What was seen of the transfer, and of its content where all of it came."""
        facts = found.facts()
        if found.complete:
            content = fetched_content(found.data)
            one_reading, problem = content.problem is None, content.problem
            facts["content"] = {"types": content.types, "one_reading": one_reading, "problem": problem}
        return facts

    def document(self) -> str:
        """`bundle.yaml`; what only a person can state is left open."""
        now = time_text(self._services.gather_context.clock())
        return written(self._alias, self._alias, self._records, Statements(now=now, retrieved_at=now))

    def _ask(self, point: str, request: dict[str, Any], executor: Any) -> Steps[Answer]:
        """The answer at a point. An approval is for a request to fetch: no two responses are the same request."""
        context = self._context if point == "network" else replace(self._context, approval=None)
        got = yield from answer(find(point), request, Mode.ENFORCE, self._services, context, executor)
        self.answers.append(got)
        return got

    def _record(self, limits: NetworkResponseLimits, name: str, url: str) -> NewRecord:
        return NewRecord(
            id=limits.id,
            path=f"{_CONTENT}/{name}",
            sha256=limits.sha256,
            media_type=limits.media_type,
            license=self._order.license,
            url=url,
            host=url_facts(url).host,
        )
