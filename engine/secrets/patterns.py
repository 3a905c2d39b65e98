"""Patterns of secrets and private data in text: generic ones, and the vendors' formats of the policy.

The forms of vendors are values (policy/secrets.yaml). What the engine writes is searched for all forms that any
policy of this process has stated so far; before the first one, any long word of letters and digits counts. The key of
the remote model counts whatever its form.

Every pattern reads text in linear time: bounded repeats, or repeats that cannot overlap what follows.
Random-looking text is judged by the scraps that capitals, small letters and digits leave when they alternate,
because entropy alone cannot distinguish `customer-support-tickets-anonymised-2026` from a key.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby, islice
from pathlib import Path

from engine.secrets.forms import UNKNOWN_FORMS, SecretForms
from engine.secrets.lines import RANDOM_RUN, Lines, Matches, Span, beginning, in_lines
from engine.secrets.personal import find_personal
from engine.secrets.seen import UnescapedText, VisibleText

_KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----(?:.*?-----END [A-Z0-9 ]{1,60}-----|.*)"
    r"|PuTTY-User-Key-File-[0-9].*",
    re.DOTALL,
)

_WEB_TOKEN = re.compile(
    r"eyJ(?<![A-Za-z0-9]eyJ)"
    r"(?:[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*)?|(?P<other>[A-Za-z0-9_-]*+))"
)
"""A token, or another word, which is not searched for a token again at each of its characters."""

_HEADER = re.compile(
    r"(?i)(?<![A-Za-z0-9])(?:proxy-)?authorization[\"']?[ \t]{0,8}[:=][ \t]{0,8}[\"']?(?!\[redacted:)[^\r\n\"']+"
    r"|(?<![A-Za-z0-9-])(?:set-)?cookie[\"']?[ \t]{0,8}:[ \t]{0,8}(?!\[redacted:)[^\r\n\"']+"
)
_CREDENTIALS = re.compile(
    r"(?i)[^:=]{0,40}[:=][ \t]{0,8}(?P<quote>[\"']?)[ \t\"']{0,8}(?P<scheme>(?:bearer|basic|digest|token)[ \t]{1,8})?"
    r"(?!(?:bearer|basic|digest|token)[ \t])(?P<value>[a-z0-9+/._~-]{2}[^\s\"',;]*)"
)
_COOKIE = re.compile(r"[^\s=]=(?![$<{%*])[^\s=]")
_PLACEHOLDER = re.compile(r"[A-Z]{1,16}(?:_[A-Z]{1,16})*|(?i:your)(?:[_-][A-Za-z_-]*)?|[a-z_-]{0,8}\.{3}")
"""What stands for a token in an example: `YOUR_API_KEY`, `your-key-here`, `sk-...`."""
_BEARER = re.compile(r"(?i)(?<![A-Za-z0-9])bearer[ \t]{1,8}([A-Za-z0-9._~+/=-]{6,})")
_BASIC = re.compile(r"(?ai)(?<![A-Za-z0-9])basic[ \t]{1,8}([A-Za-z0-9+/]{4,}={0,2})")

ASSIGNED = re.compile(
    r"(?:(?:(?<![A-Za-z0-9])(?:(?P<weak>[kK]ey|KEY|[tT]oken|TOKEN|[sS]ig(?:nature)?|SIG|[aA]uth|AUTH)|(?P<name>[sS]ecret|SECRET"
    r"|[pP]asswor[dt]|[pP]asswd|[pP]wd|PWD|[A-Z0-9]{0,20}(?:PASSWORD|PASSWD|(?<!BY)(?<!COM)PASS)|[pP]assphrase"
    r"|PASSPHRASE|[cC]redentials?|[aA]pi[kK]ey|APIKEY|(?:admin|db|ftp|mail|mysql|root|smtp|ssh|user)_pass))"
    r"|(?<=[a-z])(?:(?P<cased>Key|Token|Signature)|Secret|Password))"
    r"(?:\\?[\"'])?\[?\]?(?::[ \t]?[&\w.\[\]|]{1,40})?[ \t]{0,4}="
    r"(?P<sign>[ \t]{0,4}(?:b(?=[\"']))?\\?[\"']?)(?!\[redacted:)(?!=)(?P<value>[^\s\"'&;,<>]+))"
    r"|(?:(?i:(?<![A-Za-z0-9])(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|secret[_-]?key|client[_-]?secret"
    r"|access[_-]?token|(?:db|mail|smtp)_pass))|(?<=[a-z])(?:Pass(?:word|wd|phrase)|Secret|ApiKey))(?:\\?[\"'])?"
    r"[ \t]{0,4}:[ \t]{0,4}\\?[\"']?(?!\[redacted:)(?=[^\s\"',;]{0,64}[0-9])(?P<told>[^\s\"',;]{6,})"
)

_ASSIGNED_SIGN = re.compile(r"(?i)[a-z_-]{3,16}\\?[\"']?\[?\]?[ \t]{0,4}[:=]")
"""What follows where a name of a secret, or its last word, begins."""

_VERDICTS = frozenset(
    re.findall(
        "[a-z]+",
        "a above again all already also an and any are as at bad be been below blank bool by bytes callable can cannot "
        "case changed char characters confirmed correct default disabled either empty enabled encrypted enforced "
        "entered ever expired false field fine for from given go goes good had has hash hashed have here hidden how "
        "if important in incorrect insecure int invalid is it its kept known least long longer lost managed masked "
        "max maximum may min mine minimum missing must my needed never new nil no none not null object of off ok okay "
        "old on only optional or our out plain private protected provided read redacted required reset right safe "
        "salted same secret secretstr secure see sent set shared short should shown so some specified stale stored str "
        "string strong stronger text that the their then there this to too true type undefined unknown unset until up "
        "updated use used user using valid value varchar verified via was we weak weaker were what when where which "
        "who why will with without wrong xxx yes yet you your ",
    )
)
"""Statements about a password and placeholders for one, which are none."""

_OPTION = frozenset(("argument", "flag", "header", "option", "parameter"))
"""What a text about an option calls it: `the --token flag`."""

NAMED_OPTION = re.compile(
    r"(?i)-(?<![\w-]-)-?(?:[a-z0-9]{1,20}[-_]){0,4}"
    r"(?:pass|password|passwd|passphrase|secret|token|api[-_]?key|secret[-_]?key|access[-_]?key)"
    r"[ \t]{1,4}[\"']?(?![-$<{%*\[])([^\s\"'|;&<>]{1,256})"
)
_SPOKEN = re.compile(
    r"(?i)(?<![A-Za-z0-9])(?:passwor[dt]|passwd|passphrase|passcode)[\"']?[ \t]{0,4}"
    r"(?::?=|:|[ \t](is|was)(?=[ \t:])|[ \t](?=[\"'])|>(?=[^<\s\"']{4,200}</))[ \t:]{0,4}([^\r\n,;]{1,200})"
)
_DONE = re.compile(r"[a-z]{3,20}ed")
"""What was done with a password: `the password was returned`."""
_TYPED = re.compile(r"[\w.\[\]| ]{1,60}[ \t]=[ \t]{1,4}[bru]?[\"'](?![$<{%*])[^\"'\s]{4}")
"""A type, and then the text that it is of: `str = "…"`."""
STATED = re.compile(
    r"(?i)(?<!\w)(?:identified[ \t]{1,4}by[ \t]{1,4}'"
    r"|define\([ \t]{0,4}[\"']\w{0,40}(?:password|secret|_key|_salt)[\"'],[ \t]{0,4}[\"']"
    r"|name[\"']?[ \t]{0,4}:[ \t]{0,4}[\"']?\w{0,40}(?:password|secret|token|api_?key)[\"']?,?\s{0,40}"
    r"[\"']?value[\"']?[ \t]{0,4}:[ \t]{0,4}[\"']?)(?![$<{%*\[])([^\s\"']{4,256})"
)
"""A password that the word before it does not assign: of SQL, of PHP's constants, of a variable of a container."""
DATA_SOURCE = re.compile(
    r"(?<![A-Za-z0-9_.%+-])[A-Za-z0-9_.%+-]{1,64}:(?!\[redacted:)[^\s:@\"']{1,128}@(?:tcp6?|udp|unix)?\("
)
_NETRC = re.compile(
    r"(?i)(?<![A-Za-z0-9])(?:machine\s{1,8}\S{1,255}|default)\s{1,8}login\s{1,8}\S{1,255}\s{1,8}"
    r"(?:password|passwd)\s{1,8}\S{1,255}"
)
SEED = re.compile(r"(?<![A-Za-z])[A-Za-z]{3,8}(?:[\s,]{1,3}[A-Za-z]{3,8}){11,}(?![A-Za-z])")
_LETTERS = re.compile(r"[A-Za-z]+")
_SEED_NAME = (
    r"(?i)(?:seed|mnemonic|recovery|backup)[ _-]?(?:phrase|words?|key)?[\"']?[ \t]{0,4}(?:[:=]|is)\s{0,4}[\"']?"
)
_SEED_NAMED = re.compile(rf"{_SEED_NAME}\Z")
_SEED_BEHIND_NAME = re.compile(rf"{_SEED_NAME}[a-z]{{3,8}}(?:[\s,]{{1,3}}[a-z]{{3,8}}){{11}}")
_SEED_NAMES = (b"seed", b"mnemonic", b"recovery", b"backup")
_SEED_WORDS = 12
"""The words of the shortest seed phrase (BIP 39)."""
_SMALL_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
_GAPS = bytes(32 if byte in b"\t\n\v\f\r\x1c\x1d\x1e\x1f ,?" else 120 for byte in range(256))
"""Blanks and commas; `?` may be a blank beyond ASCII."""
_SEED_CHARACTERS = 4 * _SEED_WORDS - 1
_SEED_REPEATED = 30
"""More words than the longest seed phrase and its neighbours: a longer text with few different words contains none."""
_SEED_DIFFERENT = 10
"""Number of different words in a longer text with a seed phrase; of twelve random words, hardly two are equal."""

