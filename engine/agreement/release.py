"""The release that the engines of a state agreed on: found by its digest among several, and verified."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from engine.binaries import Binary
from engine.documents.canonical import digest
from engine.documents.files import read_bytes, unreadable
from engine.errors import DecideError, EngineError, GatherError, Location, PolicyError, Problem
from engine.policy_bundle.last_release import read_last
from engine.policy_bundle.release import Release, load_release
from engine.policy_bundle.release_folder import STATEMENT
from engine.settings import Settings
from engine.state.rows import ActivationRow, Agreement

_STATEMENT_BYTES = 64 << 10
"""As large as a statement may be; a larger file is that of no release."""


def release_at_start(agreement: Agreement, settings: Settings, binary: Binary) -> Release:
    """The release that an engine begins with. Raises EngineError, also where none was activated."""
    switching = agreement.next if agreement.next is not None and agreement.next.state == "switching" else None
    if (row := switching or agreement.active) is None:
        raise DecideError(
            "no release was activated for the engines of this state",
            remedy="activate one: `engine policy activate DIR`",
        )
    return agreed_release(row, settings, binary)


def agreed_release(row: ActivationRow, settings: Settings, binary: Binary) -> Release:
    """The release of this activation, approved and signed. Raises EngineError."""
    if settings.releases is None or settings.release_key is None:
        raise EngineError(
            "releases are served only when their signatures can be verified",
            remedy="give the public key with `--release-key`",
            code="engine.policy_invalid",
        )
    after, refused = read_last(settings.state), None
    for folder in with_digest(settings.releases, row.digest):
        try:
            found = load_release(folder, settings.release_key, binary, settings.cache, after)
        except (PolicyError, GatherError) as error:  # a copy that is not complete, or not signed: another one may be
            refused = refused or error
        else:
            if found.digest == row.digest:
                return found
    if refused is not None:
        raise refused
    message = f"release {row.sequence} of `{row.name}` is not here: no release in this folder has its digest"
    remedy = f"put the release with the digest {row.digest} there"
    raise PolicyError((Problem(Location(str(settings.releases)), message, remedy),))


def with_digest(releases: Path, wanted_digest: str) -> Iterator[Path]:
    """The folders whose statement has this digest. Raises GatherError; for an unreadable statement, at the end."""
    unread = None
    try:
        folders = sorted(releases.iterdir())
    except OSError as error:
        raise unreadable(str(releases), error) from error
    for folder in folders:
        try:
            statement = read_bytes(folder / STATEMENT, _STATEMENT_BYTES)
        except GatherError as error:
            no_release = error.__cause__ is None or isinstance(error.__cause__, (FileNotFoundError, NotADirectoryError))
            unread = unread if no_release else error
            continue
        if digest(statement) == wanted_digest:
            yield folder
    if unread is not None:
        raise unread
