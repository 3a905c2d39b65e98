"""Passwords and keys that a text names: assignments, options, sentences, addresses with a user."""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.secrets.finder import Finder, same, spans
from engine.secrets.lines import Lines, Span, beginning, in_lines
from engine.secrets.randomness import is_identifier
from engine.secrets.stand_ins import DOTTED, NOBODY, OPERATORS, REFERENCE, VERDICTS, is_default, stands_in

ASSIGNED = re.compile(
    r"(?:(?:(?<![A-Za-z0-9])(?:(?P<weak>[kK]ey|KEY|[tT]oken|TOKEN|[sS]ig(?:nature)?|SIG|[aA]uth|AUTH)|(?P<name>[sS]ecret|SECRET"
    r"|[pP]asswor[dt]|[pP]asswd|[pP]wd|PWD|[A-Z0-9]{0,20}(?:PASSWORD|PASSWD|(?<!BY)(?<!COM)PASS)|[pP]assphrase"
    r"|PASSPHRASE|[cC]redentials?|[aA]pi[kK]ey|APIKEY|(?:admin|db|ftp|mail|mysql|root|smtp|ssh|user)_pass))"
    r"|(?<=[a-z])(?:(?P<cased>Key|(?<![Pp]ublicKey)Token|Signature)|Secret|Password))"
    r"(?:\\?[\"'])?\[?\]?(?::[ \t]?[&\w.\[\]|]{1,40})?[ \t]{0,4}="
    r"(?P<sign>[ \t]{0,4}(?:b(?=[\"']))?\\?[\"']?)(?!\[redacted:)(?!=)(?P<value>[^\s\"'&;,<>]+))"
    r"|(?:(?i:(?<![A-Za-z0-9])(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|secret[_-]?key|client[_-]?secret"
    r"|access[_-]?token|(?:db|mail|smtp)_pass))|(?<=[a-z])(?:Pass(?:word|wd|phrase)|Secret|ApiKey))(?:\\?[\"'])?"
    r"[ \t]{0,4}:[ \t]{0,4}\\?[\"']?(?!\[redacted:)(?=[^\s\"',;]{0,64}[0-9])(?P<behind_colon>[^\s\"',;]{6,})"
)
_ASSIGNED_SIGN = re.compile(r"(?i)[a-z_-]{3,16}\\?[\"']?\[?\]?[ \t]{0,4}[:=]")
"""What follows where a name of a secret, or its last word, begins."""
_OPTION = frozenset(("argument", "flag", "header", "option", "parameter"))
"""What a text about an option calls it: `the --token flag`."""
NAMED_OPTION = re.compile(
    r"(?i)-(?<![\w-]-)-?(?:[a-z0-9]{1,20}[-_]){0,4}"
    r"(?:pass|password|passwd|passphrase|secret|token|api[-_]?key|secret[-_]?key|access[-_]?key)"
    r"[ \t]{1,4}[\"']?(?![-$<{%*\[])([^\s\"'|;&<>]{1,256})"
)
_MOUNTED = re.compile(r"(?i)--secret[ \t]{1,4}[\"']?(?:(?:id|source|src)=[\w.-]+(?:,|\Z)|[\w.-]+,(?:type|target)=)")
"""A secret that a container is given by its name: `--secret id=npmrc,src=.npmrc`."""
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
    r"(?<![A-Za-z0-9_.%+-])[A-Za-z0-9_.%+-]{1,64}:(?!\[redacted:)([^\s:@\"'\x00-\x1f\x7f-\x9f\ufffd]{1,128})@"
    r"(?:(?:tcp6?|udp|unix)\(|\([\w.:/\[\]-]{1,255}\))"
)
"""Of a database in Go. Bytes of a picture or an archive read as text have `:` and `@(` in them, but no address."""
_NETRC = re.compile(
    r"(?i)(?<![A-Za-z0-9])(?:machine\s{1,8}\S{1,255}|default)\s{1,8}login\s{1,8}\S{1,255}\s{1,8}"
    r"(?:password|passwd)\s{1,8}(\S{1,255})"
)
USERINFO = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://(?!\[redacted:)[^\s/?#@]+@(?:[^\s/?#@]*@)*")
_USER_SIGN = re.compile(r"://[^\s/?#@]+@")
_NAMED_LATER = re.compile(r"\$(?:\{[^{}]*\}|[A-Z_]+)|\{+[^{}]*\}+|<[^<>]*>|\[[a-z_ -]*\]|%[a-z]|\*+")
"""What stands for a password until a program or a person puts it in: `${DB_PASSWORD}`, `{password}`, `<password>`."""
_CLOSED = re.compile(r"[)\]}:.\uff09]")
_DOCUMENTED = re.compile(r"[:@](?:param|arg)[ \t][\w.\[\] \t]{0,40}\Z")
"""What precedes the name of a parameter in its documentation."""
_PLAIN = re.compile(r"[A-Za-z_.~/-]+|[0-9]+(?:\.[0-9]+)+|[A-Za-z_-]+(?:[.:](?:[A-Za-z_-]+|v?[0-9]{1,3})){2,}")
"""A file, a version, or a name of several words such as `app.settings.v1` and `user:1:name`."""
_WORDY = re.compile(r"(?:[A-Za-z]+[0-9]{0,4}|[0-9]{1,4})(?:[._:/-](?:[A-Za-z]+[0-9]{0,4}|[0-9]{1,4}))+")
"""The name of an entry in a cache or table: `user_123`, `bm25_doc_ids`."""
_CONTINUED = re.compile(r"\r?\n\s*\??\.\w")
"""The next line of an expression: its next method."""
_LABEL = re.compile(r"(?:[a-z /-]*[ /-])?(?:passwor[dt]|passwd|passphrase|passcode)")
"""Words about a password: `Show password`, `/auth/change-password`."""
_CLOSING = re.compile(r"(?<=\w)[\"'`](?=[\s)}\],:]|\Z)")
_SHORT_KEY = 7
_LONG_KEY = 12
"""Minimum lengths of a value named `key` or `token`: with letters and digits, and of any kind."""
_LETTERS = re.compile(r"[A-Za-z]+")
_VARIABLE = re.compile(r"[a-z_$][\w$]*(?:\??\.[a-z_$][\w$]*)*", re.ASCII)

