"""Sources to a policy bundle: two archives with their revisions, the catalogue, the place of each value.

What was built once from the same bytes, by the same code and the same OPA, is used again: then no
OPA runs and little is read. A build that fails writes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, Protocol

from engine.binaries import Binary
from engine.documents.canonical import canonical, digest, parse
from engine.documents.files import Document
from engine.errors import DecideError, GatherError, Location, PolicyError, Problem
from engine.model import Model, Revisions
from engine.opa.command import OpaCommand
from engine.opa.packed import MANIFEST, VALUES_DATA, revision, unpacked
from engine.policy_bundle import archives
from engine.policy_bundle.catalogue import Catalogue, PolicyRow
from engine.policy_bundle.levels import Lowered, level_problems, lowered_in, name_problems, rows_spelled_alike
from engine.policy_bundle.lookups import Lookups
from engine.policy_bundle.sources import PolicySources, Snapshot, files_digest, snapshot
from engine.policy_bundle.store import keep, kept
from engine.policy_bundle.values import locations, parameters, read, schema_of
from engine.policy_bundle.waivers import Idle, Waiver, empty_rows, idle, waivable_problems, waivers_in
from engine.values import DOCUMENTS, derived
from engine.version import __version__

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

    @cached_property
    def revisions(self) -> Revisions:
        """The revisions that OPA must report."""
        return Revisions(rules=self.rules.revision, values=self.values.revision)

    @cached_property
    def display_catalogue(self) -> Catalogue:
        """The catalogue for people elsewhere: its words name the files of values that are edited for this policy."""
        return self.catalogue.reworded(lambda text: self.sources.with_own_files(text, opens=False))

    def level(self, point: str, code: str) -> str:
        """What a finding with this code does, for people; OPA applies it."""
        found = self.data.get("levels", {}).get("levels", {}).get(point, {}).get(code)
        level = found.get("level") if isinstance(found, dict) else found
        return level if isinstance(level, str) else "deny"

    @property
    def lowered(self) -> tuple[Lowered, ...]:
        """The refusals that policy/levels.yaml lowers for some time."""
        return lowered_in(self.data.get("levels", {}).get("levels", {}), lambda path: self.row(path).where)

    @property
    def release(self) -> dict[str, Any] | None:
        """What is recorded of the release that the policy came as; None if it was built from folders."""
        return None

    @cached_property
    def digest(self) -> str | None:
        """The digest of the release that the policy came as; None if it was built from folders."""
        return None if self.release is None else str(self.release["digest"])

    @property
    def waivers(self) -> tuple[Waiver, ...]:
        """The waivers of policy/waivers.yaml, also those that do nothing."""
        return waivers_in(self.data.get("waivers", {}), lambda path: self.row(path).where)

    def idle(self, waiver: Waiver, now: int) -> Idle | None:
        """Why one of these waivers does nothing at this time, in seconds since 1970 UTC; None if it applies."""
        return idle(waiver, self.data["waivers"], self.catalogue, now)

    def rows_without_effect(self, now: int) -> list[Problem]:
        """Lowered levels that have ended, waivers that do nothing and are not to start later, and empty rows."""
        found = [problem for one in self.lowered if (problem := one.ended(now)) is not None]
        found += empty_rows(self.data.get("waivers", {}), self.catalogue, self.places.get)
        for waiver in self.waivers:
            idle = self.idle(waiver, now)
            if idle is not None and idle.remedy is not None:
                where = waiver.where or Location("policy/waivers.yaml")
                found.append(Problem(where, f"{waiver.name} does nothing: {idle.reason}", idle.remedy))
        return found

    def rows_spelled_alike(self) -> list[Problem]:
        """Rows of the recipe that may be misspelled: they are valid, and are spelled like a shipped row."""
        return [*self.sources.placed(rows_spelled_alike(self.data, self.places))]

    def row(self, path: tuple[str | int, ...]) -> PolicyRow:
        """The value at a path below `policy/`, such as `("licenses", "licenses", "MIT")`, and its location."""
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

    def authored(self, served: Location) -> Location:
        """Where the author of a rule finds it; `served` is a file of the archive of rules and a line of it.

        In the archive comments are blanked and findings appended.
        """
        kind, _, rest = served.file.removeprefix("admission/").partition("/")
        name = f"bundles/{self.name}/rules/{rest}" if kind == "added" else f"rego/{served.file}"
        text = archives.read(self.rules.path).get(served.file, b"").decode("utf-8")
        if served.line is None or not 0 < served.line <= len(text.splitlines()):
            return Location(name, served.line)
        points = self.catalogue.points.values()
        lines = {one.code: one.line for point in points for one in point.requirements.values() if one.file == name}
        failing = text.splitlines()[served.line - 1].strip()
        return Location(name, archives.authored_line(text, served.line, lines, lambda line: line.endswith(failing)))

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
        both = {"roots": [archives.RULES_ROOT, archives.VALUES_ROOT], "rego_version": 2}
        files = {**archives.read(self.rules.path), **archives.read(self.values.path), MANIFEST: canonical(both)}
        for name, data in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    @cached_property
    def metadata(self) -> dict[str, str]:
        """Name, description and owner, from the archive of rules."""
        written: dict[str, str] = json.loads(archives.read(self.rules.path)[MANIFEST])["metadata"]
        return written

    @cached_property
    def data(self) -> dict[str, Any]:
        """What `data.policy` is."""
        data: dict[str, Any] = parse(self.written_values)
        return data

    @cached_property
    def lookups(self) -> Lookups:
        """What the engine itself looks up in the values. Raises DecideError for values of another version."""
        try:
            return Lookups.of(self.data)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DecideError(
                "the values lack fields that this version of the engine needs",
                remedy="build the policy with this version of the engine",
                code="engine.policy_invalid",
            ) from error

    @cached_property
    def places(self) -> dict[tuple[str | int, ...], Location]:
        """The location of each value, by its path below `policy/`."""
        return locations(self.written_places)


def build(
    sources: PolicySources,
    points: Mapping[str, Decided],
    binary: Binary,
    cache: Path,
    documents: Mapping[str, type[Model]] = DOCUMENTS,
) -> PolicyBundle:
    """Check the sources and make the policy bundle, or find it made already.

    `points` are the decision points with what OPA sees there, `documents` the models of policy/.
    Raises PolicyError with every problem found, DecideError when
    OPA or the cache cannot be used.
    """
    taken = snapshot(sources)
    found = list(taken.problems)
    base = _digest(
        "code", __version__, binary.sha256, _code_digest(), *sorted(points), *_models_digest(points, documents)
    )
    own = parameters(taken.values, found)
    shape = canonical({} if own is None else schema_of(own.value)).decode()
    rules = _Part(cache / "policy" / "rules", _digest(base, taken.recipe_name, files_digest(taken.rules), shape))
    values = _Part(cache / "policy" / "values", _digest(base, files_digest(taken.values), *sources.values))
    rules.find(lambda: _made_rules(taken, points, OpaCommand(binary.path), documents, own, found))
    fresh = values.find(lambda: _made_values(taken, sources.values, documents, found))
    if found:
        raise _refused(sources, found)
    served, places = values.content[VALUES_DATA], values.files[_PLACES]
    catalogue = _catalogue(rules.files[_CATALOGUE])
    data = parse(served)
    lines = lru_cache(partial(locations, places))  # half the time of a start, and only a problem needs them

    def place(path: tuple[str | int, ...]) -> Location | None:
        return lines().get(path)

    found += level_problems(data.get("levels", {}).get("levels", {}), catalogue, place)
    found += name_problems(data, catalogue, place)
    facts_of = (lambda point: points[point].input_schema) if fresh else None  # what was kept has passed this
    found += waivable_problems(data.get("waivers", {}), catalogue, place, facts_of)
    if found:
        raise _refused(sources, found)
    return PolicyBundle(taken.recipe_name, rules.keep(), values.keep(), catalogue, sources, served, places)


class _Part:
    """One of the two parts: from the cache of an earlier build, or built now and cached on success.

    A cached part is used only if its archive is verified: the revision is always computed from the
    content, and the catalogue must be the one that the content names.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self.files: Mapping[str, bytes] = {}
        self.content: Mapping[str, bytes] = {}
        self._folder = folder
        self._key = key
        self._revision = ""

    def find(self, make: Callable[[], Mapping[str, bytes] | None]) -> bool:
        """Build the part unless it is cached; `make` returns None if it found problems. Whether it was built now."""
        if self._prove(kept(self._folder, self._key)):
            return False
        if (made := make()) is not None:
            self._prove(made)
        return True

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
        words = parse(self.content[MANIFEST]).get("metadata", {}).get(archives.WORDS)
        return words is None or words == digest(self.files.get(_CATALOGUE, b""))


