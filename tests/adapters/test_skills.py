"""Reading skill files: exactly the file that was decided on, never more of it, and never an exception."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from admission_adapters.files import skills
from admission_adapters.files.skills import SkillFile, read_skill_file, read_skill_file_async
from engine.engine import AsyncEngine, Engine
from engine.flow import Context
from engine.model import Caller, Job, Limits, Permit, Via
from engine.settings import Settings
from tests.adapters.permits import DIGEST, misused, sealed
from tests.command import lines
from tests.conftest import lowered
from tests.expect import there
from tests.processes import leaks

LOADED = frozenset({"skill_file"})
"""The points of these tests: their rules alone are loaded in a third of the time."""

TEXT = "Grüße from the canary\n"


@pytest.fixture(scope="module")
def engine(module_settings: Settings) -> Iterator[Engine]:
    with Engine(module_settings, values=("skills.max_bytes=100",), points=LOADED) as running:
        yield running


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    """A skill with one file, and a secret outside."""
    (tmp_path / "skill/scripts").mkdir(parents=True)
    (tmp_path / "skill/scripts/run.sh").write_text(TEXT, encoding="utf-8")
    (tmp_path / "secret").write_text("outside canary", encoding="utf-8")
    return tmp_path / "skill"


def read(engine: Any, skill: Path, path: str = "scripts/run.sh") -> SkillFile:
    return read_skill_file(engine, str(skill), path)


class Meddling:
    """An engine between whose decision and whose work something happens to the disk."""

    def __init__(self, engine: Engine, meddle: Callable[[], object]) -> None:
        self._engine, self._meddle = engine, meddle

    def decide(self, point: str, request: Any, executor: Any) -> Any:
        def late(permit: Permit, job: Any) -> Any:
            self._meddle()
            return executor(permit, job)

        return self._engine.decide(point, request, late)


# covers: B34
def test_a_file_is_read_and_the_record_has_its_digest_and_no_content(engine: Engine, skill: Path) -> None:
    got = read(engine, skill)
    assert (got.error, got.text, got.codes) == (False, TEXT, ())
    records, data = lines(engine.settings.state), TEXT.encode()
    facts = [line.get("facts") for line in records if line.get("decision_id") == got.decision_id]
    assert facts == [None, {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}]
    assert "canary" not in str(records)


def put_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def put_second_name(file: Path) -> None:
    file.unlink()
    file.hardlink_to(file.parents[2] / "secret")


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda file: file.unlink(), "file_missing"),
        (put_pipe, "not_a_file"),
        (lambda file: (file.unlink(), file.symlink_to("/dev/zero")), "symlink_escape"),
        (lambda file: (file.unlink(), file.symlink_to("../../secret")), "symlink_escape"),
        (put_second_name, "hard_link_not_admitted"),
        (lambda file: file.write_bytes(b"x" * 101), "file_too_large"),
        (lambda file: file.write_bytes(b"\xff\xfe"), "engine.skill_file_not_text"),
        (lambda file: file.write_bytes(b"cut \xc3"), "engine.skill_file_not_text"),
        (lambda file: file.write_bytes(b"\xed\xa0\x80"), "engine.skill_file_not_text"),
    ],
    ids=["missing", "pipe", "device", "link", "hard_link", "large", "not_utf8", "cut_character", "surrogate"],
)
def test_a_file_that_may_not_be_read_is_an_error_result(
    engine: Engine, skill: Path, make: Callable[[Path], object], code: str
) -> None:
    make(skill / "scripts/run.sh")
    got = read(engine, skill)
    assert (got.error, got.codes) == (True, (code,))
    assert code in got.text
    assert "canary" not in got.text


# covers: B33
@pytest.mark.parametrize("swap", ["link", "other file", "folder"])
def test_a_file_replaced_after_the_decision_is_not_read(engine: Engine, skill: Path, swap: str) -> None:
    """Whatever is put in the place of the file between decision and reading is not looked at."""
    file = skill / "scripts/run.sh"

    def meddle() -> None:
        if swap == "folder":
            (skill / "scripts").rename(skill / "gone")
            (skill / "scripts").symlink_to("..")
            (skill.parent / "run.sh").write_text("outside canary")
            return
        file.unlink()
        if swap == "link":
            file.symlink_to("../../secret")
        else:
            file.write_text("other")

    got = read(Meddling(engine, meddle), skill)
    assert (got.error, got.text) == (False, TEXT)
    assert file.read_text() != TEXT  # the control: a second look would find something else


# covers: B35.1
def test_a_file_that_grows_beyond_the_limit_is_not_read(engine: Engine, skill: Path) -> None:
    file = skill / "scripts/run.sh"

    def grow(to: int) -> Callable[[], object]:
        return lambda: file.write_bytes(b"x" * to)

    got = read(Meddling(engine, grow(101)), skill)
    assert (got.error, got.codes) == (True, ("engine.skill_file_changed",))
    file.write_bytes(b"x")
    got = read(Meddling(engine, grow(100)), skill)
    assert (got.error, len(got.text)) == (False, 100)


def test_an_endless_file_costs_no_more_than_the_limit(engine: Engine, skill: Path) -> None:
    got = read(Meddling(engine, lambda: os.truncate(skill / "scripts/run.sh", 1 << 40)), skill)
    assert got.codes == ("engine.skill_file_changed",)


class Raising:
    """An engine that fails in a way nobody thought of."""

    def decide(self, *_: object) -> Any:
        raise RecursionError("canary of /home/user")


# covers: B36.1
def test_an_unexpected_exception_is_an_error_result_and_the_process_goes_on(
    engine: Engine, skill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read(Raising(), skill) == SkillFile(
        error=True, text="engine.internal: reading failed with RecursionError", codes=("engine.internal",)
    )

    def broken(*_: object) -> bytes:
        raise MemoryError("canary")

    with monkeypatch.context() as patched:
        patched.setattr(skills, "_at_most", broken)
        got = read(engine, skill)
    assert (got.error, got.codes) == (True, ("engine.work_failed",))
    assert "canary" not in got.text
    assert read(engine, skill).text == TEXT


# covers: B36.1
def test_everything_wrong_with_the_request_or_the_engine_is_an_error_result(
    engine: Engine, skill: Path, settings: Settings
) -> None:
    for folder, path in ((skill / "none", "scripts/run.sh"), (skill, "scripts/" + "a" * 5_000), (skill, "a\ud800")):
        got = read(engine, folder, path)
        assert got.error
        assert got.codes[0].startswith("engine.") or got.codes == ("path_not_allowed",)
    assert read(engine, skill, None).codes == ("engine.request_invalid",)  # type: ignore[arg-type]
    assert read(Engine(settings, points=LOADED), skill).codes == ("engine.internal",)  # not open
    with Engine(replace(settings, policy=skill), points=LOADED) as broken:
        assert read(broken, skill).codes == ("engine.policy_invalid",)


def test_a_warning_is_not_reported_as_a_reason(settings: Settings, skill: Path) -> None:
    os.link(skill / "scripts/run.sh", skill / "second")
    warned = f"levels.levels.skill_file={{hard_link_not_admitted: {lowered('warn')}}}"
    with Engine(settings, values=(warned, "skills.max_bytes=100"), points=LOADED) as engine:
        assert read(engine, skill).text == TEXT
        (skill / "second").write_bytes(b"x" * 101)
        got = read(engine, skill)
    assert (got.error, got.codes) == (True, ("file_too_large",))
    assert "hard_link" not in got.text


def test_a_finding_at_level_confirm_requires_an_approval(settings: Settings, skill: Path) -> None:
    os.link(skill / "scripts/run.sh", skill / "second")
    asking = f"levels.levels.skill_file={{hard_link_not_admitted: {lowered('confirm')}}}"
    agent = Context(caller=Caller(via=Via.PROCESS, principal="agent-7"))
    with Engine(settings, values=(asking,), points=LOADED) as engine:
        waiting = read_skill_file(engine, str(skill), "scripts/run.sh", agent)
        assert (waiting.error, waiting.codes) == (True, ("hard_link_not_admitted",))
        approval = there(waiting.approval)
        engine.store().resolve(approval, "granted", "operator", "read it", engine.now())
        granted = replace(agent, approval=approval)
        assert read_skill_file(engine, str(skill), "scripts/run.sh", granted).text == TEXT
        again = read_skill_file(engine, str(skill), "scripts/run.sh", granted)
        assert again.error


def test_skill_files_can_be_read_from_an_event_loop(settings: Settings, skill: Path) -> None:
    async def ask() -> tuple[SkillFile, SkillFile, SkillFile]:
        async with AsyncEngine(settings, points=LOADED) as engine:
            good = await read_skill_file_async(engine, str(skill), "scripts/run.sh")
            bad = await read_skill_file_async(engine, str(skill), "../secret", Context())
        return (
            good,
            bad,
            await read_skill_file_async(AsyncEngine(settings, points=LOADED), str(skill), "scripts/run.sh"),
        )

    good, bad, closed = asyncio.run(ask())
    assert good.text == TEXT
    assert (bad.error, bad.codes) == (True, ("path_not_allowed",))
    assert closed.codes == ("engine.internal",)


def test_the_permit_is_demanded_for_this_point_and_input(skill: Path) -> None:
    class Answering:
        """Runs the executor with whatever permit it was given."""

        def __init__(self, permit: Permit) -> None:
            self._permit = permit

        def decide(self, _point: str, _request: Any, executor: Any) -> Any:
            return executor(self._permit, Job(DIGEST, None))

    own = sealed("skill_file", Limits())
    for wrong in misused(own).values():
        assert read(Answering(wrong), skill).codes == ("engine.permit_missing",)
    assert read(Answering(own), skill).codes == ("engine.limit_unenforceable",)


def test_no_descriptor_stays_open(engine: Engine, skill: Path) -> None:
    for path in ("scripts/run.sh", "scripts/none", "../x", "scripts"):
        assert not leaks(partial(read, engine, skill, path))
