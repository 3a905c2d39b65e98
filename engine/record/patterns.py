"""What a secret or private datum looks like in text: our own patterns, each with what it is for.

Every pattern reads text in linear time: bounded repeats, or repeats that cannot overlap what follows.
Random-looking text is judged by the scraps that capitals, small letters and digits leave when they alternate,
because entropy alone cannot tell `customer-support-tickets-anonymised-2026` from a key.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator

Span = tuple[int, int]

_EDGE = r"(?<![A-Za-z0-9])"

_KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----(?:.*?-----END [A-Z0-9 ]{1,60}-----|.*)"
    r"|PuTTY-User-Key-File-[0-9].*",
    re.DOTALL,
)

_TOKEN_FORMS = (
    r"(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA|AGPA|ANPA)[A-Z0-9]{16}(?![A-Za-z0-9])",  # AWS access key and ids
    r"AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}",  # Google Cloud
    r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}",  # Azure client secret
    r"gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,}",  # GitHub
    r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat)-[A-Za-z0-9_-]{20,}",  # GitLab
    r"xox[abeoprs](?:\.xox[abeoprs])?-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{10,}",  # Slack
    r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{10,}",
    r"[rsp]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/]{20,}",  # Stripe
    r"sk-(?:proj|svcacct|admin|ant|or|live|test)-[A-Za-z0-9_-]{16,}",  # OpenAI, Anthropic, OpenRouter
    r"sk-(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{20,}",  # OpenAI, older
    r"(?:hf|api_org)_[A-Za-z0-9]{30,}",  # Hugging Face
    r"npm_[A-Za-z0-9]{30,}|pypi-AgE[A-Za-z0-9_-]{16,}",  # package registries
    r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",  # SendGrid
    r"dop_v1_[0-9a-f]{64}|dapi[0-9a-f]{32}|AGE-SECRET-KEY-1[A-Z0-9]{20,}",  # DigitalOcean, Databricks, age
    r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?",  # JSON Web Token
)
TOKENS = re.compile(rf"{_EDGE}(?:{'|'.join(_TOKEN_FORMS)})")

_HEADER = re.compile(
    r"(?i)(?<![A-Za-z0-9])(?:proxy-)?authorization[\"']?[ \t]{0,8}[:=][ \t]{0,8}[\"']?(?!\[redacted:)[^\r\n\"']+"
    r"|(?<![A-Za-z0-9-])(?:set-)?cookie[\"']?[ \t]{0,8}:[ \t]{0,8}(?!\[redacted:)[^\r\n\"']+"
)
_BEARER = re.compile(r"(?i)(?<![A-Za-z0-9])bearer[ \t]{1,8}([A-Za-z0-9._~+/=-]{6,})")
_BASIC = re.compile(r"(?i)(?<![A-Za-z0-9])basic[ \t]{1,8}([A-Za-z0-9+/]{4,}={0,2})")

ASSIGNED = re.compile(
    r"(?:(?<![A-Za-z0-9])(?:[kK]ey|KEY|[tT]oken|TOKEN|[sS]ecret|SECRET|[pP]asswor[dt]|PASSWORD|[pP]asswd|PASSWD|[pP]wd|PWD"
    r"|[pP]assphrase|PASSPHRASE|[sS]ig|SIG|[sS]ignature|[cC]redentials?|[aA]pi[kK]ey|APIKEY|[aA]uth|AUTH)"
    r"|(?<=[a-z])(?:Key|Token|Secret|Password|Signature))"
    r"[\"']?[ \t]{0,4}=[ \t]{0,4}[\"']?(?!\[redacted:)(?!=)[^\s\"'&;,<>]+"
    r"|(?i:(?<![A-Za-z0-9])(?:password|passwd|passphrase|api[_-]?key|secret[_-]?key|client[_-]?secret|access[_-]?token))"
    r"[\"']?[ \t]{0,4}:[ \t]{0,4}[\"']?(?!\[redacted:)(?=[^\s\"',;]{0,64}[0-9])[^\s\"',;]{6,}"
)

USERINFO = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://(?!\[redacted:)[^\s/?#@]+@(?:[^\s/?#@]*@)*")
_MAIL_NAME = re.compile(r"[^\s@<>\"'(),:;\[\]\\/=?&|]{1,64}\Z")
MAIL_HOST = re.compile(r"@(?:[^\s@<>\"'(),:;\[\]\\/=?&|.!]{1,63}\.){1,8}[^\W\d_][\w-]{0,61}\w")
_CARD = re.compile(
    r"(?<![A-Za-z0-9.])"
    r"(?:[2-6][0-9]{12,18}|[2-6][0-9]{3}(?:[ -][0-9]{4}){3}(?:[ -][0-9]{1,3})?|3[0-9]{3}[ -][0-9]{6}[ -][0-9]{4,5})"
    r"(?![A-Za-z0-9])(?!\.[0-9])"
)
SHORTEST_CARD = 13
_CARD_PREFIX = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})|(?:5[1-5]|2[2-7])[0-9]{14}|3[47][0-9]{13}|3[0689][0-9]{12}"
    r"|(?:6011|64[4-9][0-9]|65[0-9]{2}|35[2-8][0-9])[0-9]{12}|62[0-9]{14,17}"
)

_RUN = re.compile(r"[A-Za-z0-9+/_=-]{33,}")
_HARMLESS = re.compile(
    r"(?<![A-Za-z0-9])(?:[0-9a-f]{64}|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})(?![A-Za-z0-9])"
)
_LABELLED_DIGEST = re.compile(
    r"(?<![A-Za-z0-9])(?:sha256:[0-9a-f]{64}|sha1:[0-9a-f]{40}|sha224:[0-9a-f]{56}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})"
    r"(?![A-Za-z0-9])"
)
_WORD = re.compile(r"[A-Za-z0-9]+")
_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_BASE32 = re.compile(r"(?=[A-Z]*[2-7])[A-Z2-7]+")
_VOWEL = re.compile(r"[aeiouyAEIOUY]")

RANDOM_RUN = 33
"""Random-looking text counts from here on: shorter runs are too often ids."""

_SCRAPS = 0.12
"""Scraps a character: words and dates have nearly none, random base64, hex, base36 and base32 from 0.2 to 0.4."""

_ENTROPY = 3.0
"""Bits a character; 33 random hex digits have about 3.6, `a1a1a1…` has 1."""


_VOWEL_RATE = 0.25
"""Vowels a letter: English words have about 0.4, random letters 0.23."""

_OPAQUE = 20
"""Characters from which a word after `Bearer` is a token even without a digit."""


def find_secrets(text: str) -> Iterator[Span]:
    """Spans of `text` that must not be written anywhere, in no order, perhaps overlapping."""
    for hint, find in _FINDERS:
        if hint(text):
            yield from find(text)


def is_secret(text: str) -> bool:
    """Whether something in a text is a key, token or password; addresses of people and card numbers are none."""
    return any(hint(text) and next(find(text), None) is not None for hint, find in _FINDERS if find not in _PRIVATE)


def _all(pattern: re.Pattern[str]) -> Callable[[str], Iterator[Span]]:
    return lambda text: (match.span() for match in pattern.finditer(text))


def _bearers(text: str) -> Iterator[Span]:
    for match in _BEARER.finditer(text):
        token = match[1].rstrip(".=-")
        if len(token) >= _OPAQUE or any(character.isdigit() for character in token):
            yield match.span()


def _basics(text: str) -> Iterator[Span]:
    for match in _BASIC.finditer(text):
        padded = match[1].rstrip("=")
        try:
            decoded = base64.b64decode(padded + "=" * (-len(padded) % 4))
        except binascii.Error:
            continue
        if b":" in decoded:
            yield match.span()


def _mails(text: str) -> Iterator[Span]:
    for match in MAIL_HOST.finditer(text):
        begin = max(0, match.start() - 64)
        name = _MAIL_NAME.search(text[begin : match.start()])
        if name is not None:
            yield begin + name.start(), match.end()


def _cards(text: str) -> Iterator[Span]:
    for match in _CARD.finditer(_blanked(_HARMLESS, text)):
        if is_card(match[0].replace(" ", "").replace("-", "")):
            yield match.span()


def is_card(digits: str) -> bool:
    """Whether digits have the prefix, length and check digit (ISO/IEC 7812, Luhn) of a payment card."""
    if not _CARD_PREFIX.fullmatch(digits):
        return False
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(map(int, digits[-1::-2])) + sum(doubled)) % 10 == 0


def _random(text: str) -> Iterator[Span]:
    for match in _RUN.finditer(_blanked(_LABELLED_DIGEST, text)):
        if looks_random(match[0]):
            yield match.span()


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda match: " " * len(match[0]), text)


def looks_random(run: str) -> bool:
    """Whether a run of letters, digits and `+/_=-` without named digests was not made of words and dates."""
    words = _WORD.findall(_HARMLESS.sub("/", run))
    letters = "".join(words)
    long_enough = len(letters) >= RANDOM_RUN - 4  # base64 may have as many separators
    if long_enough and _entropy(letters) >= _ENTROPY and sum(map(_scraps, words)) / len(letters) >= _SCRAPS:
        return True
    return any(len(word) >= RANDOM_RUN and _unspeakable(word) for word in words)


def _scraps(word: str) -> int:
    """Pieces of one or two letters or digits; none in a word of two pieces, such as `q3` or `west1`."""
    pieces = _PIECE.findall(word)
    return sum(len(piece) <= 2 for piece in pieces) if len(pieces) > 2 else 0  # noqa: PLR2004 (said above)


def _unspeakable(word: str) -> bool:
    few_vowels = len(_VOWEL.findall(word)) / len(word) < _VOWEL_RATE
    return _entropy(word) >= _ENTROPY and (few_vowels or _BASE32.fullmatch(word) is not None)


def _entropy(text: str) -> float:
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)


_PRIVATE = (_mails, _cards)
"""What belongs to people, and opens nothing."""

_Hint = Callable[[str], bool]
_PREFIXES = re.compile(
    r"AKIA|ASIA|ABIA|ACCA|AROA|AIDA|AGPA|ANPA|AIza|ya29|GOCSPX|Q~|gh[pousr]_|github_pat|gl[a-z]{2,5}-|xox|xapp|hooks\.slack"
    r"|[rsp]k_|whsec|sk-|hf_|api_org|npm_|pypi-|SG\.|dop_v1|dapi|AGE-|eyJ"
)
_FINDERS: tuple[tuple[_Hint, Callable[[str], Iterator[Span]]], ...] = (
    (lambda text: "-----BEGIN" in text or "PuTTY" in text, _all(_KEY_BLOCK)),
    (lambda text: _PREFIXES.search(text) is not None, _all(TOKENS)),
    (lambda text: ":" in text or "=" in text, _all(_HEADER)),
    (lambda text: " " in text or "\t" in text, _bearers),
    (lambda text: " " in text or "\t" in text, _basics),
    (lambda text: "=" in text or ":" in text, _all(ASSIGNED)),
    (lambda text: "@" in text and "://" in text, _all(USERINFO)),
    (lambda text: "@" in text, _mails),
    (lambda text: len(text) >= SHORTEST_CARD, _cards),
    (lambda text: len(text) >= RANDOM_RUN, _random),
)
