"""What a policy bundle is built from: rules, values, the recipe, and the values laid over them."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from engine.canonical import canonical
from engine.errors import GatherError, Location, PolicyError, Problem
from engine.files import load, read_bytes, shown
from engine.model import Model
from engine.policy_bundle.explain import problems
from engine.settings import ReadLimits

_RULE_BYTES = 1 << 20
"""One file of rules; ours have about 2 KiB."""
_MOST_FILES = 5_000
_README = "README.md"
"""The only file that may stand anywhere without being read."""
_INVENTORY = "inventory.yaml"
_LEFT_BY_EDITORS = re.compile(r"^(.*~|#.*#|\.#.*|\..*\.sw[a-z])$")
_NAME = re.compile(r"^[a-z0-9][a-z0-9_.-]*$")


@dataclass(frozen=True, slots=True)
class PolicySources:
    """Three folders, and `key=value` overrides on the values; nothing is read before `build`."""

    rego: Path
    policy: Path
    recipe: Path
    values: tuple[str, ...] = ()

    def path(self, name: str) -> Path:
        """The file of a name as the catalogue and problems use it, such as `rego/admission/x.rego`."""
        root, _, rest = name.partition("/")
        if root == "bundles":
            return self.recipe.joinpath(*Path(rest).parts[1:])
        return {"rego": self.rego, "policy": self.policy}[root] / rest

    def where(self, place: Location) -> Location:
        """The same place with a path that opens from the current folder."""
        if place.file.partition("/")[0] not in {"rego", "policy", "bundles"}:
            return place
        path = self.path(place.file)
        try:
            path = path.absolute().relative_to(Path.cwd())
        except (ValueError, OSError):
            path = path.absolute()
        return Location(str(path), place.line, place.field)


class Recipe(Model):
    """`recipe.yaml` of a recipe: what the policy bundle is for, and whom its remedies may name."""

    description: Annotated[str, Field(min_length=1, max_length=1000)]
    owner: Annotated[str, Field(min_length=1, max_length=200)]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The bytes of all sources, read once, by name. What is built is built from these bytes."""

    rules: dict[str, bytes]  # rego/**/*.rego without tests
    tests: dict[str, bytes]  # *_test.rego of rules and of added rules
    added: dict[str, bytes]  # bundles/<name>/rules/**/*.rego without tests
    inventories: dict[str, bytes]  # rego/inventory.yaml, bundles/<name>/inventory.yaml
    recipe: bytes
    recipe_name: str
    values: dict[str, bytes]  # policy/*.yaml

    def rules_digest(self) -> str:
        """Changes when anything the rules archive is built from changes; tests are checked too."""
        rules = {**self.rules, **self.tests, **self.added, **self.inventories}
        return _digest({**rules, f"bundles/{self.recipe_name}": self.recipe})

    def values_digest(self) -> str:
        """Changes when any value file changes."""
        return _digest(self.values)


def snapshot(sources: PolicySources) -> Snapshot:
    """Read all sources. Raises PolicyError for folders and files that are missing or unreadable."""
    found: list[Problem] = []
    name = sources.recipe.absolute().name
    if not _NAME.match(name):
        found.append(
            Problem(Location(str(sources.recipe)), f"`{name}` is no name for a recipe", "use a-z, 0-9, `-`, `_`")
        )
    try:
        rules = dict(_rules(sources.rego, "rego", found))
        added = dict(_added(sources.recipe, f"bundles/{name}", found))
        values = dict(_values(sources.policy, found))
    except OSError as error:
        reason = (error.strerror or "it failed").lower()
        where = Location(shown(str(error.filename)))
        raise PolicyError(
            (Problem(where, f"cannot be read: {reason}", "check the path and its permissions"),)
        ) from error
    recipe = _read(sources.recipe / "recipe.yaml", f"bundles/{name}/recipe.yaml", _RULE_BYTES, found)
    places = {f"rego/{_INVENTORY}": sources.rego, f"bundles/{name}/{_INVENTORY}": sources.recipe}
    inventories = {
        name: _read(folder / _INVENTORY, name, _RULE_BYTES, found)
        for name, folder in places.items()
        if os.path.lexists(folder / _INVENTORY)
    }
    if found:
        raise PolicyError(tuple(Problem(sources.where(one.where), one.message, one.remedy) for one in found))
    tests = {name: data for name, data in (rules | added).items() if name.endswith("_test.rego")}
    return Snapshot(
        rules={name: data for name, data in rules.items() if name not in tests},
        tests=tests,
        added={name: data for name, data in added.items() if name not in tests},
        inventories=inventories,
        recipe=recipe,
        recipe_name=name,
        values=values,
    )


def recipe(taken: Snapshot, found: list[Problem]) -> Recipe | None:
    """The recipe as a model, or None with the reasons added to `found`."""
    name = f"bundles/{taken.recipe_name}/recipe.yaml"
    try:
        document = load(taken.recipe, name, ReadLimits())
        return Recipe.model_validate_json(canonical(document.value))
    except GatherError as error:
        found.append(Problem(error.where or Location(name), error.message, error.remedy))
    except ValidationError as error:
        found.extend(
            problems(
                error, document, remedies={"description": "say what it is for", "owner": "name who answers for it"}
            )
        )
    return None


