"""Random text, such as keys of any form.

It is judged by the scraps that capitals, small letters and digits leave when they alternate, because entropy alone
cannot distinguish `customer-support-tickets-anonymised-2026` from a key.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice

from engine.secrets.finder import Find, Finder
from engine.secrets.lines import RANDOM_RUN, Lines, Span

_RUN = re.compile(r"[A-Za-z0-9+/_=-]{33,}")
HARMLESS = re.compile(
    r"[0-9A-Fa-f](?<![A-Za-z0-9].)(?:(?<![A-F])[0-9a-f]{63}|[0-9A-Fa-f]{7}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})"
    r"(?![A-Za-z0-9])"
)
_LABELLED_DIGEST = re.compile(
    r"(?<![A-Za-z0-9])(?:sha256:[0-9a-f]{64}|sha1:[0-9a-f]{40}|sha224:[0-9a-f]{56}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})"
    r"(?![A-Za-z0-9])"
)
_FILE = r"(?<![A-Za-z0-9+/])(?:iVBORw0KGgo|/9j/|R0lGOD|UklGR|JVBERi0|UEsDB|H4sI|PHN2Zy|AGFzbQ|d09GR)"
"""What files begin with in base64, which notebooks have in lines up to a quote."""
_PUBLIC = re.compile(
    r"(?<![A-Za-z0-9])(?:sha(?:1|224|256|384|512)[:-](?:[0-9a-f]{40,128}|[A-Za-z0-9+/]{27,88}={0,2})|h1:[A-Za-z0-9+/]{43}="
    r"|(?:[0-9a-f]{40}|[0-9a-f]{56}|[0-9a-f]{60}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128})(?![A-Za-z0-9])"
    r"|data:[a-z0-9.+/-]{1,100}(?:;[a-z]{1,20}=[a-z0-9-]{1,40})?;base64,[A-Za-z0-9+/=]+"  # RFC 2397
    r"|-----BEGIN (?:CERTIFICATE|CERTIFICATE REQUEST|PUBLIC KEY|RSA PUBLIC KEY)-----\s{1,4}MI[A-Za-z0-9+/=\s]+"
    r"|(?<![A-Za-z0-9])(?:(?:chat)?cmpl-[A-Za-z0-9]{29}|gen-1[0-9]{9}-[A-Za-z0-9]{20}"
    r"|(?:srvtoolu_|(?:toolu|msg)_(?:bdrk|vrtx)_)01[A-Za-z0-9]{22}"
    r"|(?:(?:batch|call|req|trace)_|(?:chat)?cmpl-(?:tool-)?)[0-9a-f]{32}"
    r"|(?:resp|msg|rs|fc|ci|ws|fs|cntr|conv|mcpr|skill)_[0-9a-f]{48,64})(?![A-Za-z0-9])"  # of answers
    r"|[0-9a-f]{2}/(?:[0-9a-f]{38}|(?:[0-9a-f]{2}/){2}[0-9a-f]{50})(?![A-Za-z0-9])"  # digests as folders
    r"|(?:0x[0-9A-Fa-f]{40}|[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2})(?![A-Za-z0-9])"  # accounts, traceparent
    r"|AAAA(?:B3NzaC1|C3NzaC1|E2VjZHNh|Gnsk)[A-Za-z0-9+/=]+"  # public keys of SSH
    r"|(?:cp|pp|py)[0-9]{1,4}t?-(?:abi3|none|cp[0-9]{2,4}t?)-(?:many|musl)linux[0-9_]{0,10}_?"
    r"(?:aarch64|armv7l|i686|ppc64le|riscv64|s390x|x86_64)(?![A-Za-z0-9])"  # platforms of Python packages
    rf"|{_FILE}[A-Za-z0-9+/=]{{60,}}"
    rf"(?:(?:(?:\\n|\n)(?!{_FILE})[A-Za-z0-9+/]{{76}})*+(?:\\n|\n)[A-Za-z0-9+/=]{{0,76}}(?:\\n|\n)?(?=\"))?)"
    r"|(?<![A-Za-z0-9+/])MD[A-Z][A-Za-z0-9]O[a-z][A-Za-z0-9]{26,60}={0,2}(?![A-Za-z0-9+/=])"  # nodes of GitHub
    r"|(?<=[?&]list=)PL[A-Za-z0-9_-]{32}(?![A-Za-z0-9_-])"  # lists of videos
    r"|abcdefghijklmnopqrstuvwxyz|ABCDEFGHIJKLMNOPQRSTUVWXYZ|0123456789"
)
_PATH_OR_URL = re.compile(
    r"(?:(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,30}://|(?<![\w.-])[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}/"
    r"|(?<![\w.~/+-])(?:~|\.{0,2})/(?=[a-z._-]{1,40}/))[^\s\"'<>?#]*"
)
"""A URL without its query, or a path: not what looks like one because base64 has slashes too."""
_BETWEEN_WORDS = re.compile(r"/|(?<![A-Za-z0-9])(?:[0-9a-f]{7,12}|[0-9a-f]{24}|[0-9a-f]{32})(?![A-Za-z0-9])")
"""What separates the words of a path or URL: slashes, and the ids of commits, articles, collections and pages."""
_LONGER = re.compile(rf"-----BEGIN|{_FILE}[A-Za-z0-9+/]{{60,}}(?:\\n|\n)")
"""A certificate, or a file in several lines."""
_ENCODED = re.compile(r"(?<![A-Za-z0-9+/_-])e[wy][A-Za-z0-9+/_-]{20,}={0,2}(?![A-Za-z0-9+/_.=-])")
"""What may be a JSON object in base64; behind a web token or cookie there is a dot and a signature."""
_TELLING = re.compile(r"(?i)auth|cookie|cred|key|pass|pw|secret|session|sig|token|(?<![\w-])(?=[\w-]*[0-9])[\w-]{16,}")
"""Words of secrets, and what may be one."""
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|::|->)[\w$]+)*", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9]+")
_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_COMPOUND = re.compile(r"[a-z]*(?:[A-Z][a-z]+){4,}")
_DRAWING = re.compile(
    r"[MLHVCSQTAZmlhvcsqtaz]{0,2}-?[0-9]{1,4}"
    r"(?:(?:[Zz]?[MLHVCSQTAmlhvcsqta]-?|-)[0-9]{1,4})*+[MLHVCSQTAZmlhvcsqtaz]{0,2}"
)
"""The path of a drawing in SVG: letters of its commands, each with numbers."""
_BASE32 = re.compile(r"(?=[A-Z]*[2-7])[A-Z2-7]+")
_VOWEL = re.compile(r"[aeiouyAEIOUY]")
_SCRAPS = 0.12
"""Scraps a character: words and dates have nearly none, random base64, hex, base36 and base32 from 0.2 to 0.4."""
_RANDOM_LETTERS = 20
"""Letters and digits of the words with scraps; fewer are an id in a name, such as that of a pod or article."""
_PARTICLES = frozenset({"As", "At", "By", "ID", "Id", "In", "Is", "Of", "On", "Or", "To"})
"""Words of two letters in names of programs, which are no scraps."""
_SHORT_WORD = 3
"""Characters of a word that is no part of a key, such as `v0x`."""
_ENTROPY = 3.0
"""Bits a character; 33 random hex digits have about 3.6, `a1a1a1…` has 1."""
_VOWEL_RATE = 0.25
"""Vowels a letter: English words have about 0.4, random letters 0.23."""


def _random(text: str) -> Iterator[Span]:
    for match in _RUN.finditer(blanked(_LABELLED_DIGEST, text)):
        if not _is_number(match[0]) and looks_random(match[0]):
            yield match.span()


def _random_secrets(text: str) -> Iterator[Span]:
    """Random text, except digests of commits and packages, public keys, and encoded file content."""
    plain = _PATH_OR_URL.sub(
        lambda way: blanked(_BETWEEN_WORDS, way[0]), blanked(_PUBLIC, _ENCODED.sub(_without_object, text))
    )
    for match in _RUN.finditer(plain):
        run = match[0]
        if not _is_number(run) and _DRAWING.fullmatch(run) is None and looks_random(run):
            yield match.span()


def _without_object(match: re.Match[str]) -> str:
    """Blanks for a JSON object in base64 without a secret, such as the settings in a link that installs something."""
    text = match[0].rstrip("=").replace("+", "-").replace("/", "_")
    try:
        decoded = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
        harmless = isinstance(json.loads(decoded), dict) and _TELLING.search(decoded) is None
    except (ValueError, RecursionError):
        harmless = False
    return " " * len(match[0]) if harmless else match[0]


def _is_number(run: str) -> bool:
    return run.rstrip("n").isdigit()


def blanked(pattern: re.Pattern[str], text: str) -> str:
    """The text with blanks for what the pattern matches."""
    return pattern.sub(lambda match: " " * len(match[0]), text)


def looks_random(run: str) -> bool:
    """Whether a run of letters, digits and `+/_=-` without named digests is not composed of words and dates."""
    words = _WORD.findall(HARMLESS.sub("/", run))
    letters, scraps = "".join(words), [_scraps(word) for word in words]
    long_enough = len(letters) >= RANDOM_RUN - 4  # base64 may have as many separators
    random = sum(len(word) for word, found in zip(words, scraps, strict=True) if found)
    scrappy = long_enough and random >= _RANDOM_LETTERS and sum(scraps) / len(letters) >= _SCRAPS
    if scrappy and _entropy(letters) >= _ENTROPY:
        return True
    return any(len(word) >= RANDOM_RUN and _unspeakable(word) for word in words)


def is_identifier(text: str) -> bool:
    """Whether a text is the name of a variable: several words, perhaps with numbers, and not random."""
    if len(_PIECE.findall(text)) <= 2 or _IDENTIFIER.fullmatch(text) is None:  # noqa: PLR2004 (as for scraps)
        return False
    return sum(map(_scraps, _WORD.findall(text))) / len(text) < _SCRAPS


def _scraps(word: str) -> int:
    """Pieces of one or two letters or digits; none in a word of two pieces, such as `q3` or `west1`."""
    pieces = _PIECE.findall(word) if len(word) > _SHORT_WORD else []
    scraps = sum(len(piece) <= 2 and piece not in _PARTICLES for piece in pieces)  # noqa: PLR2004 (see above)
    return scraps if len(pieces) > 2 else 0  # noqa: PLR2004 (see above)


def _unspeakable(word: str) -> bool:
    if _COMPOUND.fullmatch(word):
        return False
    few_vowels = len(_VOWEL.findall(word)) / len(word) < _VOWEL_RATE
    return (few_vowels or _BASE32.fullmatch(word) is not None) and _entropy(word) >= _ENTROPY


def _entropy(text: str) -> float:
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)


def _in_runs(find: Callable[[str], Iterator[Span]]) -> Find:
    """Of the pieces with a long run; of the whole text if it may have what is in lines that belong together."""

    def found(lines: Lines) -> Iterator[Span]:
        pieces = lines.with_runs()
        if _LONGER.search(lines.text):
            pieces = ((0, len(lines.text)) for _ in islice(pieces, 1))
        for start, end in pieces:
            yield from ((start + first, start + last) for first, last in find(lines.text[start:end]))

    return found


FINDER = Finder((), _in_runs(_random), _in_runs(_random_secrets), RANDOM_RUN)
