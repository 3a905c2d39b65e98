"""Whether a text has a stack trace: frames of a program, which tell a model nothing that it can correct (B30)."""

from __future__ import annotations

import re
import unicodedata

_FRAME = (
    r"at [^()\n]{0,200}\((?:[^()\n]{0,200}[A-Za-z>][\w>]*:\d+(?::\d+)?"
    r"|Unknown Source|Native Method|native|<anonymous>)\)"
    r"|at (?:async )?\S+:\d+:\d+"
)
_TRACE = re.compile(
    rf"^[ \t]*(?:{_FRAME})"  # JavaScript, Java; one frame at the beginning of a line
    rf"|[ \t](?:{_FRAME})[ \t]+(?:{_FRAME})"  # or several in a row
    r"|Traceback \(most recent call (?:last|first)\)|\bFile \"[^\"\n]+\", line \d+"  # Python
    r"|\bgoroutine \d+ \["  # Go
    r"|^[ \t]*at \S[^\n]{0,300} in \S[^\n]{0,300}:line \d+"  # .NET
    r"|^[ \t]*(?:from )?\S+:\d+:in ['`]"  # Ruby
    r"|^[ \t]*#\d+ [^\n(]+\(\d+\): "  # PHP
    r"|\bstack backtrace:|\bthread '[^'\n]*' panicked at ",  # Rust
    re.MULTILINE,
)
_BREAK = re.compile(r"\\[nr]|\r")


def has_trace(text: str) -> bool:
    """Whether some part of `text` looks like a stack trace of a known language, with its line breaks escaped or not."""
    return _TRACE.search(_BREAK.sub("\n", unicodedata.normalize("NFKC", text))) is not None
