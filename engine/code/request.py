"""The request of a code run: the action, its output contract and its approvals.

Whatever was sent is copied once, so that what runs is what was decided on.
"""

from __future__ import annotations

import json
import math
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import EncodedBytes, EncoderProtocol, Field

from engine.documents.canonical import RawJson, canonical
from engine.documents.strict_json import nested_deeper
from engine.documents.validation import validate
from engine.errors import EngineError, GatherError
from engine.facts.code.boundaries import ProfileName, Tighten
from engine.model import Model, Word
from engine.points.code_action import Task
from engine.points.code_execution import FileName, Seed
from engine.settings import ReadLimits

LEVELS = 64
"""Objects and lists in each other that every later encoder can write; readers of files and bodies stop before."""

Uuid = Annotated[str, Field(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,128}$")]


class _Base64(EncoderProtocol):
    """Base64 that may be broken into lines; text of which only a part would be read is refused."""

    @classmethod
    def decode(cls, data: bytes) -> bytes:
        try:
            return a2b_base64(b"".join(data.split()), strict_mode=True)
        except Base64Error as error:
            raise ValueError("must be base64, with its padding") from error

    @classmethod
    def encode(cls, value: bytes) -> bytes:
        return b2a_base64(value, newline=False)

    @classmethod
    def get_json_format(cls) -> str:
        return "base64"


Base64 = Annotated[bytes, EncodedBytes(encoder=_Base64)]


class Verify(Model):
    """A second action that verifies the output of the first; the engine sets its `input_payload`."""

    action: Any = None


class CodeRunRequest(Model):
    """One run. The policy decides what `action` and `policy_hints` may contain.

    `request` are fields that the answer repeats and that the output is compared with. `contract` names what the
    output must be, `profile` the limits of the sandbox, `packages` what the program can import; the defaults are the
    policy's. `files` are what it finds in `inputs/`, by name, in base64. With `artifacts` the files that it leaves in
    `artifacts/` are kept, with `inline_artifacts` the answer has their content too, in base64. Attempts at one `task`
    are counted together. `approvals` has ids by the decision that required each, `run_id` is a UUID by which an
    active run can be followed and cancelled.
    """

    action: Any = None
    request: Any = None
    policy_hints: Any = None
    contract: Word | None = None
    profile: ProfileName | None = None
    packages: Word | None = None
    files: Annotated[Mapping[FileName, Base64], Field(max_length=1_000)] = Field(default_factory=dict)
    task: Task | None = None
    seed: Seed | None = None
    artifacts: bool | None = None
    inline_artifacts: bool = False
    tighten: Tighten | None = None
    verifier: Verify | None = None
    approvals: Annotated[Mapping[Id, Id], Field(max_length=16)] = Field(default_factory=dict)
    run_id: Uuid | None = None

    @property
    def stated(self) -> dict[str, Any]:
        """The fields as sent, with the action and hints unchanged; null is not the same as absent."""
        return self.model_dump(mode="json", exclude_unset=True)


def read(document: Any) -> CodeRunRequest:
    """Read a request from plain JSON or checked JSON text; an error of the JSON reader is raised.

    Raises GatherError for a value without a JSON form and for an invalid request.
    """
    if isinstance(document, EngineError):
        raise document
    try:
        text = canonical(_plain(document))
    except (ValueError, TypeError, RecursionError) as error:
        raise GatherError(
            "the request is not plain JSON",
            remedy="send finite numbers and valid Unicode, without deep nesting",
            code="engine.request_invalid",
        ) from error
    remedy = "give `action`, `request` and the other fields that the schema of POST /v1/code/run names"
    return validate(CodeRunRequest, text, "a run of code", remedy, ReadLimits())


def _plain(document: Any) -> Any:
    value = json.loads(document.data) if isinstance(document, RawJson) else _copy(document)
    if nested_deeper(value, LEVELS):
        raise ValueError("nested too deeply")
    return value


def _copy(document: Any) -> Any:
    """A private copy. A hint that is not finite has no JSON form: as text it is no number either."""
    if isinstance(document, Mapping) and isinstance(hints := document.get("policy_hints"), Mapping):
        document = {**document, "policy_hints": {name: _finite(value) for name, value in hints.items()}}
    return json.loads(json.dumps(document, allow_nan=False))


def _finite(value: Any) -> Any:
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value