USERINFO = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://(?!\[redacted:)[^\s/?#@]+@(?:[^\s/?#@]*@)*")
_USER_SIGN = re.compile(r"://[^\s/?#@]+@")
_STAND_INS = _VERDICTS | {"pass", "passwd", "password", "pwd", "username"}
"""Users and passwords in examples of addresses."""
_NAMED_LATER = re.compile(r"\$(?:\{[^{}]*\}|[A-Z_]+)|\{+[^{}]*\}+|<[^<>]*>|\*+")
"""What stands for a password until a program or a person puts it in: `${DB_PASSWORD}`, `{password}`, `<password>`."""
_MAIL_NAME = re.compile(r"[^\s@<>\"'(),:;\[\]\\/=?&|`${}^*]{1,64}\Z")
MAIL_HOST = re.compile(r"@(?:[^\s@<>\"'(),:;\[\]\\/=?&|.!`${}^*]{1,63}\.){1,8}[^\W\d_][\w-]{0,61}\w")
_NOBODY = "git"
"""The user in addresses of repositories, such as `git@host:path`."""
_CARD_BEGIN = re.compile(r"[2-6](?<![A-Za-z0-9.].)(?=[0-9 -]{12})")
_CARD = re.compile(
    r"(?=((?:[2-6][0-9]{12,18}|[2-6][0-9]{3}(?:[ -][0-9]{4}){3}|3[0-9]{3}[ -][0-9]{6}[ -][0-9]{4,5})"
    r"(?![A-Za-z0-9])(?!\.[0-9])))(?=(\1[ -][0-9]{1,3}(?![A-Za-z0-9])(?!\.[0-9]))?)"
)
"""A number, and the same with a last group that may be of it, a code or a date. One may begin within another."""
SHORTEST_CARD = 13
_CARD_PREFIX = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})|(?:5[1-5]|2[2-7])[0-9]{14}|3[47][0-9]{13}|3[0689][0-9]{12}"
    r"|(?:6011|64[4-9][0-9]|65[0-9]{2}|35[2-8][0-9])[0-9]{12}|62[0-9]{14,17}"
)

