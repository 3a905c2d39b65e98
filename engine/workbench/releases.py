"""Releases: what was active when, the release in progress with what it changes, and the steps from it to its servers.

Each step is the one of a command. A form states what its page showed; where that has changed, nothing is done.
"""

from __future__ import annotations

import shlex
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from urllib.parse import quote

from engine import releasing
from engine.agreement.activation import activate_release
from engine.api.messages import Response
from engine.binaries import find_binary
from engine.errors import EngineError, PolicyError, Problem, reason_of
from engine.policy_bundle.build import PolicyBundle
from engine.policy_bundle.release import Authorship
from engine.policy_bundle.release_folder import CHANGES, STATEMENT
from engine.record.chain import Entry
from engine.record.model import PolicyRecord
from engine.record.reader import Filter, newest
from engine.state import open_state
from engine.state.rows import Agreement
from engine.workbench.desk import Activated, Desk
from engine.workbench.files import ConflictError
from engine.workbench.pages import PageError, UnknownError, moved
from engine.workbench.release_folders import Folder, folder_at, number_at
from engine.workbench.visit import Visit

_MOST_CHANGES, _MOST_FOLDERS, _MOST_ROWS = 200, 20, 500
"""Changes of the active policy that are listed; releases, each of which takes a twentieth of a second; rows of a
difference."""


class ReleaseError(PageError):
    """The releases cannot be read, or the step cannot be taken."""

    code = "engine.workbench_release"
    status = 409


def _paths(desk: Desk) -> list[Path]:
    """The folders with a release, the newest first; those whose number cannot be read last. Raises ReleaseError."""
    if desk.releases is None:
        return []
    try:
        found = [one for one in desk.releases.iterdir() if one.name.isprintable() and _holds_release(one)]
    except OSError as error:
        reason = reason_of(error)
        remedy = "let this user read the folder of --releases"
        raise ReleaseError(f"the releases cannot be read: {reason}", remedy=remedy) from error
    return sorted(found, key=lambda path: (-number_at(path), path.name))


def _holds_release(path: Path) -> bool:
    """Whether to read it: the name that servers know a release by is a link, and one that is written has a dot."""
    return not path.name.startswith(".") and not path.is_symlink() and (path / STATEMENT).exists()


def _newest(desk: Desk) -> Folder | None:
    """The newest release that can be read. Raises ReleaseError."""
    return next((one for one in map(folder_at, _paths(desk)) if one.contents is not None), None)


def _release_named(desk: Desk, name: str) -> Folder:
    """The release in a folder of this name. Raises UnknownError, ReleaseError."""
    found = next((folder_at(path) for path in _paths(desk) if path.name == name), None)
    if found is None:
        raise UnknownError("there is no such release", remedy="choose one from the list of releases")
    return found


def history(desk: Desk) -> list[tuple[Entry, PolicyRecord]]:
    """What became of the active policy, as `engine policy history` lists it, the newest first."""
    if not desk.settings.state.is_dir():
        return []
    entries = islice(newest(desk.settings.state, Filter(kind="policy")), _MOST_CHANGES)
    return [(one, one.body) for one in entries if isinstance(one.body, PolicyRecord)]


def _last(changes: list[tuple[Entry, PolicyRecord]], agreed: Agreement) -> str:
    """Stands for the last change of the active policy."""
    last = "none" if not changes else f"{changes[0][0].chain}/{changes[0][0].seq}"
    return last if agreed.active is None else f"{last}/{agreed.active.id}"


def _active(changes: list[tuple[Entry, PolicyRecord]]) -> PolicyRecord | None:
    return next((body for _, body in changes if body.outcome != "refused"), None)


def _state(one: Folder, changes: list[tuple[Entry, PolicyRecord]], agreed: Agreement) -> str:
    """How far a release has come, in a word."""
    if one.contents is None:
        return "damaged"
    active = _active(changes)
    served = [body.release.digest for _, body in changes if body.release is not None and body.outcome != "refused"]
    now = None if active is None or active.release is None else active.release.digest
    if agreed.binding and agreed.active is not None:
        now = agreed.active.digest
    if now == one.statement.digest:
        return "active"
    if one.statement.digest in served:
        return "was active"
    if one.contents.approval is None:
        return "unapproved"
    return "signed" if one.signed else "unsigned"


