"""Sources to a policy bundle: two archives with their revisions, the catalogue, the place of each value.

What was built once from the same bytes, by the same code and the same OPA, is used again: then no
OPA runs and little is read. A build that fails writes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Protocol

from engine import __version__
from engine.canonical import canonical, digest
from engine.errors import GatherError, Location, PolicyError, Problem
from engine.model import Model, Revisions
from engine.opa.binary import Binary
from engine.opa.command import OpaCommand
from engine.opa.packed import MANIFEST, revision, unpacked
from engine.policy_bundle import archives
from engine.policy_bundle.catalogue import Catalogue
from engine.policy_bundle.levels import Lowered, level_problems, lowered_in
from engine.policy_bundle.sources import PolicySources, Snapshot, snapshot
from engine.policy_bundle.store import keep, kept
from engine.report import PolicyRow
from engine.secret_forms import SecretForms

_ARCHIVE, _CATALOGUE, _PLACES = "archive.tar.gz", "catalogue.json", "places.json"
_ENGINE = Path(__file__).parent.parent


class Decided(Protocol):
    """A decision point, as far as its rules need it."""

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of what OPA sees; {} where that is not known."""
        ...


@dataclass(frozen=True, slots=True)
class Archive:
    """One OPA bundle archive and the digest of its content."""

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
    written_values: bytes  # what `data.policy` is, as JSON
    written_places: bytes

    @property
    def revisions(self) -> Revisions:
        """What OPA must say it answers from."""
        return Revisions(rules=self.rules.revision, values=self.values.revision)

    def level(self, point: str, code: str) -> str:
        """What a finding with this code does, for people; OPA applies it."""
        found = self.data.get("levels", {}).get("levels", {}).get(point, {}).get(code)
        level = found.get("level") if isinstance(found, dict) else found
        return level if isinstance(level, str) else "deny"

    @property
    def lowered(self) -> tuple[Lowered, ...]:
        """The refusals that policy/levels.yaml lowers for some time."""
        return lowered_in(self)

    def row(self, path: tuple[str | int, ...]) -> PolicyRow:
        """The value at a path below `policy/`, such as `("licenses", "licenses", "MIT")`, and where it stands."""
        value: Any = self.data
        for part in path:
            fits = isinstance(value, dict) and part in value
            fits = fits or (isinstance(value, list) and isinstance(part, int) and 0 <= part < len(value))
            if not fits:
                return PolicyRow(".".join(map(str, path)), None, None)
            value = value[part]
        place = next((self.places[path[:end]] for end in range(len(path), 0, -1) if path[:end] in self.places), None)
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
    def metadata(self) -> dict[str, str]:
        """Name, description and owner, as the archive of rules says them."""
        written: dict[str, str] = json.loads(archives.read(self.rules.path)[MANIFEST])["metadata"]
        return written

    @cached_property
    def data(self) -> dict[str, Any]:
        """What `data.policy` is."""
        data: dict[str, Any] = json.loads(self.written_values)
        return data

    @cached_property
    def windows(self) -> dict[str, dict[str, int]]:
        """The counted budgets of each point: what counts alone, and its window in seconds."""
        return self._windows("budgets")

    @cached_property
    def quotas(self) -> dict[str, dict[str, int]]:
        """Whatever else each point counts: the name of a quota, and its window in seconds."""
        return self._windows("quotas")

    def _windows(self, what: str) -> dict[str, dict[str, int]]:
        return {
            point: {scope: one["window_seconds"] for scope, one in sorted(row.items()) if isinstance(one, dict)}
            for point, row in self.data.get("budgets", {}).get(what, {}).items()
        }

    @cached_property
    def argument_types(self) -> dict[str, dict[str, str]]:
        """How the arguments of each tool are to be read, by name."""
        tools = self.data.get("tools", {}).get("tools", {})
        return {name: tool["arguments"] for name, tool in tools.items()}

    @cached_property
    def carried_fields(self) -> dict[str, tuple[str, ...]]:
        """The fields of a request that answers under each contract repeat."""
        contracts = self.data.get("code", {}).get("contracts", {})
        return {name: tuple(field["name"] for field in one["carried"]) for name, one in contracts.items()}

    @cached_property
    def output_fields(self) -> dict[str, tuple[str, ...]]:
        """The fields of each output contract, in the order in which they are checked."""
        contracts = self.data.get("code", {}).get("contracts", {})
        return {name: tuple(field["name"] for field in one["fields"]) for name, one in contracts.items()}

    @cached_property
    def contracts(self) -> dict[str, str]:
        """The output contract of a program in each role."""
        found: dict[str, str] = self.data.get("code", {}).get("outputs", {})
        return found

    @cached_property
    def probe_seconds(self) -> int:
        """How old the result of a sandbox's probe may be."""
        found: int = self.data.get("sandbox", {}).get("probe_max_age_seconds", 0)
        return found

    @cached_property
    def kind_without_origin(self) -> str | None:
        """The kind of a source record without an origin, where the policy names one."""
        found: str | None = self.data.get("sources", {}).get("kind_without_origin")
        return found

    @cached_property
    def secret_forms(self) -> SecretForms:
        """The forms in which vendors issue secrets."""
        return SecretForms.of(self.data.get("secrets"))

    @cached_property
    def places(self) -> dict[tuple[str | int, ...], Location]:
        """Where each value stands, by its path below `policy/`."""
        return {tuple(path): Location(*place) for path, place in json.loads(self.written_places)}