_RUN = re.compile(r"[A-Za-z0-9+/_=-]{33,}")
_HARMLESS = re.compile(
    r"[0-9A-Fa-f](?<![A-Za-z0-9].)(?:(?<![A-F])[0-9a-f]{63}|[0-9A-Fa-f]{7}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})"
    r"(?![A-Za-z0-9])"
)
_LABELLED_DIGEST = re.compile(
    r"(?<![A-Za-z0-9])(?:sha256:[0-9a-f]{64}|sha1:[0-9a-f]{40}|sha224:[0-9a-f]{56}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})"
    r"(?![A-Za-z0-9])"
)
_PUBLIC = re.compile(
    r"(?<![A-Za-z0-9])(?:sha(?:1|224|256|384|512)[:-](?:[0-9a-f]{40,128}|[A-Za-z0-9+/]{27,88}={0,2})|h1:[A-Za-z0-9+/]{43}="
    r"|(?:[0-9a-f]{40}|[0-9a-f]{56}|[0-9a-f]{60}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128})(?![A-Za-z0-9])"
    r"|data:[a-z0-9.+/-]{1,100}(?:;[a-z]{1,20}=[a-z0-9-]{1,40})?;base64,[A-Za-z0-9+/=]+"  # RFC 2397
    r"|-----BEGIN (?:CERTIFICATE|CERTIFICATE REQUEST|PUBLIC KEY|RSA PUBLIC KEY)-----\s{1,4}MI[A-Za-z0-9+/=\s]+"
    r"|(?<![A-Za-z0-9])(?:chatcmpl-[A-Za-z0-9]{29}"
    r"|(?:resp|msg|rs|fc|ci|ws|fs|cntr|mcpr)_[0-9a-f]{48,64})(?![A-Za-z0-9])"  # of answers
    r"|AAAA(?:B3NzaC1|C3NzaC1|E2VjZHNh|Gnsk)[A-Za-z0-9+/=]+"  # public keys of SSH
    r"|(?:cp|pp|py)[0-9]{1,4}t?-(?:abi3|none|cp[0-9]{2,4}t?)-(?:many|musl)linux[0-9_]{0,10}_?"
    r"(?:aarch64|armv7l|i686|ppc64le|riscv64|s390x|x86_64)(?![A-Za-z0-9])"  # platforms of Python packages
    r"|(?:iVBORw0KGgo|/9j/|R0lGOD|UklGR|JVBERi0|UEsDB|H4sI|PHN2Zy|AGFzbQ|d09GR)[A-Za-z0-9+/=]{60,})"  # files
    r"|abcdefghijklmnopqrstuvwxyz|ABCDEFGHIJKLMNOPQRSTUVWXYZ|0123456789"
)
_PATH_OR_URL = re.compile(
    r"(?:(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,30}://|(?<![\w.-])[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}/"
    r"|(?<![\w.~/+-])(?:~|\.{0,2})/(?=[a-z._-]{1,40}/))[^\s\"'<>?#]*"
)
"""A URL without its query, or a path: not what looks like one because base64 has slashes too."""
_BETWEEN_WORDS = re.compile(r"/|(?<![A-Za-z0-9])[0-9a-f]{7,12}(?![A-Za-z0-9])")
"""What separates the words of a path or URL: slashes, and the short ids of commits and articles."""
_REFERENCE = re.compile(
    r"[\"']?(?:[$<{%*]|[A-Za-z_](?:[A-Za-z0-9_.]|\?\.|::|->)*[(\[{])|`[^`\n]{0,64}\$\{|[&(]|\[(?!\]byte\(\")"
    r"|[fF][rR]?[\"']|(?:await|lambda|new|not|yield)(?=[ \t:])"
    r"|[\"']?:?(?:[xX]{3,}|\*+)(?!\w)|(?:\"\"|'')(?=[.\s)+,;]|\Z)|\?(?=[\s\"',;)]|\Z)"
    r"|[0-9]{1,3}(?=[\"',;)\]}]|[ \t]*(?:[\[#\r\n]|\Z))"
)
_DOTTED = re.compile(r"[A-Za-z_$][A-Za-z_$]*(?:(?:\??\.|::|->)[A-Za-z_$]+)*")
_CLOSED = re.compile(r"[)\]}:.]")
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|::|->)[\w$]+)*", re.ASCII)
_DOCUMENTED = re.compile(r"[:@](?:param|arg)[ \t][\w.\[\] \t]{0,40}\Z")
"""What precedes the name of a parameter in its documentation."""
_PLAIN = re.compile(r"[A-Za-z_.~/-]+|[0-9]+(?:\.[0-9]+)+|[A-Za-z_-]+(?:[.:](?:[A-Za-z_-]+|v?[0-9]{1,3})){2,}")
"""A file, a version, or a name of several words such as `app.settings.v1` and `user:1:name`."""
_OPERATORS = frozenset({"and", "else", "if", "in", "is", "not", "or"})
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

