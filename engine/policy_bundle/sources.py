"""What a policy bundle is built from: rules, values, the recipe, and the values laid over them."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from engine.documents.canonical import canonical, digest
from engine.documents.files import printable, read_bytes
from engine.errors import GatherError, Location, PolicyError, Problem, reason_of
from engine.model import Model
from engine.policy_bundle import explain
from engine.settings import ReadLimits, bundled

_RULE_BYTES = 1 << 20
"""One file of rules; ours have about 2 KiB."""
_MOST_FILES = 5_000
_README = "README.md"
"""The only file that is allowed anywhere without being read."""
_INVENTORY, RECIPE = "inventory.yaml", "recipe.yaml"
RULES, VALUES, CASES, SCHEMAS = "rules", "values", "cases", "schemas"
"""Folders of a recipe: added rules, values laid over `policy/`, cases, and schemas for editors."""
_LEFT_BY_EDITORS = re.compile(r"^(.*~|#.*#|\.#.*|\..*\.sw[a-z])$")
_VALUES_FILE = re.compile(r"(?<![\w./-])policy/(?=[a-z_]+\.yaml\b)")
NAME = re.compile(r"^[a-z0-9][a-z0-9_.-]*$")


@dataclass(frozen=True, slots=True)
class PolicySources:
    """Three folders, and `key=value` overrides on the values; nothing is read before `build`.

    `edits` are contents of files by name, which stand for those of the folders; a file of rules is one that is there.
    """

    rego: Path
    policy: Path
    recipe: Path
    values: tuple[str, ...] = ()
    edits: tuple[tuple[str, bytes], ...] = ()

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

    def with_own_files(self, text: str, *, opens: bool = True) -> str:
        """The same words; a file that they name as `policy/<name>.yaml` is named as the one to edit in its place.

        That is the file of this name in a folder of values or in `values/` of a recipe, unless both are as shipped. It
        is named by a path that `opens` from the current folder, or by the name of the folder alone.
        """
        if self.policy != bundled("policy"):
            folder, name = "policy/", f"{os.path.basename(os.path.abspath(self.policy))}/"  # noqa: PTH100, PTH119
        elif self.recipe != bundled("bundles") / "default":
            folder, name = f"bundles/{self.recipe_name}/{VALUES}/", f"{self.recipe_name}/{VALUES}/"
        else:
            return text
        return _VALUES_FILE.sub(lambda _: self._display_name(folder) if opens else name, text)

    def placed(self, found: Iterable[Problem]) -> tuple[Problem, ...]:
        """The same problems at paths that open from the current folder; words name files of recipe and values alike."""
        name = f"bundles/{self.recipe_name}/"
        display_name = self._display_name(name)
        return tuple(
            Problem(
                self.where(one.where),
                self.with_own_files(one.message.replace(name, display_name)),
                self.with_own_files(one.remedy.replace(name, display_name)),
            )
            for one in found
        )

    def _display_name(self, folder: str) -> str:
        """A folder by its name with a path that opens from the current folder; both end in `/`."""
        return self.where(Location(f"{folder}{RECIPE}")).file.removesuffix(RECIPE)

    @property
    def recipe_name(self) -> str:
        """The name of the recipe's folder, also where the path ends in `.` or `..`."""
        return os.path.basename(os.path.abspath(self.recipe))  # noqa: PTH100, PTH119


