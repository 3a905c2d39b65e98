"""Whether a text has a stack trace: frames of a program, from which a model can correct nothing (B30)."""

from __future__ import annotations

import re
import unicodedata

from engine.secrets.seen import UnescapedText

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


def has_trace(text: str) -> bool:
    """Whether some part of `text` looks like a stack trace of a known language, with its line breaks escaped or not."""
    lines = UnescapedText(unicodedata.normalize("NFKC", text)).text.replace("\r", "\n")
    return _TRACE.search(lines) is not None