_SHORT_WORD = 3
"""Characters of a word that is no part of a key, such as `v0x`."""

_ENTROPY = 3.0
"""Bits a character; 33 random hex digits have about 3.6, `a1a1a1…` has 1."""


_VOWEL_RATE = 0.25
"""Vowels a letter: English words have about 0.4, random letters 0.23."""

_SHORT_KEY = 7
_LONG_KEY = 12
"""Minimum lengths of a value named `key` or `token`: with letters and digits, and of any kind."""

_OPAQUE = 20
"""Characters from which a word after `Bearer` is a token even without a digit."""


_ASCII_OF: dict[int, str] = {
    **{0xFF00 + code: chr(0x20 + code) for code in range(1, 0x5F)},
    **dict.fromkeys((0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000), " "),
    **dict.fromkeys((*range(0x2010, 0x2014), 0x2212), "-"),
}
"""The characters of ASCII that full-width ones, spaces and dashes look like."""

_LIKE_ASCII = re.compile(f"[{''.join(map(chr, _ASCII_OF))}]+")

_known = UNKNOWN_FORMS
_keys: frozenset[str] = frozenset()


def know(forms: SecretForms) -> None:
    """Add forms of secrets that this process redacts from now on; forms are never removed."""
    global _known  # noqa: PLW0603  (per process, like its log: secrets must be removed from everything that it writes)
    _known = _known | forms


