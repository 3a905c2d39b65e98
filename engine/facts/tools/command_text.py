"""Whether a line is a command for a shell, the installation of a package, a handler, or a change of a database.

A line counts if it contains nothing else. If only a part of a sentence looks like one, it is
a mention. Many of these words are English words too (`find contacts by name`, `make a call`), so a command
counts only with something that only commands have: an option, a path, an address, an operator.
"""

from __future__ import annotations

import re
from itertools import pairwise

_PROGRAMS = frozenset(
    re.findall(
        r"\S+",
        "apk apt apt-get awk bash brew cat cd chmod cargo chown cmd conda cp crontab curl cut dash dd dnf docker du"
        " echo env eval exec export find ftp git go grep gunzip gzip head helm java kill kubectl ln ls make mkdir mkfs"
        " mkfs.ext4 mount mv mysql nc ncat netcat node nohup npm npx nslookup openssl perl php pip pip3 pkill podman"
        " powershell psql pwd pwsh python python3 rm rmdir rsync ruby scp sed service sh sleep sort source sqlite3 ssh"
        " su sudo systemctl tail tar tee telnet terraform touch ufw umount uniq unzip uvx wget xargs yarn yum zip zsh",
    )
)
_SUBCOMMAND = re.compile(
    r"(?:git (?:add|apply|checkout|clone|commit|fetch|merge|pull|push|rebase|reset)"
    r"|git (?:diff|log|status)$|make (?:all|build|check|clean|install|test)$|(?:cargo|go) (?:build|test)$"
    r"|docker (?:build|compose|exec|pull|push|run)|podman run|kubectl (?:apply|create|delete|exec|get)"
    r"|apt(?:-get)? (?:update|upgrade)$|npm (?:ci|test)$|npm run"
    r"|systemctl (?:disable|enable|reload|restart|start|stop)|service \w+ (?:restart|start|stop)"
    r"|ch(?:mod|own) [0-7a-z+:]+|terraform (?:apply|destroy)|helm (?:install|upgrade))(?: \S+|$)"
)
_CONNECTS = re.compile(r"(?:curl|ftp|nc|ncat|netcat|nslookup|rsync|scp|ssh|telnet|wget)\s")
_HOST = re.compile(
    r"(?:[\s@]|^)(?:(?:[\w-]{1,63}\.){1,126}[a-z]{2,63}|(?:\d{1,3}\.){3}\d{1,3}|localhost)(?=[\s:/]|$)|\w@\w"
)
"""What only a program that connects to it is followed by; elsewhere it may be a file, or a part of a sentence."""

_EVIDENCE = re.compile(
    r"(?:^|\s)(?:--?\w[\w-]*|\w+=[~/]\S*|~?/[\w.*-]*|\.{1,2}/\S*|https?://\S+|[<>]{1,2}\S*|\*\S*|\$\w+|\S*\w\.[a-z]{1,4})(?:[\s/=]|$)"
)
_SYNTAX = re.compile(
    r"#!|(?:for|while|until|if)\s[^\n]{1,200};\s*(?:do|then)\b|export\s+\w+=|alias\s+\w+=|\w+\(\)\s*\{"
    r"|(?:Get|Invoke|New|Remove|Set|Start|Stop)-[A-Z]\w+\s+\S*[-$'\"./\\]|iex\s*\("
)
_PIPED = re.compile(r"\|\s*(?:sudo\s+)?(?:ba|da|z)?sh\b|\$\([a-z][^)]{0,200}\)")
_BEFORE = re.compile(r"(?:(?:[$%]|sudo|nohup|RUN|CMD|ENTRYPOINT|!)\s+|[A-Z_][A-Z0-9_]*=\S*\s+)*")
_PROMPT = re.compile(r"(?:[$%]|sudo)\s+[a-z]")
_OPERATOR = re.compile(r"&&|\|\||[|;&]")
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
_COMMENT = re.compile(r"\s#\s.*$")
_PROSE = re.compile(
    r"(?i)(?<![\w/.-])(?:an?|and|are|as|be|been|but|by|can|does|if|into|is|it|its|may|must|never|no|not|of|one|only|or|"
    r"should|that|the|their|then|these|they|this|to|was|we|when|which|will|with|without|you|your)(?![\w/=-])"
)