_ASSIGNED_WORDS = (b"key", b"token", b"sig", b"auth", b"secret", b"pass", b"pwd", b"credential")
_OPTION_WORDS = (b"pass", b"secret", b"token", b"key")
_STATED_WORDS = (b"identified", b"define(", b"name")
_ASSIGNMENTS = beginning(ASSIGNED, _ASSIGNED_WORDS, before=20, sign=_ASSIGNED_SIGN)
_NAMED_OPTIONS = in_lines(NAMED_OPTION, _OPTION_WORDS, "-")
_PASSWORDS = beginning(_SPOKEN, (b"pass",))
_STATEMENTS = beginning(STATED, _STATED_WORDS)
_NETRCS = beginning(_NETRC, (b"machine", b"default"))
_SOURCES = in_lines(DATA_SOURCE, (b"@(", b"@tcp", b"@udp", b"@unix"), ":")
_USERS = beginning(USERINFO, (b"://",), before=31, sign=_USER_SIGN)


def _assigned_secrets(lines: Lines) -> Iterator[Span]:
    """Assignments, except names of values, calls, references, and statements about a password."""
    for match in _ASSIGNMENTS(lines):
        kind = "behind_colon" if match["value"] is None else "value"
        bare = kind == "value" and _names_a_value(match, lines.text[match.end() : match.end() + 1])
        named = bare or _is_variable(match, kind) or is_default(lines.text, match.start(), match[kind])
        if not named and not stands_in(match[kind]) and not REFERENCE.match(lines.text, match.start(kind)):
            yield match.span()


def _names_a_value(match: re.Match[str], behind: str) -> bool:
    """Whether the assigned value is a statement about a password, too plain for a key, or a program variable."""
    value, sign = match["value"].rstrip("\\`\u2019\u201d"), match["sign"]
    plain_value = _CLOSED.split(value, maxsplit=1)[0].lower()
    weak, name = match["weak"] or match["cased"] or "", match["name"] or ""
    names_itself = name != "" and plain_value.replace("_", "") == name.lower()
    folder = name == "PWD" and value.startswith("/")
    if names_itself or folder or (plain_value[2:] and stands_in(plain_value)):
        return True
    of_table = weak.lower() == "key" and match.string[match.start() - 1 : match.start()] not in {"_", "-"}
    if weak and (_PLAIN.fullmatch(value) or not _is_opaque(value) or (of_table and _WORDY.fullmatch(value))):
        return True
    bare = re.split(r"[)\]}:]", value, maxsplit=1)[0].rstrip(".")
    bare = bare.removesuffix("!") if "." in bare else bare  # TypeScript: `process.env.TOKEN!` is not null
    spaced, in_brackets = sign != "", bare != value or behind == ","
    variable = DOTTED.fullmatch(bare) or (((weak and sign) or (in_brackets and "_" in bare)) and is_identifier(bare))
    if sign.endswith(("'", '"')) or not variable:
        return False
    return weak != "" or spaced or in_brackets or "." in bare or name.lower() in bare.lower()