def known_forms() -> SecretForms:
    """The forms of all policies that this process has loaded."""
    return _known


def know_key(key: str) -> None:
    """Take this text for a secret from now on, whatever its form and the policy; keys are never removed."""
    global _keys  # noqa: PLW0603  (as for `know`)
    _keys |= {key}


def known_keys(text: str) -> Iterator[Span]:
    """Spans of the keys that this process knows."""
    for key in _keys:
        at = text.find(key)
        while at >= 0:
            yield at, at + len(key)
            at = text.find(key, at + 1)


def find_secrets(text: str, forms: SecretForms | None = None) -> Iterator[Span]:
    """Spans of `text` that must not be written anywhere, unordered and possibly overlapping.

    Also as people see the text: invisible characters, full-width letters and escapes of JSON hide nothing.
    """
    known = _known if forms is None else forms
    for reading, placed in _readings(known.unpublished(text)):
        yield from placed(known_keys(reading))
        yield from placed(known.spans(reading))
        lines = Lines(reading)
        for finder in _finders(lines):
            yield from placed(finder.all(lines))


def find_credentials(text: str, forms: SecretForms) -> Iterator[Span]:
    """Spans of keys, tokens and passwords, unordered and possibly overlapping.

    Narrower than `find_secrets`: mail addresses, card numbers, account names, digests, images and statements about
    passwords do not count.
    """
    for reading, placed in _readings(forms.unpublished(text)):
        yield from placed(known_keys(reading))
        yield from placed(forms.spans(reading))
        lines = Lines(reading)
        for finder in _finders(lines):
            if finder.secrets is not None:
                yield from placed(finder.secrets(lines))


def is_secret(text: str, forms: SecretForms) -> bool:
    """Whether a text contains a key, token or password, as `find_credentials` finds them."""
    return next(find_credentials(text, forms), None) is not None


def find_private(text: str) -> Iterator[Span]:
    """Spans of mail addresses, numbers of payment cards and `find_personal`, also as people see the text."""
    for reading, placed in _readings(text):
        lines = Lines(reading)
        for find in (_mails, _cards, find_personal):
            yield from placed(find(lines))


_Placed = Callable[[Iterable[Span]], Iterator[Span]]


def _readings(text: str) -> Iterator[tuple[str, _Placed]]:
    """A text as it is, as people see it, and without escapes, with what places spans of the reading in the text.

    A hidden character or an escape may divide a secret from the word before it, or the secret itself.
    """
    yield from _visible(text)
    if "\\" in text:
        meant = UnescapedText(text)
        if meant.text != text:
            for reading, placed in _visible(meant.text):
                yield reading, partial(_spans_of, meant, placed)


def _spans_of(meant: UnescapedText, placed: _Placed, found: Iterable[Span]) -> Iterator[Span]:
    return meant.spans(placed(found))


def _visible(text: str) -> Iterator[tuple[str, _Placed]]:
    yield text, iter
    if text.isascii():
        return
    plain = _LIKE_ASCII.sub(lambda run: run[0].translate(_ASCII_OF), text)
    if plain != text:
        yield plain, iter
    seen = VisibleText(plain)
    if seen.text != plain:
        yield seen.text, seen.spans


def find_secrets_across(words: Sequence[str]) -> Iterator[Span]:
    """Spans, in the words joined by blanks, of secrets that only several words form together."""
    lines = Lines(" ".join(words))
    if any(word.startswith("-") for word in words):
        yield from _known.spans(lines.text)
        yield from _named_options(lines)
    yield from _seeds(lines)
    yield from _in_words(lines)
    yield from _spans(_NETRCS)(lines)


def _spans(matches: Matches) -> _Find:
    return lambda lines: map(re.Match.span, matches(lines))


def _web_tokens(lines: Lines) -> Iterator[Span]:
    return (match.span() for match in _WEB_TOKEN.finditer(lines.text) if match["other"] is None)


def _bearers(lines: Lines) -> Iterator[Span]:
    for match in _BEARERS(lines):
        token = match[1].rstrip(".=-")
        digits = any(character.isdigit() for character in token)
        if digits or (len(token) >= _OPAQUE and not _PLACEHOLDER.fullmatch(token)):
            yield match.span()


def _basics(lines: Lines) -> Iterator[Span]:
    for match in _BASICS(lines):
        padded = match[1].rstrip("=")
        try:
            decoded = base64.b64decode(padded + "=" * (-len(padded) % 4))
        except binascii.Error:
            continue
        if b":" in decoded and (decoded.decode("latin-1").isprintable() or _is_utf8(decoded)):
            yield match.span()


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _headers(lines: Lines) -> Iterator[Span]:
    """Headers, except statements about cookies: a real cookie has a name and a value."""
    for match in _HEADERS(lines):
        if _COOKIE.search(match[0]) if "cookie" in match[0][:10].lower() else _has_credentials(match[0]):
            yield match.span()


