"""Where `bundle.yaml` states the facts of a source bundle; looked up only for reports."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from engine.documents.files import Path_, Stated
from engine.facts.archives.source_bundle import LicenseDecision, Reading

_ROOT = "bundle"
_WRITTEN_AS = {"content": "path"}
_MADE_FROM: dict[str, tuple[Callable[[Path_], Path_], ...]] = {
    "kind": (lambda record: (*record, "url"), lambda record: (*record, "retrieved_at")),
    "export": (lambda _: ("export_license",),),
}
"""Other fields that decide with a field of a record whether it is in order."""
_DECISIONS = "license_decisions"
_MOST = 10
"""Maximum number of decisions reported for one record."""


class Stating:
    """The fields that the facts of one document come from.

    `subjects` are its records as findings name them, `hashes` the SHA-256 of the content of each.
    """

    def __init__(self, reading: Reading, subjects: Sequence[str], hashes: Sequence[str | None]) -> None:
        self._reading = reading
        self._subjects = subjects
        self._hashes = hashes

    def field(self, subject: str | None, path: str) -> Stated | None:
        """The field of a fact: by its path below a record, or `bundle.…` for a field of the whole."""
        first, *rest = path.split(".")
        if first == _ROOT:
            return self._stated(tuple(rest))
        index = self._indexes.get(subject or "")
        if index is None:
            return None
        if path == "license.decisions":
            return self._decided(index)
        written = _WRITTEN_AS.get(first, first)
        record = ("records", index)
        stated = self._stated((*record, written, *rest))
        notes = [stated.note, *(self._errors(other(record)) for other in _MADE_FROM.get(written, ()))]
        if path == "license":
            notes.append(self._undecided(index))
        if path == "content" and isinstance(stated.value, str):
            notes.append("there is no regular file of this name")
        return replace(stated, note="; ".join(filter(None, notes)) or None)

    def _stated(self, path: Path_) -> Stated:
        """The field at a path, with what is wrong with it."""
        found = self._reading.document.stated(path)
        absent = f"{'.'.join(map(str, path))} is not stated" if found.value is None else None
        return replace(found, note=self._errors(path) or absent)

    def _errors(self, path: Path_) -> str | None:
        """What does not fit the format in a field, or, where it is missing, in the mappings that lack it."""
        names = [".".join(map(str, path[:end])) for end in range(1, len(path) + 1)]
        missing = self._reading.document.stated(path).value is None
        wrong = [*((_ROOT, *names) if missing else names[-1:]), *self._below.get(".".join(names[-1:]), ())]
        notes = self._reading.notes
        return "; ".join(f"{name}: {notes[name]}" for name in wrong if name in notes and _helps(notes[name])) or None

    @cached_property
    def _below(self) -> dict[str, list[str]]:
        """The wrong fields below each mapping."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for name in self._reading.notes:
            found[name.rpartition(".")[0]].append(name)
        return found

    @cached_property
    def _indexes(self) -> dict[str, int]:
        return {subject: index for index, subject in enumerate(self._subjects)}

    @cached_property
    def _decisions(self) -> dict[str, list[tuple[int, dict[str, Any]]]]:
        """The license decisions with their positions, by the record that they name."""
        named: defaultdict[str, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
        for index, decision in enumerate(self._reading.pruned.get(_DECISIONS) or ()):
            named[decision.get("record", "")].append((index, decision))
        return named

    def _decided(self, index: int) -> Stated:
        document, identity = self._reading.document, self._subjects[index].removeprefix("records/")
        found = self._decisions.get(identity, [])
        if not found:
            note = f"no decision names the record `{identity}`"
            return Stated(document.where(("records", index)), None, note)
        more = f" … and {len(found) - _MOST:,} more" if len(found) > _MOST else ""
        note = "; ".join(self._about(at, decision, index) for at, decision in found[:_MOST]) + more
        return Stated(document.where((_DECISIONS, found[0][0])), None, note)

    def _undecided(self, index: int) -> str | None:
        """The first decision on a record that is none to accept it."""
        found = self._decisions.get(self._subjects[index].removeprefix("records/"), [])
        others = (self._about(at, one, index) for at, one in found if one.get("decision") != "accepted")
        return next(others, None)

    def _about(self, at: int, decision: dict[str, Any], index: int) -> str:
        """How one decision relates to the content of a record."""
        line, computed = self._reading.document.where((_DECISIONS, at)).line, self._hashes[index]
        if absent := [name for name in LicenseDecision.model_fields if name not in decision]:
            return f"line {line}: a decision without a valid {' and '.join(absent)}"
        if decision["sha256"] != computed:
            about = f"content {decision['sha256']}, but the content is {computed or 'missing'}"
            return f"line {line}: a decision on {about}"
        return f"line {line}: {decision['decision']}, decided at {decision['decided_at']}"


def _helps(note: str) -> bool:
    """Whether a note on a mapping says something about the fields in it."""
    return "unknown field" not in note or "did you mean" in note
