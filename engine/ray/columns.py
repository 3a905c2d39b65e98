"""Which columns of a table state the license, the origin and the hash of a row, and the request that they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from engine.documents.canonical import canonical, digest
from engine.documents.files import load, printable, read_bytes
from engine.errors import GatherError, Location
from engine.model import Model
from engine.settings import ReadLimits
from engine.times import time_text

POINT = "license"
ADDED = ("outcome", "codes", "decision_id", "segment")
"""Columns that a dataset gets."""
PROVENANCE = ("decision_id", "policy_rules", "policy_values", "segment")
"""Columns that the files of admitted rows get."""

_BYTES = 64 << 10
Column = Annotated[str, Field(min_length=1, max_length=256)]


class Decided(Model):
    """Columns with the license decision of a row: `accepted` and the like, on the content with this hash, when."""

    decision: Column
    sha256: Column
    decided_at: Column


class Columns(Model):
    """Columns of a table, by what they state, and what is the same for all rows.

    `sha256` is the hash of the content as stated; with `content` it is computed as well. `license_decision` is left
    out where the table has none. `purpose` and `export_license` are values as in a request at point `license`.
    """

    license: Column
    origin: Column
    sha256: Column
    content: Column | None = None
    license_decision: Decided | None = None
    purpose: str
    export_license: str | None

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that a table must have."""
        decided = self.license_decision
        more = () if decided is None else (decided.decision, decided.sha256, decided.decided_at)
        content = () if self.content is None else (self.content,)
        return tuple(dict.fromkeys((self.license, self.origin, self.sha256, *content, *more)))

    @property
    def digest(self) -> str:
        """Changes with everything that a request is made from."""
        return digest(canonical(self.model_dump(mode="json")))

    def request(self, row: Mapping[str, Any], place: str) -> dict[str, Any] | GatherError:
        """The request of a row at point `license`; for a row that states none, the error, which is recorded as a deny.

        `place` is file and row, for the error.
        """
        if lacking := [name for name in self.needed if name not in row]:
            return _unreadable(place, f"has no `{printable(lacking[0])}`", f"state {', '.join(lacking)} in every row")
        origin, stated = row[self.origin], row[self.sha256]
        if not (isinstance(origin, str) and origin.strip()):
            return _unreadable(place, "states no origin", f"state it in the column `{printable(self.origin)}`")
        if self.content is not None:
            content = row[self.content]
            if not isinstance(content, str | bytes):
                return _unreadable(place, "has no content", "remove the row, or add its text or bytes")
            found = sha256(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
            if found.hexdigest() != stated:
                return _unreadable(
                    place, "has another content than its hash states", "correct the hash, or the content"
                )
        label = row[self.license]
        return {
            "purpose": self.purpose,
            "export_license": self.export_license,
            "license": "" if label is None else label,  # the policy refuses a blank label as missing
            "sha256": stated,
            "decisions": self._decisions(row),
        }

    def _decisions(self, row: Mapping[str, Any]) -> list[dict[str, Any]]:
        decided = self.license_decision
        if decided is None or row[decided.decision] is None:
            return []
        at = row[decided.decided_at]
        if isinstance(at, datetime):
            at = time_text(at)
        return [{"sha256": row[decided.sha256], "decision": row[decided.decision], "decided_at": at}]


def demand_columns(
    names: Sequence[str], needed: Sequence[str], added: Sequence[str], of: str, where: Location | None = None
) -> None:
    """Raise GatherError unless a table has the columns that are needed, and none of those that are added.

    `of` says in the remedy whose columns are to be named.
    """
    if lacking := [name for name in needed if name not in names]:
        raise GatherError(
            f"there is no column `{printable(lacking[0])}`; the columns are {printable(', '.join(names))}",
            remedy=f"name the columns of {of}",
            where=where,
        )
    if double := [name for name in needed if names.count(name) > 1]:
        raise GatherError(f"the column `{printable(double[0])}` is there twice", remedy="rename one", where=where)
    if taken := [name for name in added if name in names]:
        raise GatherError(
            f"the column `{taken[0]}` exists, and one of this name is added", remedy="rename the column", where=where
        )


def read_columns(path: Path) -> Columns:
    """The columns that a file of YAML states. Raises GatherError."""
    document = load(read_bytes(path, _BYTES), str(path), ReadLimits())
    try:
        return Columns.model_validate(document.value)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = document.where(tuple(first["loc"]))
        remedy = "state license, origin, sha256, purpose and export_license as in docs/bulk.md"
        raise GatherError(
            f"the file does not describe columns: {first['msg'].lower()}", remedy=remedy, where=where
        ) from error


def _unreadable(place: str, problem: str, remedy: str) -> GatherError:
    file, _, row = place.rpartition(":")
    return GatherError(f"the row {problem}", remedy=remedy, where=Location(file, int(row)))
