"""Point `code_scan`: what the text of generated code holds that it may not hold, each thing by its name.

The scan explains and pre-filters. It is never the only gate: what code computes while it runs is in no
text, and the sandbox is what keeps it in. It looks at generated code alone, never at the engine's own
(C29). The code is no part of the input. Rows A79 to A83, C19 to C29, C54, C71, H03, H17.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

from pydantic import Field

from engine.facts.code_scan import scan
from engine.facts.code_scan_items import ScanFacts
from engine.files import shown
from engine.model import Limits, Model, Pace, Sha256, Text
from engine.points import Gathered, Input, Point, World


class CodeScanRequest(Model):
    """Ask about one program in a language, by its name in lower case."""

    language: Annotated[str, Field(min_length=1, max_length=200)]
    code: Annotated[Text, Field(min_length=1)]


class CodeScanInput(Input):
    """What OPA sees: the digest of the code in UTF-8, and what was found in it."""

    code_sha256: Sha256
    scan: ScanFacts


class CodeScanLimits(Limits):
    """The code that was looked at, all of it."""

    language: str
    code_sha256: Sha256
    complete: Literal[True]


def gather(request: CodeScanRequest, world: World) -> Gathered:
    """Scan the code; whatever it is, there are facts."""
    data = request.code.encode("utf-8", "surrogatepass")
    found = scan(request.language, request.code)
    return Gathered(
        CodeScanInput(point="code_scan", now=world.clock(), code_sha256=hashlib.sha256(data).hexdigest(), scan=found),
        f"code in `{shown(request.language, 40)}`: {'all of it read' if found.parsed else found.problem}",
    )


POINT = Point("code_scan", CodeScanRequest, CodeScanInput, CodeScanLimits, gather, pace=Pace.SLOW, secret=True)