def listed(visit: Visit, status: int = 200, fault: EngineError | None = None) -> Response:
    """What was active when, and the releases in their folder; `fault` is why none was built."""
    desk = visit.desk
    paths, changes, agreed = _paths(desk), history(desk), desk.agreement()
    found = {path.name: folder_at(path) for path in paths[:_MOST_FOLDERS]}
    policy: PolicyBundle | None = None
    problems: tuple[Problem, ...] = fault.problems if isinstance(fault, PolicyError) else ()
    try:
        policy = desk.policy()
    except PolicyError as error:
        problems = error.problems
    return visit.page(
        "releases.html",
        status,
        found=found,
        states={name: _state(one, changes, agreed) for name, one in found.items()},
        changes=changes,
        most=_MOST_CHANGES,
        policy=policy,
        problems=problems,
        fault=None if isinstance(fault, PolicyError) else fault,
        count=len(paths),
        newest=_newest(desk),
        recorded=desk.settings.state.is_dir(),
        folder=desk.releases,
        notes=visit.form.get("notes", ""),
    )


def built(visit: Visit) -> Response:
    """Build a release of the policy in its folders, as `engine policy build --output` does."""
    try:
        name = _built(visit)
    except EngineError as error:
        return listed(visit, 409, error)
    return moved(f"/releases/{quote(name)}")


def _built(visit: Visit) -> str:
    desk, form = visit.desk, visit.form
    if desk.releases is None:
        raise ReleaseError("there is no folder for releases", remedy="start the workbench with --releases")
    before, policy = _newest(desk), desk.policy()
    _unchanged(
        [
            ("the newest release", form.get("newest"), "none" if before is None else before.seen),
            ("the policy", form.get("policy"), f"{policy.rules.revision} {policy.values.revision}"),
        ]
    )
    summary = None
    if form.get("replay") and desk.settings.state.is_dir():
        verified = desk.verify()
        if verified["breaks"] and not verified["repairable"]:
            remedy = "see the page Machine; without the record, a release can be built"
            raise ReleaseError("the record does not verify, so it is not replayed", remedy=remedy)
        summary = releasing.replay_summary(desk.settings.state, policy, desk.settings.opa, lambda *_: None)
    by = Authorship(desk.person, datetime.now(UTC), form.get("notes", "").strip())
    output = desk.releases / f"release-{1 if before is None else before.sequence + 1}"
    releasing.build_release(policy, output, by, 1 if before is None else before.path, summary)
    return output.name


def _unchanged(seen: list[tuple[str, str | None, str]]) -> None:
    """Raises ConflictError where what a page showed has changed; each is named, with what was shown and what is."""
    for what, before, now in seen:
        if before != now:
            raise ConflictError(
                f"{what} has changed since you opened the page; nothing was done",
                remedy="look at the page again, which shows what is there now, and repeat the step",
            )


def one(
    visit: Visit, status: int = 200, fault: EngineError | None = None, answers: tuple[Activated, ...] = ()
) -> Response:
    """A release: what it changes, who stands for it, and the next step; `fault` and `answers` are of the last one."""
    release, changes, agreed = _release_named(visit.desk, visit.name), history(visit.desk), visit.desk.agreement()
    contents = release.contents
    raw = b"" if contents is None or release.changes is not None else contents.files[CHANGES]
    return visit.page(
        "releases_one.html",
        status,
        release=release,
        contents=contents,
        told=release.changes,
        raw=raw[:20_000].decode("utf-8", "replace"),  # in another form than ours, as far as a person reads it
        rows=_MOST_ROWS,
        state=_state(release, changes, agreed),
        active=_active(changes),
        agreed=agreed.active if agreed.binding else None,
        can_verify=visit.desk.release_key is not None,
        last=_last(changes, agreed),
        newest=_newest(visit.desk),
        fault=None if isinstance(fault, PolicyError) else fault,
        problems=fault.problems if isinstance(fault, PolicyError) else release.problems,
        answers=answers,
        reason=visit.form.get("reason", ""),
        commands=_commands(release),
    )


