"""What is added is read in full or refused: no rule is passed over, and no file leaves its package."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from engine.policy_bundle import added
from tests.policy_bundle.trees import REQUIREMENTS, RULES, Files, problems, requirement, served, source, topic, write

DENY = "package main\n\ndeny contains 1 if input.bundle.closed == true\n"
RECIPE = "bundles/house"
WORDS = "package admission.lib.words\n\nimport future.keywords.not\n\nfree(name) if name == `MIT`\n"
USES_WORDS = topic(requirement(body="words.free(record.license)"), imports="import data.admission.lib.words\n")
WIDENING = """package admission

lib.words.free(_) if true

added.source.house._findings contains y if some y in []

deny contains msg if {
	lib.words.free(input.never)
	count(added.source.house._findings) > 0
	msg := `
package zzz
`
}
"""


def refused(folder: Path, changes: Files | None = None) -> set[tuple[str, str]]:
    """Where, below the folder, the build of these files finds which problem."""
    return {(one.where.file.removeprefix(f"{folder}/"), one.message) for one in problems(folder, changes)}


def widening(text: str) -> Files:
    """An added file beside the library that it would redefine."""
    return {
        "rego/admission/lib/words.rego": WORDS,
        f"{REQUIREMENTS}/license.rego": USES_WORDS,
        f"{RULES}/house.rego": text.encode(),
    }


@pytest.mark.parametrize(
    "text",
    [
        WIDENING,
        WIDENING.replace("\n", "\r\n").replace("`\r\npackage zzz\r\n`", "`\npackage zzz\n`"),
        WIDENING.replace("\n", "\r\n"),
        WIDENING.replace("package admission\n", "# Ours\n\npackage admission # ours\n"),
    ],
    ids=["plain", "crlf_but_raw", "crlf", "comments"],
)
def test_no_added_file_leaves_its_package(text: str, tmp_path: Path) -> None:
    policy = served(tmp_path, widening(text))
    assert policy.ask(source([{"id": "one", "license": "GPL-2.0-only"}]))["outcome"] == "deny"
    own = (policy.folder / "admission/added/source/house.rego").read_text(encoding="utf-8")
    assert own.lstrip().splitlines()[0] == "package admission.added.source.house"
    assert "package zzz" in own


@pytest.mark.parametrize(
    "head",
    ['package admission["lib" ]\n', "package\nadmission\n"],
    ids=["brackets", "two_lines"],
)
def test_a_package_that_cannot_be_moved(head: str, tmp_path: Path) -> None:
    text = WIDENING.replace("package admission\n", head)
    assert (f"{RULES}/house.rego", "the package cannot be renamed for the bundle") in refused(tmp_path, widening(text))


def test_windows_line_ends_are_read(tmp_path: Path) -> None:
    policy = served(tmp_path, {f"{RULES}/house.rego": DENY.replace("\n", "\r\n")})
    assert policy.ask(source(closed=True))["outcome"] == "deny"
    assert policy.ask(source())["outcome"] == "allow"


@pytest.mark.parametrize("pattern", [r"zzz", r"^package zzz$"])
def test_the_served_text_is_parsed_again_and_checked(
    pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard behind the guard: whatever is replaced, the served file is parsed again."""
    monkeypatch.setattr(added, "_PACKAGE_LINE", re.compile(f"({pattern})", re.MULTILINE))
    text = "package other\n\ndeny contains `\npackage zzz\n` if input.bundle.closed == true\n"
    assert (f"{RULES}/house.rego", "the package cannot be renamed for the bundle") in refused(
        tmp_path, {f"{RULES}/house.rego": text}
    )


def test_a_served_text_that_does_not_parse_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(added, "_PACKAGE_LINE", re.compile(r"()main$", re.MULTILINE))
    found = refused(tmp_path, {f"{RULES}/house.rego": DENY})
    assert any(file == f"{RULES}/house.rego" and "does not parse" in message for file, message in found)


@pytest.mark.parametrize(
    "name",
    ["rule/source/house.rego", "Rules/source/house.rego", "house.rego", "rules.rego", "recipe.yml", "levels.yaml"],
)
def test_an_unread_file_in_a_recipe_is_refused(name: str, tmp_path: Path) -> None:
    first = name.partition("/")[0]
    assert (f"{RECIPE}/{first}", "this would be ignored") in refused(tmp_path, {f"{RECIPE}/{name}": DENY})


@pytest.mark.parametrize("target", ["elsewhere", "nowhere"])
@pytest.mark.parametrize("link", [RULES, f"{REQUIREMENTS}/more", "rego/admission/lib"])
def test_linked_folders_are_refused(link: str, target: str, tmp_path: Path) -> None:
    write(tmp_path, {"elsewhere/house.rego": DENY})
    (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / link).symlink_to(tmp_path / target)
    assert (link, "this is neither a file nor a folder") in refused(tmp_path)


@pytest.mark.parametrize("kind", ["link", "dangling", "file"])
def test_rules_that_are_not_a_folder_are_refused(kind: str, tmp_path: Path) -> None:
    write(tmp_path, {"elsewhere/source/house.rego": DENY})
    rules = tmp_path / RECIPE / "rules"
    if kind == "file":
        rules.write_text(DENY, encoding="utf-8")
    else:
        rules.symlink_to(tmp_path / ("elsewhere" if kind == "link" else "nowhere"))
    assert (f"{RECIPE}/rules", "this is not a folder") in refused(tmp_path)


@pytest.mark.parametrize("closed", [RULES, f"{RECIPE}/rules", REQUIREMENTS, "rego/admission", "rego", RECIPE])
def test_a_folder_that_may_not_be_listed(closed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused by the operating system; permissions themselves would not bite for root."""
    write(tmp_path, {f"{RULES}/house.rego": DENY})

    def guarded(real: Any) -> Any:
        def listed(path: Any) -> Any:
            if Path(path) == tmp_path / closed:
                raise PermissionError(13, "Permission denied", str(path))
            return real(path)

        return listed

    monkeypatch.setattr(os, "scandir", guarded(os.scandir))
    monkeypatch.setattr(os, "listdir", guarded(os.listdir))
    assert (closed, "the folder cannot be listed: permission denied") in refused(tmp_path)