def _added(recipe: Path, prefix: str, found: list[Problem]) -> Iterator[tuple[str, bytes]]:
    """The rules of a recipe. A rule that were passed over would refuse nothing, so all else is a problem."""
    try:
        paths = sorted(recipe.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        paths = []  # told where recipe.yaml is read
    except OSError as error:
        found.append(_unlisted(prefix, error))
        return
    try:
        kinds = {path.name: path.lstat().st_mode for path in paths}
    except OSError as error:
        found.append(_unlisted(prefix, error))
        return
    for name, kind in kinds.items():
        if name == "rules" and stat.S_ISDIR(kind):
            yield from _rules(recipe / name, f"{prefix}/rules", found)
        elif name == "rules":
            found.append(Problem(Location(f"{prefix}/{name}"), "this is no folder", "make it a folder of rules"))
        elif name not in {"recipe.yaml", _INVENTORY} and not (stat.S_ISREG(kind) and name == _README):
            remedy = f"rules are `rules/<point>/<topic>.rego`; beside them and recipe.yaml only {_README} may stand"
            found.append(Problem(Location(f"{prefix}/{name}"), "nothing is read from here", remedy))


def _rules(folder: Path, prefix: str, found: list[Problem]) -> Iterator[tuple[str, bytes]]:
    paths = sorted(_walk(folder, prefix, found))
    if len(paths) > _MOST_FILES:
        found.append(
            Problem(Location(str(folder)), f"there are more than {_MOST_FILES} files of rules", "split the policy")
        )
        return
    for path in paths:
        name = f"{prefix}/{path.relative_to(folder).as_posix()}"
        yield name, _read(path, name, _RULE_BYTES, found)


def _walk(folder: Path, prefix: str, found: list[Problem]) -> Iterator[Path]:
    """Every `*.rego` below a folder; what may hide rules from the walk is added to `found`."""

    def name_of(path: Path) -> str:
        return f"{prefix}/{path.relative_to(folder).as_posix()}".removesuffix("/.")

    def unlisted(error: OSError) -> None:
        path = Path(error.filename or folder)
        if path == folder and isinstance(error, (FileNotFoundError, NotADirectoryError)):
            remedy = "name the folder that holds `admission/`"
            found.append(Problem(Location(str(folder)), "there is no folder of rules", remedy))
        else:
            found.append(_unlisted(name_of(path), error))

    for parent, folders, files in os.walk(folder, onerror=unlisted):
        for path in (Path(parent, name) for name in (*folders, *files)):
            if path.name.endswith(".rego") and not _LEFT_BY_EDITORS.match(path.name):
                yield path
            elif path != folder / _INVENTORY and (problem := _unread(path, name_of(path))) is not None:
                found.append(problem)


def _unread(path: Path, name: str) -> Problem | None:
    """What is wrong with something that holds no rules; nothing with a folder and a README."""
    try:
        kind = path.lstat().st_mode
    except OSError as error:
        return _unlisted(name, error)
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
        remedy = "put the rules here: links are not followed"
        return Problem(Location(name), "this is neither a file nor a folder", remedy)
    if stat.S_ISDIR(kind) or path.name == _README:
        return None
    return _not_read(name, "end the name of rules with `.rego` in lower case, or remove the file")


def _not_read(name: str, remedy: str) -> Problem:
    """The problem of a file that nothing reads: what it says would be taken for said."""
    if _LEFT_BY_EDITORS.match(name.rpartition("/")[2]):
        return Problem(Location(name), "an editor left this file", "save and close it in the editor, or remove it")
    return Problem(Location(name), "this file would not be read", f"{remedy}; only {_README} may stand beside")


def _unlisted(name: str, error: OSError) -> Problem:
    reason = (error.strerror or "cannot be read").lower()
    return Problem(Location(name), f"cannot list what is here: {reason}", "check the path and its permissions")


def _values(folder: Path, found: list[Problem]) -> Iterator[tuple[str, bytes]]:
    if not folder.is_dir():
        found.append(
            Problem(Location(str(folder)), "there is no folder of values", "name the folder that holds levels.yaml")
        )
        return
    for path in sorted(folder.iterdir()):
        name = f"policy/{path.name}"
        if path.suffix == ".yaml" and not _LEFT_BY_EDITORS.match(path.name):
            yield name, _read(path, name, ReadLimits().document_bytes, found)
        elif path.name != _README:
            found.append(_not_read(name, "values are `policy/<name>.yaml`, rules live in rego/"))


def _read(path: Path, name: str, limit: int, found: list[Problem]) -> bytes:
    try:
        return read_bytes(path, limit, name)
    except GatherError as error:
        found.append(Problem(Location(name), error.message, error.remedy))
        return b""


def _digest(files: dict[str, bytes]) -> str:
    total = hashlib.sha256()
    for name, data in sorted(files.items()):
        total.update(f"{len(name.encode())}:{name}:{len(data)}:".encode())
        total.update(data)
    return total.hexdigest()