def _commands(release: Folder) -> dict[str, str]:
    """What is done by command: with a private key, and on the machine that serves."""
    folder, name = shlex.quote(str(release.path)), shlex.quote(release.path.name)
    served = shlex.quote(str(release.path.parent / "served"))
    return {
        "sign": f"engine policy sign {folder} --key private.pem",
        "verify": f"engine policy verify {folder} --release-key public.pem",
        "put": f"ln -sfn {name} {served}",
        "serve": f"engine serve --release {served} --release-key public.pem",
        "activate": f"engine policy activate {folder} --release-key public.pem --reason TEXT",
    }


def acted(visit: Visit) -> Response:
    """Take the next step with a release: approve it, activate what servers were given, or roll back to it."""
    step = {"approve": _approved, "activate": _activated, "rollback": _rolled_back}.get(visit.form.get("verb", ""))
    if step is None:
        raise UnknownError("a release has no such step", remedy="use the buttons of the page")
    try:
        return step(visit)
    except UnknownError:
        raise
    except EngineError as error:
        return one(visit, 409, error)


def _reason(visit: Visit) -> str | None:
    return visit.form.get("reason", "").strip() or None


def _as_on_page(visit: Visit) -> tuple[Folder, Folder | None]:
    """The release of a form, and the newest one; both as the page showed them. Raises ConflictError."""
    release, last = _release_named(visit.desk, visit.name), _newest(visit.desk)
    now = "none" if last is None else last.seen
    _unchanged(
        [("the release", visit.form.get("seen"), release.seen), ("the newest release", visit.form.get("newest"), now)]
    )
    return release, last


def _approved(visit: Visit) -> Response:
    release, _ = _as_on_page(visit)
    releasing.approve(release.path, _reason(visit), visit.desk.act)
    return moved(f"/releases/{quote(visit.name)}")


def _activated(visit: Visit) -> Response:
    """Servers load what is in the folder that they were started with; whether it was this release, the record says.

    Where the engines of the state agreed on a release, all of them load this one.
    """
    release, agreed = _as_on_page(visit)[0], visit.desk.agreement()
    digest = release.statement.digest
    _unchanged([("the active policy", visit.form.get("last"), _last(history(visit.desk), agreed))])
    if agreed.binding:
        return _activated_for_all(visit, release)
    answers = visit.desk.activate(_reason(visit))
    if not all(one.done for one in answers):
        return one(visit, 409, answers=answers)
    now = {entry.chain: body.release for entry, body in reversed(history(visit.desk)) if body.outcome == "activated"}
    others = [one.chain for one in answers if (got := now.get(one.chain)) is None or got.digest != digest]
    if others:
        fault = ReleaseError(
            f"the server on chain {others[0]} activated another policy, and not this release",
            remedy="put the release where the server reads it, by the command below, and activate again",
        )
        return one(visit, 409, fault, answers)
    return moved(f"/releases/{quote(visit.name)}")


def _activated_for_all(visit: Visit, release: Folder) -> Response:
    desk = visit.desk
    if desk.release_key is None:
        raise ReleaseError(
            "the engines of this state agreed on one release, and the workbench has no key to verify another one",
            remedy=f"start it with --release-key, or activate the release with `{_commands(release)['activate']}`",
        )
    binary, reason = find_binary(), _reason(visit)
    with closing(open_state(desk.settings)) as store:
        before = store.agreement().active
        row, live = activate_release(release.path, desk.release_key, binary, store, desk.person, reason)
    if without := [one.name for one in live if one.serving != row.digest]:
        raise ReleaseError(
            f"the release is active, but the engine {without[0]} does not serve it, and decides nothing",
            remedy="see `engine policy status`",
        )
    if before is not None and before.id == row.id:
        raise ReleaseError("the release is active already; nothing was changed", remedy="there is nothing to do")
    return moved(f"/releases/{quote(visit.name)}")


def _rolled_back(visit: Visit) -> Response:
    release, last = _as_on_page(visit)
    if visit.desk.releases is None or last is None:
        raise ReleaseError("there is nothing to roll back", remedy="build a release first")
    output = visit.desk.releases / f"release-{last.sequence + 1}"
    releasing.roll_back(release.path, last.path, output, visit.desk.person, _reason(visit) or "")
    return moved(f"/releases/{quote(output.name)}")