def build(
    sources: PolicySources,
    points: Mapping[str, Decided],
    binary: Binary,
    cache: Path,
    documents: Mapping[str, type[Model]] | None = None,
) -> PolicyBundle:
    """Check the sources and make the policy bundle, or find it made already.

    `points` are the decision points with what OPA sees there, `documents` the models of policy/
    (those of engine.values when None). Raises PolicyError with every problem found, DecideError when
    OPA or the cache cannot be used.
    """
    taken = snapshot(sources)
    found: list[Problem] = []
    base = _digest(
        "code", __version__, binary.sha256, _code_digest(), *sorted(points), *_models_digest(points, documents)
    )
    made = _Making(sources, taken, points, OpaCommand(binary.path), documents, found)
    rules = _Part(cache / "policy" / "rules", _digest(base, taken.recipe_name, taken.rules_digest()))
    values = _Part(cache / "policy" / "values", _digest(base, taken.values_digest(), *sources.values))
    rules.find(made.rules)
    values.find(made.values)
    if found:
        raise _refused(sources, found)
    served, places = values.content[archives.VALUES_DATA], values.files[_PLACES]
    levels = json.loads(served).get("levels", {}).get("levels", {})
    catalogue = Catalogue.model_validate_json(rules.files[_CATALOGUE])
    found += _level_problems(levels, catalogue, json.loads(places))
    if found:
        raise _refused(sources, found)
    return PolicyBundle(taken.recipe_name, rules.keep(), values.keep(), catalogue, sources, served, places)


class _Part:
    """One of the two parts: kept from an earlier build, or made now and kept when all is well.

    What was kept is used only where its archive is proven: the revision is always computed from the
    content, and the catalogue is the one that the content names.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self.files: Mapping[str, bytes] = {}
        self.content: Mapping[str, bytes] = {}
        self._folder = folder
        self._key = key
        self._revision = ""

    def find(self, make: Callable[[], Mapping[str, bytes] | None]) -> None:
        """Make the part unless it was kept; `make` gives None when it found problems."""
        if not self._prove(kept(self._folder, self._key)) and (made := make()) is not None:
            self._prove(made)

    def keep(self) -> Archive:
        """The part on disk."""
        return Archive(keep(self._folder, self._key, self.files) / _ARCHIVE, self._revision)

    def _prove(self, files: Mapping[str, bytes] | None) -> bool:
        try:
            self.content = unpacked((files or {})[_ARCHIVE], _ARCHIVE)
            self._revision = revision(self.content, _ARCHIVE)
        except (KeyError, GatherError):
            return False
        self.files = files or {}
        words = json.loads(self.content[MANIFEST]).get("metadata", {}).get(archives.WORDS)
        return words is None or words == digest(self.files.get(_CATALOGUE, b""))


@dataclass(frozen=True, slots=True)
class _Making:
    """Makes the parts that are not stored yet; the heavy imports happen here."""

    sources: PolicySources
    taken: Snapshot
    points: Mapping[str, Decided]
    opa: OpaCommand
    documents: Mapping[str, type[Model]] | None
    found: list[Problem]

    def rules(self) -> dict[str, bytes] | None:
        from engine.policy_bundle.rules import Known, compile_rules, words

        known = Known(
            {name: point.input_schema for name, point in self.points.items()},
            {name: model.model_json_schema(mode="serialization") for name, model in self._models().items()},
        )
        rules = compile_rules(self.taken, known, self.opa, self.found)
        if rules is None:
            return None
        catalogue = words(rules.catalogue)
        archive, _ = archives.rules_archive(rules.files, {**rules.metadata, archives.WORDS: digest(catalogue)})
        return {_ARCHIVE: archive, _CATALOGUE: catalogue}

    def values(self) -> dict[str, bytes] | None:
        from engine.policy_bundle.values import read

        values = read(self.taken.values, self.sources.values, self._models(), self.found)
        if values is None:
            return None
        served = {**values.data, **self._derived(values.data)}
        places = [[list(path), [place.file, place.line, place.field]] for path, place in values.places.items()]
        return {_ARCHIVE: archives.values_archive(served)[0], _PLACES: json.dumps(places).encode()}

    def _derived(self, values: Mapping[str, Any]) -> dict[str, Any]:
        from engine.values import derived

        return derived(values) if self.documents is None else {}

    def _models(self) -> Mapping[str, type[Model]]:
        if self.documents is not None:
            return self.documents
        from engine.values import DOCUMENTS

        return DOCUMENTS


def _level_problems(levels: Any, catalogue: Catalogue, places: list[list[Any]]) -> list[Problem]:
    lines = {tuple(path): Location(*place) for path, place in places}
    found = level_problems(levels, catalogue.points)
    return [
        Problem(lines.get(("levels", *path), Location("policy/levels.yaml")), message, remedy)
        for path, message, remedy in found
    ]


def _refused(sources: PolicySources, found: list[Problem]) -> PolicyError:
    placed = [Problem(sources.where(one.where), one.message, one.remedy) for one in found]
    placed.sort(key=lambda one: (one.where.file, one.where.line or 0, one.message))
    return PolicyError(tuple(dict.fromkeys(placed)))


def _models_digest(points: Mapping[str, Decided], documents: Mapping[str, type[Model]] | None) -> list[str]:
    """What rules may read, as schemas, unless that is the engine's own code."""
    if documents is None:
        return []
    schemas = {name: model.model_json_schema() for name, model in documents.items()}
    schemas |= {f"input.{name}": point.input_schema for name, point in points.items()}
    return [f"{name}={canonical(schema).decode()}" for name, schema in sorted(schemas.items())]


@lru_cache(maxsize=1)
def _code_digest() -> str:
    """Of the engine's code, so that a changed builder or model never takes what another one made.

    Read once a process: files that change below it are not what it runs.
    """
    return _digest(*(hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(_ENGINE.rglob("*.py"))))


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
