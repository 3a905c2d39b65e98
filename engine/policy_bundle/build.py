"""Sources to a policy bundle: two archives with their revisions, the catalogue, the place of each value.

What was built once from the same bytes, by the same code and the same OPA, is used again: then no
OPA runs and little is read. A build that fails writes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from engine import __version__
from engine.canonical import canonical
from engine.errors import Location, PolicyError, Problem
from engine.model import Model, Revisions
from engine.opa.binary import Binary
from engine.opa.command import OpaCommand
from engine.policy_bundle import archives
from engine.policy_bundle.catalogue import Catalogue, level_problems
from engine.policy_bundle.sources import PolicySources, Snapshot, snapshot
from engine.policy_bundle.store import stored
from engine.report import PolicyRow

_ARCHIVE, _CATALOGUE, _REVISION = "archive.tar.gz", "catalogue.json", "revision"
_DATA, _PLACES = "data.json", "places.json"
_CODE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Archive:
    """One OPA bundle archive and the revision in its manifest."""

    path: Path
    revision: str


@dataclass(frozen=True)
class PolicyBundle:
    """A policy ready to be served, and what people may ask about it."""

    name: str
    rules: Archive
    values: Archive
    catalogue: Catalogue
    sources: PolicySources

    @property
    def revisions(self) -> Revisions:
        return Revisions(rules=self.rules.revision, values=self.values.revision)

    def row(self, path: tuple[str | int, ...]) -> PolicyRow:
        """The value at a path below `policy/`, such as `("licenses", "licenses", "MIT")`, and where it stands."""
        value: Any = self.data
        for part in path:
            fits = isinstance(value, dict) and part in value
            fits = fits or (isinstance(value, list) and isinstance(part, int) and 0 <= part < len(value))
            if not fits:
                return PolicyRow(".".join(map(str, path)), None, None)
            value = value[part]
        place = next((self._places[path[:end]] for end in range(len(path), 0, -1) if path[:end] in self._places), None)
        return PolicyRow(".".join(map(str, path)), value, place and self.sources.where(place))

    def where(self, file: str, line: int) -> Location:
        """The place of a requirement with a path that opens from the current folder."""
        return self.sources.where(Location(file, line))

    def module(self, point: str) -> str:
        """What was generated for a point: its module, then the findings of each of its files."""
        files = archives.read(self.rules.path)
        texts = {name: data.decode("utf-8") for name, data in files.items() if name.endswith(".rego")}
        parts = [f"# admission/compiled/{point}.rego\n{texts[f'admission/compiled/{point}.rego']}"]
        for name, text in sorted(texts.items()):
            own, mark, generated = text.partition(archives.GENERATED)
            if mark and f"/{point}/" in name:
                parts.append(f"# {name}, after line {len(own.splitlines())}\n{generated.lstrip()}")
        return "\n".join(parts)

    def unpack(self, folder: Path) -> None:
        """Write everything that is served below a folder, with one manifest for both roots."""
        archives.unpack(self.rules.path, folder)
        archives.unpack(self.values.path, folder)
        both = {"roots": [archives.RULES_ROOT, archives.VALUES_ROOT], "rego_version": 2}
        (folder / ".manifest").write_bytes(canonical(both))

    @cached_property
    def data(self) -> dict[str, Any]:
        """What `data.policy` is."""
        data: dict[str, Any] = json.loads((self.values.path.parent / _DATA).read_bytes())
        return data

    @cached_property
    def _places(self) -> dict[tuple[str | int, ...], Location]:
        written = json.loads((self.values.path.parent / _PLACES).read_bytes())
        return {tuple(path): Location(*place) for path, place in written}


def build(
    sources: PolicySources,
    points: Collection[str],
    binary: Binary,
    cache: Path,
    documents: Mapping[str, type[Model]] | None = None,
) -> PolicyBundle:
    """Check the sources and make the policy bundle, or find it made already.

    `points` are the decision points, `documents` the models of policy/ (those of engine.values when
    None). Raises PolicyError with every problem found, DecideError when OPA or the cache cannot be
    used.
    """
    taken = snapshot(sources)
    found: list[Problem] = []
    base = _digest("code", __version__, binary.sha256, _code_digest(), *sorted(points), *_models_digest(documents))
    made = _Making(sources, taken, frozenset(points), OpaCommand(binary.path), documents, found)
    rules = _stored(cache / "policy" / "rules", _digest(base, taken.recipe_name, taken.rules_digest()), made.rules, found)
    values = _stored(cache / "policy" / "values", _digest(base, taken.values_digest(), *sources.values), made.values, found)
    if rules is None or values is None:
        raise _refused(sources, found)
    catalogue = Catalogue.model_validate_json((rules / _CATALOGUE).read_bytes())
    bundle = PolicyBundle(taken.recipe_name, _archive(rules), _archive(values), catalogue, sources)
    _check_levels(bundle)
    return bundle


class _Failed(Exception):
    """A part could not be made; why stands in the list of problems."""


@dataclass(frozen=True, slots=True)
class _Making:
    """Makes the parts that are not stored yet; the heavy imports happen here."""

    sources: PolicySources
    taken: Snapshot
    points: frozenset[str]
    opa: OpaCommand
    documents: Mapping[str, type[Model]] | None
    found: list[Problem]

    def rules(self) -> dict[str, bytes]:
        from engine.policy_bundle.rules import compile_rules, words

        rules = compile_rules(self.taken, self.points, frozenset(self._models()), self.opa, self.found)
        if rules is None:
            raise _Failed
        data, revision = archives.rules_archive(rules.files, rules.metadata)
        return {_ARCHIVE: data, _REVISION: revision.encode(), _CATALOGUE: words(rules.catalogue)}

    def values(self) -> dict[str, bytes]:
        from engine.policy_bundle.values import read

        values = read(self.taken.values, self.sources.values, self._models(), self.found)
        if values is None:
            raise _Failed
        data, revision = archives.values_archive(values.data)
        places = [[list(path), [place.file, place.line, place.field]] for path, place in values.places.items()]
        written = {_DATA: canonical(values.data), _PLACES: json.dumps(places).encode()}
        return {_ARCHIVE: data, _REVISION: revision.encode(), **written}

    def _models(self) -> Mapping[str, type[Model]]:
        if self.documents is not None:
            return self.documents
        from engine.values import DOCUMENTS

        return DOCUMENTS


def _stored(folder: Path, key: str, make: Callable[[], Mapping[str, bytes]], found: list[Problem]) -> Path | None:
    """The stored part, or None when making it found problems; both parts tell theirs at once."""
    try:
        return stored(folder, key, make)
    except _Failed:
        assert found, "a part that cannot be made says why"  # noqa: S101
        return None


def _archive(folder: Path) -> Archive:
    return Archive(folder / _ARCHIVE, (folder / _REVISION).read_text(encoding="ascii"))


def _check_levels(bundle: PolicyBundle) -> None:
    levels = bundle.data.get("levels", {}).get("levels", {})
    found = []
    for path, message, remedy in level_problems(levels, bundle.catalogue.points):
        place = bundle._places.get(("levels", *path), Location("policy/levels.yaml"))
        found.append(Problem(place, message, remedy))
    if found:
        raise _refused(bundle.sources, found)


def _refused(sources: PolicySources, found: list[Problem]) -> PolicyError:
    placed = [Problem(sources.where(one.where), one.message, one.remedy) for one in found]
    placed.sort(key=lambda one: (one.where.file, one.where.line or 0, one.message))
    return PolicyError(tuple(dict.fromkeys(placed)))


def _models_digest(documents: Mapping[str, type[Model]] | None) -> list[str]:
    """What the models of the values are: their schemas, unless they are the engine's own code."""
    if documents is None:
        return []
    return [f"{name}={canonical(model.model_json_schema()).decode()}" for name, model in sorted(documents.items())]


def _code_digest() -> str:
    """Of the code that builds, so that a changed builder never takes what another one made."""
    parts = [*sorted(_CODE.glob("*.py")), _CODE.parent / "values.py", _CODE.parent / "files.py"]
    return _digest(*(hashlib.sha256(path.read_bytes()).hexdigest() for path in parts))


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
