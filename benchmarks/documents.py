"""Inputs as OPA gets them: those of the cases, and every way to spoil one field of a good one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from admission_adapters.files.artifacts import ArtifactDirectory
from engine.cases.run import CaseFile, Runner, read_cases
from engine.errors import EngineError
from engine.gather import FROM_STATE
from engine.model import Outcome
from engine.points import GatherContext
from engine.points.registry import POINTS
from engine.settings import Settings
from tests.laws.mutations import single

_POINTS = ("license", "source")
_DIGESTS = {"input_digest": "sha256:i", "rules": "sha256:r", "values": "sha256:v"}
_GRANTED = {"id": "one", "state": "granted", "requester": "a", "approver": "b", "expires_at": 1 << 40}
_BROUGHT = {
    "approvals": [{**_GRANTED, **_DIGESTS, "expected": _DIGESTS}],
    "budgets": [{"id": "principal", "used": 1, "amount": 1}],
    "stops": [{"id": "one", "scope": "tool", "name": "a", "tool": "b", "principal": "c"}],
}


class Documents:
    """The inputs of all cases of two points that take the policy as it is shipped; `good` names those it allows."""

    def __init__(self, cases: Path, scratch: Path) -> None:
        with tempfile.TemporaryDirectory(dir=scratch) as probed:
            boundaries = (ArtifactDirectory.prove(Path(probed)),)
        runner = Runner(Settings(), scratch)  # it starts an engine only when asked for an answer
        self._found: dict[tuple[str, str], Any] = {}
        self._good: set[tuple[str, str]] = set()
        for file in read_cases(cases):
            if file.case.values or file.case.point not in _POINTS:
                continue
            try:
                document = _document(file, runner, GatherContext(clock=_clock(file), boundaries=lambda: boundaries))
            except EngineError:  # what cannot be read never reaches OPA
                continue
            name = (file.case.point, file.path.stem)
            self._found[name] = document
            if file.case.want.outcome is Outcome.ALLOW:
                self._good.add(name)

    def of(self, point: str, name: str) -> Any:
        """The input of one case."""
        return self._found[point, name]

    def every(self, point: str) -> list[Any]:
        """The inputs of all cases of a point."""
        return [document for (own, _), document in self._found.items() if own == point]

    def good(self, point: str) -> list[Any]:
        """Those that are allowed."""
        return [self._found[name] for name in sorted(self._good) if name[0] == point]

    def spoiled(self, point: str) -> Iterator[Any]:
        """Each good input, and the first one with an approval, a counted budget and a stop too, with one field spoiled.

        The field is dropped, or worth a value of another type.
        """
        good = self.good(point)
        for document in (*good, good[0] | _BROUGHT):
            for path, _, changed in single(document):
                if path != ("point",):
                    yield changed


def _document(file: CaseFile, runner: Runner, context: GatherContext) -> Any:
    point = POINTS[file.case.point]
    request = point.request.model_validate(runner.request(file), strict=False)
    with closing(point.gather(request, context)) as gathered:
        facts = point.document(gathered, context.clock())
    caller = file.case.caller.model_dump(mode="json", exclude_none=True)
    return {**facts, "caller": caller, **{name: [] for name in FROM_STATE}}


def _clock(file: CaseFile) -> Any:
    return lambda: file.case.now
