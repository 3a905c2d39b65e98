"""A path has one absolute form or none, and links on the way are seen without being followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.facts.paths import Lead, canonical_folder, collapsed, lead, looks_like_path, path_facts


# covers: B07
@pytest.mark.parametrize(
    ("text", "path", "below"),
    [
        ("notes.txt", "/work/notes.txt", "notes.txt"),
        ("docs/notes.txt", "/work/docs/notes.txt", "docs/notes.txt"),
        ("/work/notes.txt", "/work/notes.txt", "notes.txt"),
        ("/work/docs/", "/work/docs/", "docs/"),
        ("/work/", "/work/", ""),
        ("/work", "/work", None),
        ("/workshop/x", "/workshop/x", None),
        ("/WORK/x", "/WORK/x", None),
        ("/etc/passwd", "/etc/passwd", None),
        ("/", "/", None),
        ("a b", "/work/a b", "a b"),
        ("a%20b", "/work/a%20b", "a%20b"),
        ("café", "/work/café", "café"),
        ("...", "/work/...", "..."),
        ("/" + "a/" * 2_047, "/" + "a/" * 2_047, None),
    ],
)
def test_a_canonical_path_is_resolved(text: str, path: str, below: str | None) -> None:
    facts = path_facts(text, "/work")
    assert (facts.canonical, facts.path, facts.below) == (True, path, below)


@pytest.mark.parametrize(
    "text",
    ["", " ", " a", "a ", ".", "..", "../x", "a/../b", "a/..", "./a", "a/./b", "a//b", "//a", "/a//", "a\\b", "..\\x",
     "a\0", "a\n", "a\tb", "a\x7f", "%2e%2e/x", "a%2fb", "a%2Fb", "a%5cb", "%252e%252e", "a%00", "~", "~/x", "~root",
     "C:\\x", "C:x", "c:/x", "cafe\u0301", "a\u200bb", "a\u202eb", "\ufeffa", "a\u00a0b", "a\uff0fb", "\U000e0041",
     "a\ud800", "x" * 256, "é" * 128, "/" + "a/" * 2_048],
)  # fmt: skip
def test_an_ambiguous_path_is_not_canonical(text: str) -> None:
    facts = path_facts(text, "/work")
    assert (facts.canonical, facts.path, facts.below) == (False, None, None)


def test_a_relative_path_without_a_folder_is_not_canonical() -> None:
    assert not path_facts("notes.txt", None).canonical
    assert path_facts("/notes.txt", None).path == "/notes.txt"
    assert path_facts("notes.txt", "/").path == "/notes.txt"


@pytest.mark.parametrize("text", ["", "work", "/work/", "/work/..", "//", "/w\0", "~"])
def test_a_folder_is_absolute_and_canonical(text: str) -> None:
    with pytest.raises(ValueError, match="absolute"):
        canonical_folder(text)


@pytest.mark.parametrize("text", ["/", "/work", "/work/a b"])
def test_a_folder(text: str) -> None:
    assert canonical_folder(text) == text


@pytest.mark.parametrize(
    "text",
    ["/etc/passwd", " /etc", "~/x", "~", "../x", "a/../b", "a\\..\\b", "..", "see ../x", "./x", "C:\\x",
     "\\\\server\\x", "..%2f..%2fetc", "%2Fetc", "a%5cb", "%2e%2e", "%252fetc",
     "/9j/../etc", "/9j/x.txt", "/9j/x y"],
)  # fmt: skip
def test_it_looks_like_a_path(text: str) -> None:
    assert looks_like_path(text)


@pytest.mark.parametrize(
    "text", ["", "notes.txt", "a/b", "text/html", "~5 minutes", "a..b", "wait...", "50%", "a.b", "/9j/4AAQSkZJ+/Q=="]
)
def test_it_does_not_look_like_a_path(text: str) -> None:
    assert not looks_like_path(text)


def test_links_are_seen_and_not_followed(tmp_path: Path) -> None:
    real = Path(os.path.realpath(tmp_path))
    (real / "folder").mkdir()
    (real / "folder" / "file").write_text("x", encoding="utf-8")
    (real / "to_folder").symlink_to("folder")
    (real / "to_nothing").symlink_to("/nowhere/at/all")
    (real / "folder" / "to_file").symlink_to("file")
    (real / "loop").symlink_to("loop")
    assert lead(f"{real}/folder/file").links == "none"
    assert lead(f"{real}/folder/").links == "none"
    assert lead(f"{real}/missing/../../x").links == "none"
    assert lead(f"{real}/folder/file/below").links == "none"
    for name in ("to_folder", "to_folder/file", "to_nothing", "to_nothing/x", "folder/to_file", "loop/x"):
        assert lead(f"{real}/{name}").links == "linked", name


def test_only_links_that_root_alone_can_change_are_kept(tmp_path: Path) -> None:
    assert lead("/etc/os-release") in {Lead("linked", "/usr/lib/os-release", kept=True), Lead("none")}
    (tmp_path / "link").symlink_to("/usr/lib/os-release")
    for other in (f"{os.path.realpath(tmp_path)}/link", "/proc/self/environ", "/dev/fd/0", "/proc/mounts"):
        assert lead(other).links == "linked"
        assert not lead(other).kept, other


@pytest.mark.parametrize(
    ("path", "target", "end"),
    [
        ("link", "/etc", "/etc"),
        ("link/a/b", "/etc", "/etc/a/b"),
        ("folder/link/a", "../x", "{here}/x/a"),
        ("folder/link", "./x//y/.", "{here}/folder/x/y"),
        ("link", "../" * 99 + "etc", "/etc"),
        ("link", "x/../y", None),
        ("link", "/x/../y", None),
    ],
)
def test_the_first_link_is_replaced_by_its_text(tmp_path: Path, path: str, target: str, end: str | None) -> None:
    real = Path(os.path.realpath(tmp_path))
    (real / "folder").mkdir()
    (real / path.partition("link")[0] / "link").symlink_to(target)
    assert lead(f"{real}/{path}").path == (None if end is None else end.replace("{here}", str(real)))


@pytest.mark.parametrize("text", ["a//b", "a/./b", "./a/b", "a/b/.", "a/././/b", "./a//b/."])
def test_redundant_path_segments_are_removed(text: str) -> None:
    assert collapsed(text) == "a/b"


def test_a_path_that_cannot_be_inspected_has_unknown_links() -> None:
    assert lead("/" + "x" * 300).links == "unknown"
    assert lead("/a\0").links == "unknown"


@given(st.text(max_size=40) | st.text(alphabet="./\\~%2eaé\u0301\u200b\n:", max_size=40))
def test_a_canonical_path_is_normalized_and_stays_below_its_folder(text: str) -> None:
    facts = path_facts(text, "/work")
    assert facts.canonical is (facts.path is not None)
    if facts.path is not None:
        assert os.path.normpath(facts.path) == (facts.path.rstrip("/") or "/")
        assert text.startswith("/") or facts.path.startswith("/work/")
    looks_like_path(text)