def _has_credentials(header: str) -> bool:
    """Whether the value of a header is a credential, and no example, call or name in code."""
    match = _CREDENTIALS.match(header)
    if match is None or _PLACEHOLDER.fullmatch(match["value"]):
        return False
    if match["quote"] or match["scheme"]:
        return True
    if _REFERENCE.match(header, match.start("value")):
        return False
    bare, behind = match["value"].rstrip(")]}"), header[match.end() :].split()
    alone = not behind or not behind[0][0].isalnum() or behind[0] in _OPERATORS
    in_code = bare != match["value"] or header[match.end() :].startswith(",") or " = " in header[: match.start("value")]
    return not (alone and _DOTTED.fullmatch(bare) and (in_code or "." in bare or bare.lower() in _VERDICTS))


def _assigned_secrets(lines: Lines) -> Iterator[Span]:
    """Assignments, except names of values, calls, references, and statements about a password."""
    for match in _ASSIGNMENTS(lines):
        kind = "told" if match["value"] is None else "value"
        named = kind == "value" and _names_a_value(match, lines.text[match.end() : match.end() + 1])
        if not named and not _REFERENCE.match(lines.text, match.start(kind)):
            yield match.span()


def _names_a_value(match: re.Match[str], behind: str) -> bool:
    """Whether the assigned value is a statement about a password, too plain for a key, or a program variable."""
    value, sign = match["value"], match["sign"]
    plain_value = _CLOSED.split(value, maxsplit=1)[0].lower()
    weak, name = match["weak"] or match["cased"], match["name"] or ""
    names_itself = name != "" and plain_value == name.lower()
    if plain_value in _VERDICTS or names_itself or (name == "PWD" and value.startswith("/")):
        return True
    if weak and (_PLAIN.fullmatch(value) or not _is_opaque(value)):
        return True
    bare = re.split(r"[)\]}:]", value, maxsplit=1)[0].rstrip(".")
    if sign.endswith(("'", '"')) or not (_DOTTED.fullmatch(bare) or (weak and sign and _is_identifier(bare))):
        return False
    spaced, in_brackets = sign != "", bare != value or behind == ","
    return bool(weak) or spaced or in_brackets or "." in bare or name.lower() in bare.lower()


def _is_identifier(text: str) -> bool:
    """Whether a text is the name of a variable: several words, perhaps with numbers, and not random."""
    if len(_PIECE.findall(text)) <= 2 or _IDENTIFIER.fullmatch(text) is None:  # noqa: PLR2004 (as for scraps)
        return False
    return sum(map(_scraps, _WORD.findall(text))) / len(text) < _SCRAPS


def _is_opaque(value: str) -> bool:
    """Whether a value may be a key: a mix of at least seven letters and digits, or many characters."""
    mixed = any(character.isdigit() for character in value) and any(character.isalpha() for character in value)
    return len(value) >= _LONG_KEY or (mixed and len(value) >= _SHORT_KEY)


def _logins(lines: Lines) -> Iterator[Span]:
    """Passwords in addresses, except what stands for one; over HTTP a name alone may be a token."""
    for match in _USERS(lines):
        scheme, _, name = match[0].removesuffix("@").partition("://")
        user, colon, password = name.partition(":")
        held = password or user
        stands_in = held.lower() in _STAND_INS or (not colon and user == _NOBODY) or _NAMED_LATER.fullmatch(held)
        if ("http" in scheme.lower() or colon) and not stands_in:
            yield match.span()


def _named_options(lines: Lines) -> Iterator[Span]:
    for match in _NAMED_OPTIONS(lines):
        if match[1].strip(".,:`)").lower() not in _VERDICTS | _OPTION:
            yield match.span()


def _in_words(lines: Lines) -> Iterator[Span]:
    """A password of words: `password is correct horse`. A statement like `password is required` does not count."""
    for match in _PASSWORDS(lines):
        if _TYPED.match(match[2]):
            yield match.span()
            continue
        words = match[2].partition("</")[0].strip(" \t\"'`.!?)").lower().split()
        if words[1:] and words[0] == "correct":
            del words[0]
        seed = [word.rstrip(")]}:") or word for word in words[: 1 if match[1] is None else 3]]
        if not seed or _REFERENCE.match(match[2]) or not _VERDICTS.isdisjoint(seed) or _is_expression(match, words):
            continue
        if match[1] is not None and len(words) == 1 and _DONE.fullmatch(words[0]):
            continue
        names_itself = seed[0] == _LETTERS.findall(match[0])[0].lower()
        if names_itself or _DOCUMENTED.search(lines.text, max(0, match.start() - 60), match.start()):
            continue
        yield match.span()


