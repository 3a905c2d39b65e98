"""The arguments of bubblewrap: each protection is there by itself, and bounds that bound nothing start nothing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from admission_adapters.sandbox.bubblewrap import arguments
from admission_adapters.sandbox.bubblewrap.arguments import NAMESPACES, PROTECTIONS
from admission_adapters.sandbox.model import Bounds
from engine.errors import WorkError
from tests.adapters.sandbox.programs import BOUNDS, ENVIRONMENT, bounds

TEMPORARY = "/tmp"  # noqa: S108  (the sandbox's own)
DESCRIPTORS = {"seccomp": 71, "status": 72}


def words(*without: str, job: Path | None = None, within: Bounds = BOUNDS) -> list[str]:
    told = arguments.arguments(within, ENVIRONMENT, DESCRIPTORS, frozenset(without), job)
    return told.decode().split("\0")[:-1]


def changed(*without: str, job: Path | None = None) -> tuple[str, str]:
    """The words that go and those that come when something is left out, in order."""
    before, after = words(), words(*without, job=job)
    gone, come = Counter(before) - Counter(after), Counter(after) - Counter(before)
    return (
        " ".join(one for one in before if one in gone),
        " ".join(one for one in after if one in come),
    )


OUTSIDE = {*PROTECTIONS[PROTECTIONS.index("rlimit_as") :]} - {"kill_tree"}
"""Enforced by the launcher or the engine, not by arguments of bubblewrap."""

LEFT_OUT = {
    **{f"unshare_{one}": (f"--unshare-{one}", "") for one in ("ipc", "pid", "net", "cgroup")},
    "unshare_uts": ("--unshare-uts --hostname sandbox", ""),
    "unshare_user": (
        "--unshare-user --disable-userns --assert-userns-disabled --uid 65534 --gid 65534",
        "",
    ),
    "disable_userns": ("--disable-userns --assert-userns-disabled", ""),
    "cap_drop": ("--cap-drop", "--cap-add"),
    "kill_tree": ("--die-with-parent", ""),
    "new_session": ("--new-session", ""),
    "clearenv": ("--clearenv", ""),
    "seccomp": ("--seccomp 71", ""),
    **dict.fromkeys(OUTSIDE, ("", "")),
}


@pytest.mark.parametrize("name", sorted(LEFT_OUT))
def test_omitting_a_protection_removes_only_its_own_arguments(name: str) -> None:
    assert changed(name) == LEFT_OUT[name]


def _follow(told: list[str], *expected: str) -> bool:
    return any(tuple(told[at : at + len(expected)]) == expected for at in range(len(told)))


@pytest.mark.parametrize(
    ("name", "with_it", "without_it"),
    [
        ("ro_usr", ("--ro-bind", "/usr", "/usr"), ("--bind", "/usr", "/usr")),
        ("dev", ("--dev-bind", "/dev/null", "/dev/null"), ("--dev-bind", "/dev", "/dev")),
        ("private_tmp", ("--symlink", "work/tmp", TEMPORARY), ("--bind", TEMPORARY, TEMPORARY)),
        ("remount_root", ("--chdir", "/work", "--remount-ro", "/", "--seccomp"), ("--chdir", "/work", "--seccomp")),
    ],
)
def test_each_file_protection_has_its_own_mount_arguments(
    name: str, with_it: tuple[str, ...], without_it: tuple[str, ...]
) -> None:
    whole, less = words(), words(name)
    assert (_follow(whole, *with_it), _follow(whole, *without_it)) == (True, False)
    assert (_follow(less, *with_it), _follow(less, *without_it)) == (False, True)


def test_a_host_folder_is_mounted_only_for_the_probe(tmp_path: Path) -> None:
    bound = ("--bind", str(tmp_path), "/work")
    assert not _follow(words(), "--bind")
    assert _follow(words("private_job", job=tmp_path), *bound)


def test_the_tests_cover_every_protection_and_namespace() -> None:
    assert {*LEFT_OUT, "ro_usr", "dev", "private_tmp", "private_job", "remount_root"} == set(PROTECTIONS)
    assert {f"--unshare-{one}" for one in NAMESPACES} <= set(words())


COUNTS = (
    *("wall_seconds", "cpu_seconds", "memory_bytes", "processes", "open_files", "file_bytes", "disk_bytes"),
    *("stdout_bytes", "stderr_bytes"),
)
MOST = (1 << 60) - 1


@pytest.mark.parametrize("name", COUNTS)
def test_a_limit_must_be_positive_and_within_the_kernel_maximum(name: str) -> None:
    for number in (1, MOST):
        assert words(within=bounds(**{name: number}))
    for number in (0, -1, MOST + 1):
        with pytest.raises(WorkError, match=f"a limit is not valid: `{name}`"):
            words(within=bounds(**{name: number}))


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({"artifact_files": 0, "artifact_bytes": 0, "open_files": 1}, []),
        ({"artifact_files": 0, "artifact_bytes": 1, "open_files": 19}, []),
        ({"artifact_files": 1, "artifact_bytes": 0, "open_files": 20}, []),
        ({"artifact_files": 1, "artifact_bytes": 1, "open_files": 19}, ["engine.limit_unenforceable"]),
        ({"artifact_files": -1, "artifact_bytes": 1, "open_files": 64}, ["engine.limit_unenforceable"]),
        ({"artifact_files": 1, "artifact_bytes": -1, "open_files": 64}, ["engine.limit_unenforceable"]),
    ],
)
def test_artifacts_need_a_sufficient_open_files_limit(fields: dict[str, int], refused: list[str]) -> None:
    codes = []
    try:
        words(within=bounds(**fields))
    except WorkError as error:
        codes.append(error.code)
    assert codes == refused


@pytest.mark.parametrize(
    "wrong", [{"": "x"}, {"A=B": "x"}, {"A\0": "x"}, {"A": "\0"}, {"\ud800": "x"}, {"A": "\ud800"}]
)
def test_an_environment_that_no_process_can_have_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(WorkError, match="an invalid name or value"):
        arguments.variables({"GOOD": "1", **wrong})
    assert arguments.variables({"A": "b=c"})["A"] == "b=c"