class Recipe(Model):
    """`recipe.yaml` of a recipe: what the policy bundle is for, and whom its remedies may name."""

    description: Annotated[str, Field(min_length=1, max_length=1000)]
    owner: Annotated[str, Field(min_length=1, max_length=200)]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The bytes of all sources, read once, by name. What is built is built from these bytes."""

    recipe_name: str
    rules: dict[str, bytes]  # rules with their tests, inventories and the recipe, below rego/ and bundles/<name>/
    values: dict[str, bytes]  # policy/*.yaml, and bundles/<name>/values/*.yaml laid over them
    problems: tuple[Problem, ...] = ()  # files that nothing reads

    @property
    def served(self) -> dict[str, bytes]:
        """The files of rules, without tests."""
        tests = self.tests
        return {name: data for name, data in self.rules.items() if name.endswith(".rego") and name not in tests}

    @property
    def tests(self) -> dict[str, bytes]:
        """The `*_test.rego` files."""
        return {name: data for name, data in self.rules.items() if name.endswith("_test.rego")}

    @property
    def own(self) -> bool:
        """Whether the recipe has rules or values of its own."""
        return any(name.startswith(f"bundles/{self.recipe_name}/{RULES}/") for name in self.rules) or any(
            name.startswith("bundles/") for name in self.values
        )

    def recipe(self, found: list[Problem]) -> Recipe | None:
        """The recipe as a model, or None with the reasons added to `found`."""
        name = f"bundles/{self.recipe_name}/{RECIPE}"
        remedies = {"description": "state its purpose", "owner": "name the owner"}
        return explain.validated(Recipe, explain.read(self.rules[name], name, found), found, remedies=remedies)


def files_digest(files: Mapping[str, bytes]) -> str:
    """Changes when any of these files changes; tests of rules are checked too."""
    return digest(canonical({name: digest(data) for name, data in files.items()}))


class _Stray(Problem):
    """A file that nothing reads; the others can be judged without it."""


def snapshot(sources: PolicySources) -> Snapshot:
    """Read all sources. Raises PolicyError for folders and files that are missing or unreadable."""
    found: list[Problem] = []
    name = sources.recipe_name
    if not NAME.match(name):
        found.append(
            Problem(Location(str(sources.recipe)), f"`{name}` is not a valid recipe name", "use a-z, 0-9, `-`, `_`")
        )
    try:
        if (sources.policy / RECIPE).is_file():
            remedy = "name it as the recipe: `--recipe`, or `recipe=` of `Settings`"
            raise PolicyError(
                (Problem(Location(str(sources.policy)), "this is the folder of a recipe, not of all values", remedy),)
            )
        rules = dict(_rules(sources.rego, "rego", found))
        folders = _folders(sources.recipe, f"bundles/{name}", found)
        if RULES in folders:
            rules |= _rules(sources.recipe / RULES, f"bundles/{name}/{RULES}", found)
        values = _values(sources.policy, "policy", found)
        if VALUES in folders:
            values |= _values(sources.recipe / VALUES, f"bundles/{name}/{VALUES}", found)
    except OSError as error:
        reason = reason_of(error)
        where = Location(printable(str(error.filename)))
        raise PolicyError(
            (Problem(where, f"cannot be read: {reason}", "check the path and its permissions"),)
        ) from error
    rules |= _read(sources.recipe / RECIPE, f"bundles/{name}/{RECIPE}", found)
    for prefix, folder in (("rego", sources.rego), (f"bundles/{name}", sources.recipe)):
        if os.path.lexists(folder / _INVENTORY):
            rules |= _read(folder / _INVENTORY, f"{prefix}/{_INVENTORY}", found)
    if any(not isinstance(one, _Stray) for one in found):
        raise PolicyError(sources.placed(found))
    edited = {one: data for one, data in sources.edits if one in rules}
    others = {one: data for one, data in sources.edits if one not in rules}
    return Snapshot(name, rules | edited, values | others, tuple(found))


def _folders(recipe: Path, prefix: str, found: list[Problem]) -> set[str]:
    """The folders of a recipe that are there.

    A rule or value that were passed over would refuse nothing, so all else but hidden files (of git) is a problem.
    """
    try:
        if not recipe.is_dir():
            return set()  # reported where recipe.yaml is read
        kinds = {path.name: path.lstat().st_mode for path in sorted(recipe.iterdir())}
    except OSError as error:
        found.append(_unlisted(prefix, error))
        return set()
    known = {RULES, VALUES, CASES, SCHEMAS}
    for name, kind in kinds.items():
        hidden = name.startswith(".") and not _LEFT_BY_EDITORS.match(name)
        if name in known and not stat.S_ISDIR(kind):
            found.append(Problem(Location(f"{prefix}/{name}"), "this is not a folder", f"make it a folder of {name}"))
        elif name not in {*known, RECIPE, _INVENTORY} and not hidden and not (stat.S_ISREG(kind) and name == _README):
            remedy = f"rules are `{RULES}/<point>/<topic>.rego`, values `{VALUES}/<name>.yaml`; "
            remedy += f"beside them may be {CASES}/, {SCHEMAS}/ and {_README}; remove anything else"
            found.append(_Stray(Location(f"{prefix}/{name}"), "this would be ignored", remedy))
    return {name for name, kind in kinds.items() if stat.S_ISDIR(kind)} & known


def _rules(folder: Path, prefix: str, found: list[Problem]) -> dict[str, bytes]:
    rules: dict[str, bytes] = {}
    names = sorted(_walk(folder, prefix, found))
    if len(names) > _MOST_FILES:
        found.append(
            Problem(Location(str(folder)), f"there are more than {_MOST_FILES} files of rules", "split the policy")
        )
        return rules
    for name, path in names:
        rules |= _read(path, name, found)
    return rules


def _walk(folder: Path, prefix: str, found: list[Problem]) -> Iterator[tuple[str, str]]:
    """Name and path of every `*.rego` below a folder; what may hide rules from the walk is added to `found`."""
    root = str(folder)

    def unlisted(error: OSError) -> None:
        path = error.filename or root
        if path == root and isinstance(error, (FileNotFoundError, NotADirectoryError)):
            remedy = "name the folder that holds `admission/`"
            found.append(Problem(Location(root), "the folder of rules does not exist", remedy))
        else:
            found.append(_unlisted(f"{prefix}{path[len(root) :]}", error))

    for parent, folders, files in os.walk(root, onerror=unlisted):
        within = f"{prefix}{parent[len(root) :]}"
        for entry in (*folders, *files):
            name, path = f"{within}/{entry}", f"{parent}/{entry}"
            if entry.endswith(".rego") and not _LEFT_BY_EDITORS.match(entry):
                yield name, path
            elif name != f"{prefix}/{_INVENTORY}" and (problem := _unread(path, name)) is not None:
                found.append(problem)


def _unread(path: str, name: str) -> Problem | None:
    """The problem of an entry without rules; none for a folder or a README."""
    try:
        kind = os.lstat(path).st_mode
    except OSError as error:
        return _unlisted(name, error)
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
        remedy = "put the rules here: links are not followed"
        return Problem(Location(name), "this is neither a file nor a folder", remedy)
    if stat.S_ISDIR(kind) or name.endswith(f"/{_README}"):
        return None
    return _not_read(name, "end the name of rules with `.rego` in lower case, or remove the file")


def _not_read(name: str, remedy: str) -> Problem:
    """The problem of a file that nothing reads, although its author may rely on it."""
    if _LEFT_BY_EDITORS.match(name.rpartition("/")[2]):
        return _Stray(
            Location(name), "this is a temporary file of an editor", "save and close it in the editor, or remove it"
        )
    return _Stray(Location(name), "this file would be ignored", f"{remedy}; besides rules, only {_README} is allowed")


def _unlisted(name: str, error: OSError) -> Problem:
    reason = reason_of(error)
    return Problem(Location(name), f"the folder cannot be listed: {reason}", "check the path and its permissions")


def _values(folder: Path, prefix: str, found: list[Problem]) -> dict[str, bytes]:
    values: dict[str, bytes] = {}
    if not folder.is_dir():
        found.append(
            Problem(
                Location(str(folder)),
                "the folder of values does not exist",
                "name the folder that contains levels.yaml",
            )
        )
        return values
    for path in sorted(folder.iterdir()):
        name = f"{prefix}/{path.name}"
        if path.suffix == ".yaml" and not _LEFT_BY_EDITORS.match(path.name):
            values |= _read(path, name, found, ReadLimits().document_bytes)
        elif path.name != _README:
            found.append(_not_read(name, f"values are `{prefix}/<name>.yaml`"))
    return values


def _read(path: Path | str, name: str, found: list[Problem], limit: int = _RULE_BYTES) -> dict[str, bytes]:
    """The bytes of one file under its name; none, with a problem, when it cannot be read."""
    try:
        return {name: read_bytes(path, limit, name)}
    except GatherError as error:
        found.append(Problem(Location(name), error.message, error.remedy))
        return {}
