"""Runs: those of generated code that the state keeps, and the episodes of the record, each the newest first.

A page looks through a bounded part of both. Which episodes have ended is only known from what was recorded later, so
a page that begins further back looks for the ends of its episodes from the end of the record, as far as it may.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlencode

from engine.api.messages import Response
from engine.episodes.recorded import event_of
from engine.errors import GatherError
from engine.record.model import DecisionRecord
from engine.record.pages import read_page
from engine.record.reader import Filter
from engine.state.rows import CodeRunRow
from engine.state.store import Store
from engine.workbench.visit import Visit

_ROWS = 50
_CODE_RUNS, _BYTES, _AT_ONCE = 1_000, 64 << 20, 200
"""Runs, and bytes of the record, that one page looks through; decisions that are read at once."""

_FILTERS = ("kind", "run", "caller", "ended")
_NOT_ENDED = "not ended"


@dataclass(frozen=True, slots=True)
class EpisodeRow:
    """An episode in the list: the decision on its start, and why it ended.

    `ended` is None if it has not ended, or its end was not among what was looked through (`unknown`).
    """

    start: DecisionRecord
    ended: str | None = None
    unknown: bool = False

    @property
    def id(self) -> str:
        """Its id."""
        return _id(self.start)

    @property
    def state(self) -> str:
        """How it ended, in a word."""
        return self.ended or ("unknown" if self.unknown else _NOT_ENDED)


def listed(visit: Visit) -> Response:
    """Runs that the filters select."""
    stated = {name: text for name in _FILTERS if (text := visit.query.get(name, "").strip())}
    kind = stated.get("kind")
    code, earlier_code = _code_runs(visit, stated) if kind != "episode" else ((), None)
    episodes, earlier_episodes = _episodes(visit, stated) if kind != "code" else ((), None)
    further = {
        name: "/runs?" + urlencode({**stated, "kind": name, "after": after})
        for name, after in (("code", earlier_code), ("episode", earlier_episodes))
        if after is not None
    }
    return visit.page(
        "runs.html",
        code=code,
        episodes=episodes,
        further=further,
        earlier="after" in visit.query,
        kind=kind,
        stated={**dict.fromkeys(_FILTERS, ""), **stated},
    )


def _fits(filters: Mapping[str, str], run: str, caller: str, ended: str) -> bool:
    """Whether a run has what the filters state: how its id begins, and parts of its caller and its end."""
    return (
        run.startswith(filters.get("run", ""))
        and filters.get("caller", "") in caller
        and filters.get("ended", "") in ended
    )


def _code_runs(visit: Visit, filters: Mapping[str, str]) -> tuple[list[CodeRunRow], str | None]:
    """The newest runs of code that have ended, without their results, and where the next page goes on."""
    after = visit.query.get("after") if filters.get("kind") == "code" else None
    before = None if after is None else _number(after)
    return visit.desk.stated(lambda store: _fitting(store, before, filters)) or ([], None)


def _fitting(store: Store, before: int | None, filters: Mapping[str, str]) -> tuple[list[CodeRunRow], str | None]:
    found: list[CodeRunRow] = []
    for _ in range(0, _CODE_RUNS, _ROWS):
        rows = store.code_runs(None, before, int(time.time()), _ROWS)
        for row in rows:
            before = row.number
            if _fits(filters, row.id, row.owner, row.stop_reason):
                found.append(replace(row, result=None))
            if len(found) == _ROWS:
                return found, str(before)
        if len(rows) < _ROWS:
            return found, None
    return found, str(before)


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:  # noqa: PLR2004  (an INTEGER of SQLite)
        raise GatherError("the list has no such page", remedy="follow a link of the list")
    return int(text)


def _episodes(visit: Visit, filters: Mapping[str, str]) -> tuple[list[EpisodeRow], str | None]:
    """Episodes by their start, the newest first, and where the next page goes on."""
    state, after = visit.desk.settings.state, visit.query.get("after") if filters.get("kind") == "episode" else None
    starts: list[DecisionRecord] = []
    ends: dict[str, str] = {}
    further = None
    for bodies, rest in _pages(state, after):
        further = rest
        ends |= _ends(bodies)
        starts += [body for body in bodies if event_of(body)["kind"] == "start"]
        if len(starts) >= _ROWS:
            break
    missing = {_id(body) for body in starts} - ends.keys()
    unknown = after is not None
    if unknown:
        for bodies, rest in _pages(state, None):
            ends |= {id_: reason for id_, reason in _ends(bodies).items() if id_ in missing}
            if missing <= ends.keys() or rest is None:
                unknown = rest is not None and not missing <= ends.keys()
                break
    rows = [EpisodeRow(body, ends.get(_id(body)), unknown) for body in starts]
    return [row for row in rows if _fits(filters, row.id, row.start.principal or "", row.state)], further


def _pages(state: Path, cursor: str | None) -> Iterator[tuple[list[DecisionRecord], str | None]]:
    """Decisions that let something happen in an episode, the newest first, and where the next ones go on."""
    left = _BYTES
    while left > 0:
        page = read_page(state, Filter(point="episode", mode="enforce", outcome="allow"), _AT_ONCE, left, cursor)
        bodies = [entry.body for entry in page.entries if isinstance(entry.body, DecisionRecord)]
        yield [body for body in bodies if body.input is not None and body.limits is not None], page.next
        if page.next is None:
            return
        left, cursor = left - max(page.bytes, 1), page.next


def _ends(bodies: list[DecisionRecord]) -> dict[str, str]:
    """Why episodes ended, by their ids."""
    ended = {_id(body): (body.limits or {}).get("end") for body in bodies if event_of(body)["kind"] == "end"}
    return {id_: str(end["reason"]) for id_, end in ended.items() if end}


def _id(body: DecisionRecord) -> str:
    return str((body.input or {})["episode"])
