"""The folder of transcripts: entries under their permit only, and one process at a time for an episode."""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from admission_adapters.episodes.transcripts import TranscriptFolder
from engine.errors import WorkError
from engine.model import Digest, Limits, Model
from tests.adapters.permits import DIGEST, MISUSED, misused, sealed
from tests.conftest import ROOT
from tests.expect import refused

TEXTS = ("I offer 100.", "Zwei Zeilen\u2028und mehr")


class Entry(Model):
    digest: Digest


class Entries(Limits):
    """The part of the limits of an entry that the folder reads."""

    episode: str
    entries: tuple[Entry, ...]


def granted(*texts: str) -> Entries:
    entries = tuple(Entry(digest=f"sha256:{sha256(text.encode()).hexdigest()}") for text in texts)
    return Entries(episode="e-1", entries=entries)


def test_entries_are_appended_with_their_texts_and_read_again(tmp_path: Path) -> None:
    folder = TranscriptFolder(tmp_path / "episodes")
    assert folder.read("e-1") == []
    for text in TEXTS:
        folder.append(sealed("transcript", granted(text)), DIGEST, [text])
    assert [one["text"] for one in folder.read("e-1")] == [*TEXTS]
    assert ((tmp_path / "episodes" / "e-1.jsonl").stat().st_mode & 0o777) == 0o600


@pytest.mark.parametrize("texts", [(), TEXTS[:1], TEXTS[::-1], (*TEXTS, "more"), ("I offer 10.", TEXTS[1])])
def test_other_texts_than_those_of_the_permit_are_not_appended(texts: tuple[str, ...], tmp_path: Path) -> None:
    folder = TranscriptFolder(tmp_path)
    with refused(WorkError, "engine.permit_missing"):
        folder.append(sealed("transcript", granted(*TEXTS)), DIGEST, texts)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("wrong", MISUSED)
def test_entries_are_appended_under_their_own_permit_only(wrong: str, tmp_path: Path) -> None:
    own = sealed("transcript", granted(*TEXTS))
    with refused(WorkError, "engine.permit_missing"):
        TranscriptFolder(tmp_path).append(misused(own)[wrong], DIGEST, TEXTS)
    with refused(WorkError, "engine.limit_unenforceable"):
        TranscriptFolder(tmp_path).append(sealed("transcript", Limits()), DIGEST, TEXTS)
    assert not list(tmp_path.iterdir())


def running(folder: TranscriptFolder, episode: str = "e-1") -> bool:
    """Whether the episode is claimed by a run."""
    try:
        with folder.claimed(episode):
            return False
    except WorkError as error:
        return error.code == "engine.episode_running"


def test_an_episode_is_run_by_one_thread_of_one_process(tmp_path: Path) -> None:
    one, other = TranscriptFolder(tmp_path), TranscriptFolder(tmp_path)
    with one.claimed("e-1"):
        assert [running(one), running(other), running(one, "e-2"), running(other, "e-2")] == [True, True, False, False]
        code = (
            "import sys; from pathlib import Path; from tests.episodes.test_transcripts import *; "
            "print(running(TranscriptFolder(Path(sys.argv[1]))))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)],
            cwd=ROOT, env={"PYTHONPATH": f"{ROOT}:{ROOT}/adapters"}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.strip() == "True"
    assert [running(one), running(other)] == [False, False]
    for folder in (one, other):
        folder.close()
        folder.close()
    assert not running(one)  # it opens its locks again
    one.close()


def test_an_episode_that_failed_may_be_run_again(tmp_path: Path) -> None:
    folder = TranscriptFolder(tmp_path)
    with pytest.raises(KeyError), folder.claimed("e-1"):
        raise KeyError
    assert not running(folder)
    folder.close()