_INSTALLER = (
    r"(?:(?:python3?\s+-m\s+)?pip[23]?\s+install|uv\s+(?:add|pip\s+install)|pipx\s+install|poetry\s+add|(?:conda|mamba)\s+install"
    r"|npm\s+(?:i|install|add)|(?:p?npm|yarn|bun)\s+add|gem\s+install|cargo\s+(?:add|install)|go\s+(?:get|install)\s+(?=\S*[./])"
    r"|(?:apt|apt-get|dnf|yum|brew|choco)\s+(?:-\S+\s+)*install|apk\s+add|composer\s+require|npx|uvx)\s+"
)
_INSTALL = re.compile(rf"{_INSTALLER}\S")
_INSTALL_INSIDE = re.compile(rf"(?<![\w-]){_INSTALLER}[\w@'\"-]")
_SPEC = re.compile(
    r"[A-Za-z][\w.-]*(?:\[[\w, -]*\])?\s{0,3}"
    r"(?:[=~]=\s{0,3}\d+\.[\d.*]+|[<>]=\s{0,3}\d+\.\d+\.\d+|>=\s{0,3}\d[\d.]*,\s{0,3}<\s{0,3}\d)\S*"
    r"|@?[A-Za-z][\w./-]*@[\^~]?\d+\.\d+\S*|(?:[\w-]+\s{0,3}@\s{0,3})?git\+(?:https|ssh)://\S+|pkg:[a-z]+/\S+"
)
_VERSIONED = r"\s{0,3}(?:[=~!]=|[<>]=?)\s{0,3}\d[\w.*]*(?:\s{0,3},\s{0,3}(?:[=~!]=|[<>]=?)\s{0,3}\d[\w.*]*)*"
_KNOWN_NAME = (
    r"(?i:aiohttp|beautifulsoup4|boto3|celery|cryptography|django|fastapi|flask|httpx|lxml|matplotlib|numpy|pandas"
    r"|paramiko|pillow|psycopg2|pydantic|pyyaml|redis|requests|scikit-learn|scipy|selenium|sqlalchemy|tensorflow|torch"
    r"|urllib3)(?:\[[\w, -]*\])?"
)
_KNOWN = re.compile(rf"{_KNOWN_NAME}{_VERSIONED}")
"""A package that many know, with any version; of other names, `limit>=1` is a condition."""

_REQUIRED = re.compile(
    r"(?i:dependenc(?:y|ies)|install|packages?|pip|requirements?|requires?)\s{0,3}:\s{0,3}"
    rf"{_KNOWN_NAME}(?:(?:\s{{0,3}},\s{{0,3}}|\s+and\s+){_KNOWN_NAME}){{0,50}}\.?"
)
"""Packages that many know, named as what is needed."""

NAMED = re.compile(
    rf"(?:@?[A-Za-z][\w.-]*(?:/[\w.-]+)*(?:\[[\w,-]*\])?|{_SPEC.pattern}|[A-Za-z][\w.-]*(?:\[[\w, -]*\])?{_VERSIONED})"
)
"""One package, with or without a version."""

HANDLER = re.compile(
    r"<script\b|javascript:|module\.exports\b|(?:export\s+)?(?:async\s+)?function\s*\w*\s*\([^)]{0,200}\)\s*\{"
    r"|(?:(?:const|let|var)\s+\w+\s*=\s*)?(?:async\s*)?(?:\([^()]{0,200}\)|(?<!\w)\w+)\s*=>\s*[\w{(]|(?:const|let|var)\s+\w+\s*=\s*\S*\("
    r"|(?:public|private)\s+static\s+\w+|fn\s+main\s*\(|func\s+\w+\s*\([^)]{0,200}\)[^{\n]{0,80}\{|#include\s*[<\"]|package\s+main\b"
    r"|data:[\w/+.-]{1,100};base64,|<\?php\b|(?:require|import)\(\s{0,3}[\"'`][^\"'`\n]{1,200}[\"'`]\s{0,3}\)"
    r"|import\s+(?:[\w*{][^\"'`;\n]{0,200}\s+from\s+)?[\"'](?:node:|@|\.{1,2}/)?[\w/-]{1,200}[\"']\s{0,3}(?:;|$)"
    r"|(?i:callable|entry[ _-]?point|handler|implementation)\s{0,3}[:=]\s{0,3}[A-Za-z_]\w*(?:\.\w+)+:[A-Za-z_]\w*"
)
"""Where code of another language begins, and what names a callable as its handler."""

REFERENCE = re.compile(
    r"[A-Za-z_]\w*(?:[./][A-Za-z_][\w-]*)*(?::[A-Za-z_]\w*|\.(?:py|js|mjs|ts|sh|so|dll|exe|wasm|jar))"
)
"""A callable by module and name, or a file that is run."""