def _is_expression(match: re.Match[str], words: list[str]) -> bool:
    """Whether a program assigns a password: `=` and a name alone or before an operator, or a name with dots."""
    name, sign = _LETTERS.findall(match[0])[0].lower(), match[0][: match.start(2) - match.start()]
    first = words[0].rstrip(")]}:")
    if "=" in sign and first.startswith("="):
        return True
    if match[1] is not None or _DOTTED.fullmatch(first) is None or match[2][0] in "\"'":
        return False
    alone = len(words) == 1 or not words[1].isalpha() or words[1] in _OPERATORS
    return name in first or (alone and ("=" in sign or "." in first))


def _stated(lines: Lines) -> Iterator[Span]:
    return (match.span() for match in _STATEMENTS(lines) if match[1].lower() not in _VERDICTS)


def _seeds(lines: Lines) -> Iterator[Span]:
    """Twelve words or more of the list of seed phrases, or fewer that are named as one."""
    text = lines.text
    for match in SEED.finditer(text) if _may_have_seeds(lines) else ():
        words = match[0].lower().replace(",", " ").split()
        named = _SEED_NAMED.search(text, max(0, match.start() - 40), match.start()) is not None
        if named and _VERDICTS.isdisjoint(words[:_SEED_WORDS]):
            yield match.span()
            continue
        words_of_text = _LETTERS.finditer(text, match.start(), match.end())
        for listed, run in groupby(words_of_text, key=lambda word: word[0].lower() in _seed_words()):
            found = list(run)
            few = len(found) <= _SEED_REPEATED
            different = few or len({word[0].lower() for word in found}) >= _SEED_DIFFERENT
            if listed and len(found) >= _SEED_WORDS and different:
                yield found[0].start(), found[-1].end()


def _may_have_seeds(lines: Lines) -> bool:
    """Whether many listed words follow each other, the first and the last perhaps in quotes, or any behind a name."""
    if b" " * (_SEED_WORDS - 1) not in lines.low.translate(_GAPS, _SMALL_LETTERS):
        return False
    words = lines.text.lower().replace(",", " ").split()
    if b"\1" * (_SEED_WORDS - 2) in bytes(map(_seed_words().__contains__, words)):
        return True
    return any(_SEED_BEHIND_NAME.match(lines.text, place) for place in lines.places(_SEED_NAMES))


@cache
def _seed_words() -> frozenset[str]:
    """The English list of BIP 39."""
    return frozenset(Path(__file__).with_name("seed_words.txt").read_text(encoding="utf-8").split())


def _mails(lines: Lines) -> Iterator[Span]:
    text = lines.text
    for match in MAIL_HOST.finditer(text) if "@" in text else ():
        begin = max(0, match.start() - 64)
        name = _MAIL_NAME.search(text[begin : match.start()])
        if name is not None and name[0] != _NOBODY:
            yield begin + name.start(), match.end()


def _cards(lines: Lines) -> Iterator[Span]:
    if _CARD_BEGIN.search(lines.text) is None:
        return
    text = _blanked(_HARMLESS, lines.text)
    for begin in _CARD_BEGIN.finditer(text):
        if (match := _CARD.match(text, begin.start())) is not None:
            for group in (1, 2):
                if is_card((match[group] or "").replace(" ", "").replace("-", "")):
                    yield match.span(group)


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


def _random_secrets(text: str) -> Iterator[Span]:
    """Random text, except digests of commits and packages, public keys, and encoded file content."""
    plain = _PATH_OR_URL.sub(lambda way: _blanked(_BETWEEN_WORDS, way[0]), _blanked(_PUBLIC, text))
    for match in _RUN.finditer(plain):
        run = match[0]
        if not run.rstrip("n").isdigit() and _DRAWING.fullmatch(run) is None and looks_random(run):
            yield match.span()


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda match: " " * len(match[0]), text)


def looks_random(run: str) -> bool:
    """Whether a run of letters, digits and `+/_=-` without named digests is not composed of words and dates."""
    words = _WORD.findall(_HARMLESS.sub("/", run))
    letters, scraps = "".join(words), [_scraps(word) for word in words]
    long_enough = len(letters) >= RANDOM_RUN - 4  # base64 may have as many separators
    random = sum(len(word) for word, found in zip(words, scraps, strict=True) if found)
    scrappy = long_enough and random >= _RANDOM_LETTERS and sum(scraps) / len(letters) >= _SCRAPS
    if scrappy and _entropy(letters) >= _ENTROPY:
        return True
    return any(len(word) >= RANDOM_RUN and _unspeakable(word) for word in words)


