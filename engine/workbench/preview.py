"""An edit before it is saved: what is wrong with it, what it changes, and which recorded decisions it would change.

Also what the candidate of `engine serve --shadow` decided differently.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from difflib import unified_diff
from itertools import islice
from typing import Any
from urllib.parse import quote

from engine.api.messages import Response
from engine.errors import PolicyError, Problem
from engine.policy_bundle.build import PolicyBundle
from engine.policy_bundle.difference import difference
from engine.record.model import DecisionRecord
from engine.record.reader import Filter, newest
from engine.replay.candidate import opened
from engine.replay.comparing import Change
from engine.replay.run import UNCHANGED, UNDECIDED, Replay, replay
from engine.replay.shadowed import shadowed
from engine.workbench.desk import Desk
from engine.workbench.drafts import Draft
from engine.workbench.files import (
    NEW,
    FileError,
    PolicyFile,
    decoded,
    form_address,
    found,
    rules_files,
    save,
    values_files,
)
from engine.workbench.pages import UnknownError, moved
from engine.workbench.visit import Visit

COUNTS = (100, 1_000, 10_000)
"""Of how many of the last decisions a preview may be; a thousand take seconds."""

_RULE_BYTES = 1 << 20
"""Of one file of rules, which no build reads if it is larger."""

_SHADOW_LINES = 10_000
"""Lines of a candidate on the page about it."""
KINDS = (*(change.value for change in Change), UNCHANGED, UNDECIDED)


def listed(visit: Visit) -> Response:
    """The files of values, and of one's own rules."""
    values, rules = values_files(visit.desk), rules_files(visit.desk)
    saved = {**values, **rules}.get(visit.query.get("saved", ""))
    releases = visit.desk.releases is not None
    return visit.page("values.html", files=values.values(), rules=rules.values(), saved=saved, releases=releases)


def editor(visit: Visit) -> Response:
    """One file of values as text, or a previewed edit of it."""
    if "draft" not in visit.query:
        return _editor(visit, found(visit.desk, visit.query.get("file", "")))
    draft = _draft(visit, visit.query["draft"])
    return _editor(visit, found(visit.desk, draft.file), draft.data.decode(), before=draft.before)


def _editor(visit: Visit, file: PolicyFile, text: str | None = None, **more: Any) -> Response:
    fault = None
    try:
        content = file.text
    except FileError as error:
        content, fault = (file.data or b"").decode("utf-8", "replace"), error
    values = {"problems": (), "broken": None, "before": file.digest, "count": COUNTS[1], **more}
    values["form"] = None if fault is not None else form_address(file.name)
    content = content if text is None else text
    return visit.page("values_edit.html", file=file, text=content, fault=fault, counts=COUNTS, new=NEW, **values)


def lint(visit: Visit) -> Response:
    """The problems of a text that is being typed, as JSON. Nothing is written."""
    return Response.of({"problems": [_as_json(one) for one in _problems(visit.desk, *_stated(visit))]})


def _as_json(one: Problem) -> dict[str, Any]:
    return {"where": str(one.where), "line": one.where.line, "message": one.message, "remedy": one.remedy}


def _stated(visit: Visit) -> tuple[str, bytes]:
    """The file that a form names, and its text with the newlines that a browser sends as two characters."""
    name, text = visit.form.get("file", ""), visit.form.get("text", "").replace("\r\n", "\n")
    data = decoded(text.encode("utf-8")).encode("utf-8")
    if name.endswith(".rego") and len(data) > _RULE_BYTES:
        raise FileError(f"the text is larger than {_RULE_BYTES} bytes", remedy="split the file")
    return name, data


def _problems(desk: Desk, name: str, data: bytes) -> Sequence[Problem]:
    try:
        policy = desk.policy(edits=((found(desk, name).name, data),))
    except PolicyError as error:
        return error.problems
    return policy.rows_without_effect(int(time.time()))


def preview(visit: Visit) -> Response:
    """Try the text of an editor."""
    name, data = _stated(visit)
    return tried(visit, found(visit.desk, name), data.decode(), visit.form.get("before", ""))


def tried(visit: Visit, file: PolicyFile, text: str, before: str) -> Response:
    """Try an edit: back to the editor with its problems, or on to what it would change. Nothing is written."""
    desk, name, data, old = visit.desk, file.name, text.encode("utf-8"), file.text
    count = next((one for one in COUNTS if str(one) == visit.form.get("count")), COUNTS[0])
    again: dict[str, Any] = {"text": text, "before": before, "count": count}
    try:
        candidate = desk.policy(edits=((name, data),))
    except PolicyError as error:
        return _editor(visit, file, status=422, problems=error.problems, **again)
    recorded = desk.settings.state.is_dir()
    verified = desk.verify() if recorded and not visit.form.get("broken") else {}
    if verified.get("breaks") and not verified["repairable"]:
        return _editor(visit, file, status=409, broken=verified["breaks"], **again)
    lines = unified_diff(old.splitlines(), text.splitlines(), "before", "after", lineterm="")
    saved = desk.policy_or_none()
    differs = None if saved is None else difference(saved, candidate)
    draft = Draft(
        name, before, data, tuple(lines), differs, _replayed(desk, candidate, saved, count), desk.tests(candidate)
    )
    visit.session.keep(draft)
    return moved(f"/previews/{draft.key}")


def _replayed(desk: Desk, candidate: PolicyBundle, saved: PolicyBundle | None, count: int) -> Replay | None:
    """The last decisions, decided again; None if there are none.

    The saved policy decides again those that another policy took, because the edit is compared with it.
    """
    if not desk.settings.state.is_dir():
        return None
    bodies = (one.body for one in newest(desk.settings.state, Filter()))
    last = [(one.time, one.policy) for one in islice((one for one in bodies if isinstance(one, DecisionRecord)), count)]
    if not last:
        return None
    taken = saved is not None and all(policy == saved.revisions for _, policy in last)
    with ExitStack() as stack:
        served = stack.enter_context(opened(candidate, desk.settings.opa))
        base = None if saved is None or taken else stack.enter_context(opened(saved, desk.settings.opa))
        return replay(desk.settings.state, Filter(since=last[-1][0]), served, None, lambda *_: None, base)


def page(visit: Visit) -> Response:
    """What an edit would change."""
    return _preview_page(visit, _draft(visit, visit.name))


def _draft(visit: Visit, key: str) -> Draft:
    draft = visit.session.drafts.get(key)
    if draft is None:
        raise UnknownError("this preview is no longer there", remedy="preview the edit again")
    return draft


def _preview_page(visit: Visit, draft: Draft, status: int = 200, fault: FileError | None = None) -> Response:
    return visit.page("values_preview.html", status, draft=draft, replay=draft.replay, kinds=KINDS, fault=fault)


def saved(visit: Visit) -> Response:
    """Save the edit as it was previewed, or show why that cannot be."""
    draft = _draft(visit, visit.name)
    try:
        save(visit.desk, draft.file, draft.before, draft.data)
    except FileError as error:
        return _preview_page(visit, draft, error.status, error)
    del visit.session.drafts[draft.key]
    return moved(f"/values?saved={quote(draft.file)}")


def shadow(visit: Visit) -> Response:
    """The last shadow lines, as `engine record shadow` reports them."""
    desk = visit.desk
    policy = desk.policy_or_none()  # without one, the report has no words
    found = (
        shadowed(desk.settings.state, Filter(), policy, most=_SHADOW_LINES) if desk.settings.state.is_dir() else None
    )
    replay = None if found is None else found.found
    return visit.page("shadow.html", shadowed=found, replay=replay, kinds=KINDS, most=_SHADOW_LINES)
