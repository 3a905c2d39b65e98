"""An engine finds the agreed release by its digest among what lies in its folder, whatever else lies there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine.agreement.release import agreed_release, release_at_start
from engine.binaries import find_binary
from engine.errors import DecideError, EngineError, GatherError, PolicyError
from engine.opa.packed import SIGNATURES
from engine.opa.reply import VALUES
from engine.policy_bundle.last_release import LastRelease, write_last
from engine.policy_bundle.release import Release
from engine.policy_bundle.release_folder import APPROVAL, STATEMENT, Statement
from engine.settings import Settings
from engine.state.rows import ActivationRow, Agreement
from tests.policy_bundle.releases import Keys
from tests.state.samples import release


@pytest.fixture
def row(made: Path) -> ActivationRow:
    statement = Statement.model_validate_json((made / STATEMENT).read_bytes())
    return release(2, name="default", digest=statement.digest)


@pytest.fixture
def own(tmp_path: Path, cache: Path, keys: Keys) -> Settings:
    (tmp_path / "releases").mkdir()
    return Settings(state=tmp_path / "state", cache=cache, releases=tmp_path / "releases", release_key=keys.public)


def put(own: Settings, made: Path, name: str) -> Path:
    assert own.releases is not None
    return Path(shutil.copytree(made, own.releases / name))


def found(row: ActivationRow, own: Settings) -> Release:
    return agreed_release(row, own, find_binary())


def test_a_release_is_found_by_its_digest_under_any_name(own: Settings, made: Path, row: ActivationRow) -> None:
    assert own.releases is not None
    (own.releases / "a file").touch()
    (own.releases / "empty").mkdir()
    put(own, made, "zz")
    assert found(row, own).digest == row.digest
    with pytest.raises(PolicyError, match="release 3 of `house` is not here"):
        found(release(3), own)


@pytest.mark.parametrize("lacks", [SIGNATURES, APPROVAL, VALUES])
def test_an_incomplete_copy_does_not_hide_a_complete_one(
    own: Settings, made: Path, row: ActivationRow, lacks: str
) -> None:
    """As one in progress beside another, or the release as it was before it was signed."""
    copy = put(own, made, "a")
    (copy / lacks).unlink()
    with pytest.raises(PolicyError) as caught:
        found(row, own)
    assert str(caught.value.problems[0].where).startswith(str(copy))
    put(own, made, "b")
    assert found(row, own).digest == row.digest


def changed(folder: Path) -> None:
    (folder / VALUES).write_bytes((folder / VALUES).read_bytes()[:-1] + b"x")


def linked(folder: Path) -> None:
    shutil.move(folder / VALUES, folder.parent / VALUES)
    (folder / VALUES).symlink_to(folder.parent / VALUES)


def signed_by_another(folder: Path) -> None:
    text = (folder / SIGNATURES).read_text()
    (folder / SIGNATURES).write_text(text[:-20] + ("A" if text[-20] != "A" else "B") + text[-19:])


def more(folder: Path) -> None:
    (folder / "note.txt").touch()


@pytest.mark.parametrize("harm", [changed, linked, signed_by_another, more])
def test_a_release_changed_after_signing_is_refused(
    own: Settings, made: Path, row: ActivationRow, harm: Callable[[Path], None]
) -> None:
    harm(put(own, made, "a"))
    with pytest.raises(PolicyError):
        found(row, own)


def test_a_link_to_a_release_is_that_release(own: Settings, made: Path, row: ActivationRow) -> None:
    """Only what was verified is served, so it does not matter where it came from."""
    assert own.releases is not None
    (own.releases / "current").symlink_to(made)
    served = found(row, own)
    assert not served.rules.path.is_relative_to(made)


def test_a_release_older_than_the_last_served_one_is_refused(own: Settings, made: Path, row: ActivationRow) -> None:
    """As after a restore of the state from an older backup."""
    put(own, made, "a")
    write_last(own.state, LastRelease(name="default", sequence=3, digest=row.digest))
    with pytest.raises(PolicyError, match="this is a rollback: release 2 is older than 3"):
        found(row, own)


def test_a_folder_that_cannot_be_read_is_named(own: Settings, row: ActivationRow) -> None:
    assert own.releases is not None
    (own.releases / "a").mkdir()
    (own.releases / "a" / STATEMENT).symlink_to(STATEMENT)
    with pytest.raises(GatherError, match=r"cannot read `.*/a/release.json`: too many levels"):
        found(row, own)
    with pytest.raises(GatherError, match=r"cannot read `.*/gone`"):
        found(row, replace(own, releases=own.releases / "gone"))


def test_an_engine_starts_with_the_active_or_switching_release(own: Settings, made: Path, row: ActivationRow) -> None:
    """The active release, also one that was left, and in its place the one that is switched to."""
    put(own, made, "a")

    def begun(*agreed: ActivationRow | None) -> str | None:
        return release_at_start(Agreement(*agreed), own, find_binary()).digest

    assert begun(row) == begun(replace(row, left_at=1)) == row.digest
    assert begun(release(1), replace(row, state="switching")) == row.digest
    assert begun(row, release(3)) == row.digest
    with pytest.raises(DecideError, match="no release was activated"):
        begun(None, row)
    with pytest.raises(EngineError, match="only when their signatures can be verified"):
        agreed_release(row, replace(own, release_key=None), find_binary())
