"""Walking below a folder: nothing outside is opened, nothing blocks, and what was found is what is read."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from engine.errors import GatherError
from engine.facts.archives import walking
from engine.facts.archives.walking import Folder, Target, find, open_folder
from tests.expect import there
from tests.processes import leaks


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A skill with one file in `scripts`, and a secret beside it."""
    for folder in ("skill/scripts", "skill/assets", "outside"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "skill/scripts/run.sh").write_text("hello")
    (tmp_path / "skill/assets/a").write_text("a")
    (tmp_path / "outside/secret").write_text("secret")
    return tmp_path


@pytest.fixture
def skill(world: Path) -> Iterator[Folder]:
    with closing(open_folder(str(world / "skill"), None)) as folder:
        yield folder


def look(folder: Folder, path: str) -> Target:
    """What is there, closed."""
    found = find(folder, path)
    if found.file is not None:
        found.file.close()
    return found


def test_a_file_is_open_and_measured(skill: Folder) -> None:
    found = find(skill, "scripts/run.sh")
    with there(found.file) as file:
        assert file.read(10) == b"hello"
    assert (found.kind, found.real, found.bytes, found.names) == ("file", "scripts/run.sh", 5, 1)
    assert (found.linked, found.escapes) == (False, False)


# covers: B33
@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("../../outside/secret", "scripts/link"),
        ("{world}/outside/secret", "scripts/link"),
        ("/dev/zero", "scripts/link"),
        ("/", "scripts/link/etc/passwd"),
        ("../..", "scripts/link/outside/secret"),
        ("../../outside", "scripts/link/secret"),
        ("../../skill/assets/a", "scripts/link"),
        ("{world}/skill/../outside/secret", "scripts/link"),
        ("{world}/skillful/secret", "scripts/link"),
        ("../assets/../../outside/secret", "scripts/link"),
        ("/proc/self/root/etc/passwd", "scripts/link"),
        ("/proc/self/fd/0", "scripts/link"),
    ],
)
def test_a_link_that_leads_out_is_not_followed(world: Path, skill: Folder, target: str, path: str) -> None:
    (world / "skillful").symlink_to(world / "outside")
    (world / "skill/scripts/link").symlink_to(target.format(world=world))
    assert find(skill, path) == Target(linked=True, escapes=True)


# covers: B33
def test_a_chain_of_links_that_ends_outside_escapes(world: Path, skill: Folder) -> None:
    (world / "skill/scripts/first").symlink_to("second")
    (world / "skill/scripts/second").symlink_to("../assets/third")
    (world / "skill/assets/third").symlink_to("../../outside/secret")
    assert find(skill, "scripts/first").escapes
    assert (world / "skill/scripts/first").read_text() == "secret"  # the control: a plain open gets out


@pytest.mark.parametrize(
    ("target", "real"),
    [
        ("../assets/a", "assets/a"),
        ("../scripts/../assets/./a", "assets/a"),
        ("{world}/skill/assets/a", "assets/a"),
        ("run.sh", "scripts/run.sh"),
    ],
)
def test_a_link_inside_leads_to_the_real_file(world: Path, skill: Folder, target: str, real: str) -> None:
    (world / "skill/scripts/link").symlink_to(target.format(world=world))
    found = look(skill, "scripts/link")
    assert (found.linked, found.escapes, found.kind, found.real) == (True, False, "file", real)


@pytest.mark.parametrize(
    ("path", "kind"),
    [("scripts/pipe", "fifo"), ("scripts/socket", "socket"), ("scripts/folder", "folder"), ("scripts", "folder")],
)
def test_a_pipe_socket_or_folder_is_reported_and_not_opened(
    world: Path, skill: Folder, path: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(world / "skill/scripts/pipe")
    (world / "skill/scripts/folder").mkdir()
    monkeypatch.chdir(world / "skill/scripts")  # a socket's path has 107 bytes
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        found = find(skill, path)
    assert (found.kind, found.file) == (kind, None)


def test_a_device_is_reported_and_not_opened() -> None:
    with closing(open_folder("/dev", None)) as folder:
        found = find(folder, "null")
    assert (found.kind, found.file) == ("device", None)


@pytest.mark.parametrize("path", ["scripts/none", "none/none", "scripts/run.sh/x", "scripts/" + "a" * 300])
def test_a_missing_path_has_no_kind(skill: Folder, path: str) -> None:
    assert find(skill, path) == Target(linked=False)


def test_a_loop_of_links_has_no_kind(world: Path, skill: Folder) -> None:
    (world / "skill/scripts/a").symlink_to("b")
    (world / "skill/scripts/b").symlink_to("a")
    assert find(skill, "scripts/a") == Target(linked=True)


def test_a_hard_link_is_visible_in_the_link_count(world: Path, skill: Folder) -> None:
    os.link(world / "outside/secret", world / "skill/scripts/copy")
    assert look(skill, "scripts/copy").names == 2


@pytest.mark.parametrize("swap", ["link", "pipe", "other file", "nothing"])
def test_a_file_that_changes_between_looking_and_opening_is_missing(
    world: Path, skill: Folder, swap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_read, file = walking._read, world / "skill/scripts/run.sh"

    def late(*arguments: object) -> Target:
        file.unlink()
        if swap == "link":
            file.symlink_to(world / "outside/secret")
        elif swap == "pipe":
            os.mkfifo(file)
        elif swap == "other file":
            file.write_text("other")
        return real_read(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(walking, "_read", late)
    (world / "kept").hardlink_to(file)  # so that the new file cannot get the same inode
    assert find(skill, "scripts/run.sh") == Target(linked=False)


def test_looking_leaks_no_descriptor(world: Path, skill: Folder) -> None:
    (world / "skill/scripts/out").symlink_to("../../outside/secret")
    (world / "skill/scripts/in").symlink_to("../assets/a")

    def look_everywhere() -> None:
        for path in ("scripts/run.sh", "scripts/out", "scripts/in", "scripts/none", "scripts", "a/b"):
            look(skill, path)
            open_folder("skill", world).close()
            with pytest.raises(GatherError):
                open_folder("skill/scripts/run.sh", world)

    assert not leaks(look_everywhere)


# Folders that requests name


def test_a_folder_below_the_root(world: Path) -> None:
    (world / "alias").symlink_to("skill")
    for name in ("skill", "alias", "skill/"):
        folder = open_folder(name, world)
        assert folder.real == str(world.resolve() / "skill")
        assert look(folder, "scripts/run.sh").kind == "file"
        folder.close()


@pytest.mark.parametrize(
    "path", ["..", "../skill", "skill/../skill", "link", "none", "file", "/", "{world}/skill", "a\0"]
)
def test_a_folder_outside_of_the_root_is_refused(world: Path, path: str) -> None:
    root = world / "skill"
    (root / "link").symlink_to("../outside")
    (root / "file").write_text("")
    with pytest.raises(GatherError, match="below the folder that this engine serves"):
        open_folder(path.format(world=world), root)


def test_a_root_that_is_not_a_folder_is_refused() -> None:
    with pytest.raises(GatherError, match="below the folder that this engine serves"):
        open_folder(".", Path(os.devnull))


def test_without_a_root_any_existing_folder_can_be_opened(world: Path) -> None:
    open_folder(str(world / "skill"), None).close()
    for path in (str(world / "none"), str(world / "outside/secret"), "a\0b"):
        with pytest.raises(GatherError):
            open_folder(path, None)


def test_an_io_error_is_not_reported_as_a_missing_file(skill: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "open", broken)
    with pytest.raises(GatherError, match="input/output error"):
        find(skill, "scripts/run.sh")