def _scraps(word: str) -> int:
    """Pieces of one or two letters or digits; none in a word of two pieces, such as `q3` or `west1`."""
    pieces = _PIECE.findall(word) if len(word) > _SHORT_WORD else []
    return sum(len(piece) <= 2 for piece in pieces) if len(pieces) > 2 else 0  # noqa: PLR2004 (explained above)


def _unspeakable(word: str) -> bool:
    if _COMPOUND.fullmatch(word):
        return False
    few_vowels = len(_VOWEL.findall(word)) / len(word) < _VOWEL_RATE
    return (few_vowels or _BASE32.fullmatch(word) is not None) and _entropy(word) >= _ENTROPY


def _entropy(text: str) -> float:
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)


_Find = Callable[[Lines], Iterable[Span]]


@dataclass(frozen=True, slots=True)
class _Finder:
    """What finds everything and secrets alone in texts with one of these words: None for private data.

    Without words, it searches texts of at least so many characters.
    """

    words: tuple[bytes, ...]
    all: _Find
    secrets: _Find | None
    least: int = 0


def _same(words: tuple[bytes, ...], find: _Find) -> _Finder:
    return _Finder(words, find, find)


def _finders(lines: Lines) -> list[_Finder]:
    """Those that may find something."""
    present, size = {word for word in _WORDS if word in lines.low}, len(lines.text)
    named = [finder for finder in _FINDERS if not present.isdisjoint(finder.words)] if present else []
    return [*named, *(finder for finder in _UNNAMED if size >= finder.least)]


def _in_runs(find: Callable[[str], Iterator[Span]]) -> _Find:
    """Of the pieces with a long run; of the whole text if it may have a certificate, whose lines belong together."""

    def found(lines: Lines) -> Iterator[Span]:
        pieces = lines.with_runs()
        if "-----BEGIN" in lines.text:
            pieces = ((0, len(lines.text)) for _ in islice(pieces, 1))
        for start, end in pieces:
            yield from ((start + first, start + last) for first, last in find(lines.text[start:end]))

    return found


_ASSIGNED_WORDS = (b"key", b"token", b"sig", b"auth", b"secret", b"pass", b"pwd", b"credential")
_OPTION_WORDS = (b"pass", b"secret", b"token", b"key")
_STATED_WORDS = (b"identified", b"define(", b"name")
_HEADERS = beginning(_HEADER, (b"authorization", b"cookie"), before=len("proxy-"))
_BEARERS = beginning(_BEARER, (b"bearer",))
_BASICS = beginning(_BASIC, (b"basic",))
_ASSIGNMENTS = beginning(ASSIGNED, _ASSIGNED_WORDS, before=20, sign=_ASSIGNED_SIGN)
_NAMED_OPTIONS = in_lines(NAMED_OPTION, _OPTION_WORDS, "-")
_PASSWORDS = beginning(_SPOKEN, (b"pass",))
_STATEMENTS = beginning(STATED, _STATED_WORDS)
_NETRCS = beginning(_NETRC, (b"machine", b"default"))
_SOURCES = in_lines(DATA_SOURCE, (b"@(", b"@tcp", b"@udp", b"@unix"), ":")
_USERS = beginning(USERINFO, (b"://",), before=31, sign=_USER_SIGN)
_FINDERS: tuple[_Finder, ...] = (
    _same((b"-----begin", b"putty"), _spans(lambda lines: _KEY_BLOCK.finditer(lines.text))),
    _same((b"eyj",), _web_tokens),
    _Finder((b"auth", b"cookie"), _spans(_HEADERS), _headers),
    _same((b"bearer",), _bearers),
    _same((b"basic",), _basics),
    _Finder(_ASSIGNED_WORDS, _spans(_ASSIGNMENTS), _assigned_secrets),
    _same(_OPTION_WORDS, _named_options),
    _same((b"pass",), _in_words),
    _same(_STATED_WORDS, _stated),
    _same((b"login",), _spans(_NETRCS)),
    _same((b"@",), _spans(_SOURCES)),
    _Finder((b"://",), _spans(_USERS), _logins),
    _Finder((b"@",), _mails, None),
)
_UNNAMED = (
    _Finder((), _cards, None, SHORTEST_CARD),
    _Finder((), _in_runs(_random), _in_runs(_random_secrets), RANDOM_RUN),
    _Finder((), _seeds, _seeds, _SEED_CHARACTERS),
)
_WORDS = frozenset(word for finder in _FINDERS for word in finder.words)