def _made_rules(
    taken: Snapshot,
    points: Mapping[str, Decided],
    opa: OpaCommand,
    documents: Mapping[str, type[Model]],
    own: Document | None,
    found: list[Problem],
) -> dict[str, bytes] | None:
    from engine.policy_bundle.rules import compile_rules

    inputs = {name: point.input_schema for name, point in points.items()}
    values = {name: model.model_json_schema(mode="serialization") for name, model in documents.items()}
    made = compile_rules(taken, inputs, values, opa, found, own)
    return None if made is None else dict(zip((_ARCHIVE, _CATALOGUE), made, strict=True))


def _made_values(
    taken: Snapshot,
    overrides: tuple[str, ...],
    documents: Mapping[str, type[Model]],
    found: list[Problem],
) -> dict[str, bytes] | None:
    values = read(taken.values, overrides, documents, found)
    if values is None:
        return None
    data, places = values
    served = {**data, **derived(data)} if documents is DOCUMENTS else data
    archive = archives.archive({VALUES_DATA: canonical(served)}, archives.VALUES_ROOT, {})
    return {_ARCHIVE: archive, _PLACES: places}


_catalogue = lru_cache(maxsize=4)(Catalogue.model_validate_json)  # an edit of values leaves it as it is


def _refused(sources: PolicySources, found: list[Problem]) -> PolicyError:
    placed = sorted(sources.placed(found), key=lambda one: (one.where.file, one.where.line or 0, one.message))
    return PolicyError(tuple(dict.fromkeys(placed)))


def _models_digest(points: Mapping[str, Decided], documents: Mapping[str, type[Model]]) -> list[str]:
    """What rules may read, as schemas, unless that is the engine's own code."""
    if documents is DOCUMENTS:
        return []
    schemas = {name: model.model_json_schema() for name, model in documents.items()}
    schemas |= {f"input.{name}": point.input_schema for name, point in points.items()}
    return [f"{name}={canonical(schema).decode()}" for name, schema in sorted(schemas.items())]


@lru_cache(maxsize=1)
def _code_digest() -> str:
    """A digest of the engine's code, so that a changed builder or model never uses an old cache entry.

    Computed once per process, because it does not run files that change later.
    """
    return _digest(*(hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(_ENGINE.rglob("*.py"))))


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