_NAME = r"[\w.\"`\[\]]+"
MIGRATION = re.compile(
    rf"(?i:create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+|virtual\s+)?table\s+(?:if\s+not\s+exists\s+)?{_NAME}\s*(?:\(|as\s+select|using\s+\w+\s*\()"
    rf"|alter\s+table\s+(?:if\s+exists\s+)?(?:only\s+)?{_NAME}\s+(?:add|alter|drop|rename|modify|change|set|owner|enable|disable)\s+\w"
    rf"|drop\s+(?:table|index|view|schema|database|trigger)\s+if\s+exists\s+{_NAME}|create\s+(?:unique\s+)?index\s+[^\n]{{0,100}}\bon\s+{_NAME}\s*\("
    rf"|(?:drop|truncate)\s+(?:table|index|view|schema|database|trigger)\s+{_NAME}\s*(?:cascade\s*)?;"
    rf"|create\s+(?:or\s+replace\s+)?(?:(?:materialized\s+)?view|trigger|function|procedure)\s+{_NAME}\s*(?:\(|as\s+select|before|after|instead)"
    rf"|(?:insert\s+(?:or\s+\w+\s+)?|replace\s+)into\s+{_NAME}\s*(?:\([^)]{{0,500}}\)\s*)?(?:values\s*\(|select\s)|delete\s+from\s+{_NAME}\s*(?:;|where\s+\S+\s*[=<>])"
    rf"|update\s+{_NAME}\s+set\s+{_NAME}\s*="
    rf"|alter\s+(?:database|domain|index|(?:materialized\s+)?view|schema|sequence|type)\s+{_NAME}\s+"
    r"(?:add\s+(?:attribute|value)|owner\s+to|rename\s+(?:attribute|column|to|value)|restart|set\s+schema)\b)"
    r"|(?m:(?:DROP\s+TABLE|TRUNCATE(?:\s+TABLE)?|(?:CREATE|DROP)\s+(?:DATABASE|EXTENSION|ROLE|SCHEMA|USER))\s+"
    rf"{_NAME}[ \t;]*$)"
    rf"|PRAGMA\s+\w+\s*=|(?:GRANT|REVOKE)\s+[A-Z, ]{{1,100}}\s+ON\s+{_NAME}\s+(?:TO|FROM)\s"
    r"|\b(?:add_column|add_index|change_column|create_table|drop_table|remove_column|rename_column|rename_table)\s+:\w"
    rf"|RENAME\s+TABLE\s+{_NAME}\s+TO\s|COMMENT\s+ON\s+(?:COLUMN|TABLE)\s+{_NAME}\s+IS\s|(?:EXEC\s+)?\bsp_rename\s"
    r"|\b(?:await\s+)?queryInterface\.\w+\(|\bclass\s+\w+\s*(?:<\s*ActiveRecord::Migration|\((?:migrations\.)?Migration\))"
    r"|\b(?:alembic\s+(?:downgrade|revision|upgrade)|(?:flyway|knex|prisma)\s+migrate|django-admin\s+(?:make)?migrat\w+"
    r"|dotnet\s+ef\s+migrations|(?:bin/)?(?:rails|rake)\s+(?:db:migrate|g(?:enerate)?\s+migration))\b"
    r"|\b(?:\w{1,40}\.)?schema\.(?:alterTable|createTable|dropTable|renameTable|table)\("
    r"|\bop\.(?:add_column|alter_column|bulk_insert|create_index|create_table|drop_column|drop_table|execute|rename_table)\("
    r"|\bmigrations\.(?:AddField|AlterField|CreateModel|DeleteModel|RemoveField|RunPython|RunSQL)\("
)
"""A statement that changes a database, over line ends."""


def is_command(line: str) -> bool:
    """Whether a line is a command for a shell and no sentence."""
    bare = _QUOTED.sub("''", _COMMENT.sub("", line))
    if _SYNTAX.match(line) or _PIPED.search(bare):
        return not _is_prose(bare)
    parts = [part.strip() for part in _OPERATOR.split(bare)]
    chained = "&&" in bare and _PROGRAMS.issuperset(part.split(maxsplit=1)[0] for part in parts if part)
    return chained or any(map(_is_program, parts))


def mentions_command(line: str) -> bool:
    """Whether a part of a line looks like a command."""
    words = line.replace("`", " ").split()
    return any(
        first.strip("$'\"(") in _PROGRAMS and _EVIDENCE.search(second) is not None for first, second in pairwise(words)
    )


def installs(line: str) -> bool:
    """Whether a line installs packages, or is one package with its version."""
    bare = line[_before(line) :]
    package = _SPEC.fullmatch(line) or _KNOWN.fullmatch(line) or _REQUIRED.fullmatch(line)
    return (_INSTALL.match(bare) is not None and not _PROSE.search(bare)) or package is not None


def mentions_package(line: str) -> bool:
    """Whether a part of a line installs a package, or has one with its version."""
    return _INSTALL_INSIDE.search(line) is not None or any(
        _SPEC.fullmatch(word.strip("`,;()")) for word in line.split()
    )


def _before(line: str) -> int:
    match = _BEFORE.match(line)
    return 0 if match is None else match.end()


def _is_prose(text: str) -> bool:
    """One such word may be a name; two make a sentence."""
    return len(_PROSE.findall(text)) > 1


def _is_program(part: str) -> bool:
    prompted = _PROMPT.match(part) is not None
    part = part[_before(part) :]
    words = part.split(maxsplit=1)
    if not words or _is_prose(part):
        return False
    first, rest = words[0], words[1] if len(words) > 1 else ""
    if re.fullmatch(r"(?:\.{1,2}/|~/|/(?:usr/|opt/)?(?:local/)?s?bin/)[\w./-]+", first):
        return True
    if first not in _PROGRAMS:
        return False
    connects = _CONNECTS.match(part) is not None and _HOST.search(rest) is not None
    return prompted or connects or _EVIDENCE.search(rest) is not None or _SUBCOMMAND.match(part) is not None