def _is_variable(match: re.Match[str], kind: str) -> bool:
    """Whether a value is a variable that is named like what it is assigned to: `apiKey: mem0ApiKey`.

    Not for a password: people have some that end with the word.
    """
    before, value = match.string[match.start() : match.start(kind)], match[kind].rstrip("!)]}").lower()
    name = "".join(_LETTERS.findall(before)).lower()
    variable = before[-1] not in "\"'" and "pass" not in name and _VARIABLE.fullmatch(value) is not None
    return variable and value.replace("_", "").endswith(name)


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
        default = password == user or (not colon and user == NOBODY)
        known = default or stands_in(held) or _NAMED_LATER.fullmatch(held)
        if ("http" in scheme.lower() or colon) and not known:
            yield match.span()


def _sources(lines: Lines) -> Iterator[Span]:
    return (match.span() for match in _SOURCES(lines) if not _NAMED_LATER.fullmatch(match[1]))


def named_options(lines: Lines) -> Iterator[Span]:
    """Options of commands with a secret: `--password x`, except statements about one."""
    for match in _NAMED_OPTIONS(lines):
        word = match[1].strip(".,:`)]").lower()
        if word not in _OPTION and not stands_in(word) and _MOUNTED.match(match[0]) is None:
            yield match.span()


def spoken(lines: Lines) -> Iterator[Span]:
    """A password of words: `password is correct horse`. A statement like `password is required` does not count."""
    for match in _PASSWORDS(lines):
        if _TYPED.match(match[2]):
            yield match.span()
            continue
        words = _CLOSING.split(match[2].partition("</")[0], maxsplit=1)[0].strip(" \t\"'`.!?)").lower().split()
        if words[1:] and words[0] == "correct":
            del words[0]
        seed = [word.rstrip(")]}:") or word for word in words[: 1 if match[1] is None else 3]]
        continued = len(words) == 1 and _CONTINUED.match(lines.text, match.end()) is not None
        reference = continued or REFERENCE.match(lines.text, match.start(2), match.end()) is not None
        if not seed or reference or not VERDICTS.isdisjoint(seed) or _is_expression(match, words):
            continue
        if match[1] is not None and len(words) == 1 and _DONE.fullmatch(words[0]):
            continue
        name = _LETTERS.findall(match[0])[0].lower()
        label = seed[0] == name or _LABEL.fullmatch(" ".join(words)) is not None
        known = label or (len(words) == 1 and stands_in(seed[0])) or is_default(lines.text, match.start(), seed[0])
        if known or _DOCUMENTED.search(lines.text, max(0, match.start() - 60), match.start()):
            continue
        yield match.span()


def _is_expression(match: re.Match[str], words: list[str]) -> bool:
    """Whether a program assigns a password: `=` and a name alone or before an operator, or a name with dots."""
    name, sign = _LETTERS.findall(match[0])[0].lower(), match[0][: match.start(2) - match.start()]
    first = words[0].rstrip(")]}:")
    if "=" in sign and (first.startswith("=") or match[2].startswith("... ")):
        return True
    variable = DOTTED.fullmatch(first) is not None or ("_" in first and is_identifier(first))
    if match[1] is not None or not variable or match[2][0] in "\"'":
        return False
    alone = len(words) == 1 or not words[1].isalpha() or words[1] in OPERATORS
    return name in first or (alone and ("=" in sign or "." in first))


def netrcs(lines: Lines) -> Iterator[Span]:
    """Lines of a file `.netrc`, except those with a placeholder."""
    return (match.span() for match in _NETRCS(lines) if not stands_in(match[1]))


def _stated(lines: Lines) -> Iterator[Span]:
    return (match.span() for match in _STATEMENTS(lines) if not stands_in(match[1]))


FINDERS = (
    Finder(_ASSIGNED_WORDS, spans(_ASSIGNMENTS), _assigned_secrets),
    same(_OPTION_WORDS, named_options),
    same((b"pass",), spoken),
    same(_STATED_WORDS, _stated),
    same((b"login",), netrcs),
    same((b"@",), _sources),
    Finder((b"://",), spans(_USERS), _logins),
)
