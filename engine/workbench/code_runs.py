"""One run of generated code: its decisions and results in order, how it ended, and what it left.

The record has the decisions and results. The state has what the caller was answered, for as long as the permit says,
and the store the files.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from admission_adapters.files.artifact_store import ArtifactStore
from engine.api.messages import Response
from engine.errors import WorkError
from engine.record.model import Body, DecisionRecord, ResultRecord
from engine.record.reader import Filter, newest
from engine.state.rows import CodeRunRow
from engine.workbench.kept import KeptFile, download, kept_file
from engine.workbench.pages import UnknownError
from engine.workbench.visit import Visit

_ENDS = ("run_ok", "run_stopped")
"""The statuses of the line that ends a run."""


@dataclass(frozen=True, slots=True)
class CodeStep:
    """One line of the record of a run. `name` is that of its decision in the run, such as `code_scan`."""

    name: str
    body: DecisionRecord | ResultRecord

    @property
    def last(self) -> bool:
        """Whether it ends the run."""
        return isinstance(self.body, ResultRecord) and self.body.status in _ENDS


def one(visit: Visit) -> Response:
    """A run in full."""
    row = _row(visit)
    document: dict[str, Any] = {} if row.result is None else json.loads(row.result)
    kept = _files(visit.desk.settings.state, document)
    return visit.page(
        "runs_code.html",
        row=row,
        document=document,
        steps=_steps(visit.desk.settings.state, row),
        files=[(one, f"/runs/{quote(row.id)}/file?{urlencode({'digest': one.digest})}") for one in kept],
    )


def file(visit: Visit) -> Response:
    """One file that a run left, by its digest."""
    row = _row(visit)
    document = {} if row.result is None else json.loads(row.result)
    requested = visit.query.get("digest", "")
    name = next((name for name, digest, _ in _listed(document) if digest == requested), None)
    data = None if name is None else _store(visit.desk.settings.state).get(requested)
    if name is None or data is None:
        raise UnknownError("this file of the run is no longer kept", remedy="look at the page of the run")
    return download(name, data)


def _row(visit: Visit) -> CodeRunRow:
    row = visit.desk.stated(lambda store: store.code_run(visit.name, None, int(time.time())))
    if row is None:
        raise UnknownError(
            "no run of code with this id is kept",
            remedy="choose one from the list of runs; the record still has the decisions of older ones",
        )
    return row


def _steps(state: Path, row: CodeRunRow) -> list[CodeStep]:
    """The lines of a run, the oldest first; none where the record no longer has its end."""
    ends = newest(state, Filter(decision_id=row.decision_id, kind="result")) if row.decision_id is not None else ()
    end = next((one for entry in ends if isinstance(one := entry.body, ResultRecord) and one.status in _ENDS), None)
    if end is None:
        return []
    names = {str(id_): str(name) for name, id_ in end.facts["decisions"].items()}
    found: list[CodeStep] = []
    missing = set(names)
    for entry in newest(state, Filter(request_id=end.request_id)):
        body: Body = entry.body
        if isinstance(body, DecisionRecord | ResultRecord) and body.decision_id in names:
            found.append(CodeStep(names[body.decision_id], body))
            missing -= {body.decision_id} if isinstance(body, DecisionRecord) else set()
        if not missing:
            break
    return found[::-1]


def _listed(document: Mapping[str, Any]) -> Iterator[tuple[str, str, int | None]]:
    """Each file that a kept result names: its name, digest and, of an artifact, size in bytes."""
    stored: Mapping[str, Any] = document.get("stored", {})
    for role, own in (("", stored), ("verifier-", stored.get("verifier", {}))):
        for kind, end in (("code", ".txt"), ("result", ".json"), ("log", ".json")):
            if kind in own:
                yield f"{role}{kind}{end}", str(own[kind]), None
    for artifact in document.get("artifacts", ()):
        yield str(artifact["path"]), str(artifact["stored"]), int(artifact["bytes"])


def _files(state: Path, document: Mapping[str, Any]) -> Iterator[KeptFile]:
    """Each of them with what the store has."""
    store = _store(state)
    for name, digest, size in _listed(document):
        try:
            data = store.get(digest)
        except WorkError:  # it was changed; the download says so
            data = None
        yield kept_file(name, digest, data, size)


def _store(state: Path) -> ArtifactStore:
    return ArtifactStore(state / "artifacts")
