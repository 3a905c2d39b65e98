"""Point `code_scan`: which forbidden constructs generated code contains, each by name.

The scan explains and pre-filters. It is never the only gate: what code computes while it runs is in no
text, and the sandbox is what contains it. Only generated code is scanned, never the engine's own
(C29). The code is not part of the input. Rows A79 to A83, C19 to C29, C54, C71, H03, H17.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

from pydantic import Field

from engine.documents.files import Stated, printable
from engine.errors import Location
from engine.facts.code.scan import scan
from engine.facts.code.scan_items import Lines, ScanFacts
from engine.model import Limits, Model, Pace, Sha256, Text
from engine.points import GatherContext, Gathered, Point


class CodeScanRequest(Model):
    """Ask about one program in a language, by its name in lower case."""

    language: Annotated[str, Field(min_length=1, max_length=200)]
    code: Annotated[Text, Field(min_length=1)]


class CodeScanInput(Model):
    """What OPA sees: the digest of the code in UTF-8, and what was found in it."""

    code_sha256: Sha256
    scan: ScanFacts


class CodeScanLimits(Limits):
    """The code that was scanned, all of it."""

    language: str
    code_sha256: Sha256
    complete: Literal[True]


def gather(request: CodeScanRequest, _: GatherContext) -> Gathered:
    """Scan the code; any text results in facts."""
    data = request.code.encode("utf-8", "surrogatepass")
    lines: Lines = {}
    found = scan(request.language, request.code, lines)
    places = {thing: Location("code", line) for thing, line in lines.items()}
    return Gathered(
        CodeScanInput(code_sha256=hashlib.sha256(data).hexdigest(), scan=found),
        f"code in `{printable(request.language, 40)}`: {'all of it read' if found.parsed else found.problem}",
        places,
        stated=lambda _, field: Stated(places[field], None) if field in places else None,
    )


POINT = Point("code_scan", CodeScanRequest, CodeScanInput, CodeScanLimits, gather, pace=Pace.SLOW, secret=True)
