"""What OPA answers with: the value of a rule, and the revisions that it comes from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from engine.documents.canonical import parse
from engine.errors import DecideError, Location
from engine.model import Revisions

RULES, VALUES = "rules.tar.gz", "values.tar.gz"
"""The archives for OPA, and the names under which it reports their revisions."""

_ERROR = re.compile(r"[a-z_]{1,60}")
_FILE = re.compile(r"[a-z0-9_]{1,100}(/[a-z0-9_]{1,100}){0,8}\.rego")
_RETRY = "retry; if the error persists, run `engine doctor`"
DOCTOR = "run `engine doctor` to see what this machine lacks"


def complaint(output: bytes) -> str:
    """Why OPA ended: the start of its output; a crash of Go has its reason before an empty line and the stack."""
    return " ".join(output[:400].partition(b"\n\n")[0].decode("utf-8", "replace").split())


@dataclass(frozen=True, slots=True)
class Reply:
    """OPA's answer: the value of the rule, absent if undefined, and the revisions that it serves.

    `source` is the id of the decision for which OPA gave it, if that is another one: the same answer to an equal case.
    """

    body: dict[str, Any]
    source: str | None = None

    @property
    def defined(self) -> bool:
        """Whether the rule has a value."""
        return "result" in self.body

    @property
    def result(self) -> Any:
        """The rule's value; KeyError when it has none."""
        return self.body["result"]

    def demand(self, bundles: dict[str, Any]) -> Reply:
        """This reply, if it comes from exactly these bundles. Raises DecideError `policy_stale`."""
        provenance = self.body.get("provenance")
        if not isinstance(provenance, dict) or provenance.get("bundles") != bundles:
            raise DecideError(
                "OPA answered with another policy than the expected one", remedy=DOCTOR, code="policy_stale"
            )
        return self


def bundles(revisions: Revisions) -> dict[str, Any]:
    """The bundles of an OPA that serves exactly these revisions, as its provenance reports them."""
    return {RULES: {"revision": revisions.rules}, VALUES: {"revision": revisions.values}}


def decode(text: bytes) -> Reply:
    """A reply from the body of a response. Raises DecideError when it is not a JSON object."""
    try:
        body = parse(text)
    except (ValueError, RecursionError) as error:
        raise malformed("is not JSON") from error
    return accept(body)


def accept(body: Any) -> Reply:
    """A reply from the value of a response. Raises DecideError when it is no object."""
    if not isinstance(body, dict):
        raise malformed("is not an object")
    return Reply(body)


def unavailable(message: str, remedy: str = _RETRY) -> DecideError:
    """OPA is down, late, or does not speak HTTP: a deny that is not about the request."""
    return DecideError(message, remedy=remedy, code="policy_unavailable")


def down() -> DecideError:
    """OPA has ended, or was never ready."""
    return unavailable(
        "OPA is not running",
        "try again in a few seconds: OPA is being restarted; if it does not start, run `engine doctor`",
    )


def late() -> DecideError:
    """The deadline of a call is over."""
    return unavailable(
        "OPA did not answer in time: this machine is busy, or a rule does not end",
        "retry; if the error persists, run `engine policy test`, which names a rule that does not end",
    )


def forked() -> DecideError:
    """A fork shares the connection: it could read the answer to another request."""
    return unavailable(
        "this engine was opened in another process", "open a separate engine in each process, after the fork"
    )


def malformed(what: str) -> DecideError:
    """An invalid answer."""
    return DecideError(f"OPA's answer {what}", remedy=_RETRY, code="engine.answer_malformed")


def failed(body: bytes = b"") -> DecideError:
    """OPA answered with another status than 200; `body` is its answer.

    If a rule failed, `where` is its file in the archive of rules and the line. Nothing else of what
    OPA reports is used but the error's code: its message may contain a part of the input.
    """
    match _failure(body):
        case {"code": str(code), "location": {"file": str(file), "row": int(row)}} if (
            _ERROR.fullmatch(code) and _FILE.fullmatch(file) and row > 0
        ):
            return DecideError(
                f"OPA could not evaluate a rule: {code}",
                remedy="correct the rule; until then, such requests are denied",
                where=Location(file, row),
                code="engine.opa_error",
            )
    return DecideError("OPA refused or failed the evaluation", remedy=_RETRY, code="engine.opa_error")


def _failure(body: bytes) -> Any:
    """The first error of an answer that lists errors."""
    try:
        match parse(body):
            case {"errors": [first, *_]}:
                return first
    except (ValueError, RecursionError):
        pass
    return None


def unwritable() -> DecideError:
    """An input that has no JSON form: a fault of ours."""
    return DecideError(
        "the input cannot be written as JSON", remedy="report this with the request", code="engine.internal"
    )
