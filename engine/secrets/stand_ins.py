"""What stands where a secret would be: names and calls in programs, placeholders, and statements about passwords."""

from __future__ import annotations

import re

VERDICTS = frozenset(
    re.findall(
        "[a-z]+",
        "a above again all already also an and any are as at bad be been below blank bool by bytes callable can "
        "cannot case changed changeit changeme changethis char characters confirmed correct default disabled dummy "
        "either empty enabled encrypted enforced entered ever example expired fake false field fine focus for from "
        "given go goes good had has hash hashed have here hidden hover how if important in incorrect insecure int "
        "invalid is it its kept known least long longer lost managed masked max maximum may min mine minimum missing "
        "mock must my needed never new nil no none not null object of off ok okay old on only optional or our out "
        "placeholder plain private protected provided read redacted required reset right safe salted same sample "
        "secret secretstr secure see sent set shared short should shown so some specified stale stored str string "
        "strong stronger test testing text that the their then there this to too true type undefined unknown unset "
        "until up updated use used user using valid value varchar verified via was we weak weaker were what when "
        "where which who why will with without wrong xxx yes yet you your",
    )
)
"""Statements about a password and placeholders for one, which are none."""
PLACEHOLDER = re.compile(
    r"[A-Z]{1,16}(?:_[A-Z]{1,16})*|(?i:your)(?:[_-][A-Za-z_-]*)?|[a-z_-]{0,8}(?:\.{3}|\*{3,})"
    r"|[A-Z][A-Z0-9]{0,15}(?:_[A-Z]{2,16})*_(?:API_KEY|SECRET|TOKEN)"
)
"""What stands for a token in an example: `YOUR_API_KEY`, `your-key-here`, `sk-...`, `ACME7_API_KEY`."""
_YOURS = re.compile(
    r"(?i)(?:[a-z0-9]{1,6}[_-])?your[_-]?(?:[a-z0-9]{1,20}[_-]){0,4}"
    r"(?:(?:api|secret)?key|pass(?:phrase|wd|word)?|pwd|secret|token)(?:[_-]?here)?"
    r"|(?:[a-z0-9]{1,6}[_-]){0,3}(?:\.{3}|x{3,})|[a-z0-9_-]{0,9}x{8,}"
)
"""What stands for a password in an example: `your_password`, `whsec_...`, `sk-xxx`."""
_UNREAL = "dummy|example|expired|fake|invalid|mock|new|old|placeholder|sample|some|stale|test|testing|wrong"
_SAYS_SO = re.compile(
    rf"(?=[a-z0-9 _-]*(?:{_UNREAL}))(?:[a-z0-9]{{1,6}}[_-])?"
    rf"(?:(?:{_UNREAL}|access|api|auth|client|id|key|pass(?:wd|word)?|refresh|secret|session|token|user)[ _-]?){{2,6}}"
    rf"|(?=(?:.*[_-])?(?:{_UNREAL}|change|replace)[_-])(?:(?:[a-z]+|[0-9]{{1,2}})[_-]){{3,}}[a-z]+!*"
)
"""Words that say that they are no token: `test-api-key`, `new-access-token`, `replace_with_a_long_secret`."""
_KNOWN = frozenset(
    re.findall(
        "[a-z0-9]+",
        "pass passwd password pw pwd token username "
        "cassandra gitea grafana mariadb minioadmin mongo mysql neo4j nextcloud postgres rabbitmq redis wordpress",
    )
)
"""Names of a password, and passwords that software comes with."""
_WORD_BEFORE = re.compile(r"([A-Za-z0-9]+)_\Z")
_SHORTEST = 3
"""Characters of a password: what is shorter is a variable, or a letter in an example."""
REFERENCE = re.compile(
    r"[\"']?(?:[$<{%*]|[A-Za-z_](?:[A-Za-z0-9_.]|\?\.|::|->)*[(\[{])|`[^`\n]{0,64}\$\{|[&(]|\[(?!\]byte\(\")"
    r"|[fF][rR]?[\"']|(?:ConvertTo|Get|Import|New|Read)-[A-Z]?[A-Za-z]{0,30}"
    r"(?:Content|Credential|Guid|Host|Key|Object|Password|Secret|String|Token|Variable)(?=[\s)|]|\Z)"
    r"|(?:await|keyof|lambda|new|not|typeof|yield)(?=[ \t:])|!!|/\^|/run/secrets/|(?<=[A-Z]:)\?(?=[A-Za-z]+ )"
    r"|[\"']?:?(?:[xX]{3,}|\*+)(?!\w)|(?:\"\"|'')(?=[.\s)\]}+,;]|\Z)|\?(?=[\s\"',;)]|\Z)"
    r"|[0-9]{1,3}(?=[\"',;)\]}]|[ \t]*(?:[\[#\r\n]|\Z))"
)
"""The beginning of what a program evaluates, or of a mask such as `***`, where a text would be."""
DOTTED = re.compile(r"[A-Za-z_$][A-Za-z_$]*(?:(?:\??\.|::|->)[A-Za-z_$]+)*")
OPERATORS = frozenset({"and", "else", "if", "in", "is", "not", "or"})
NOBODY = "git"
"""The user in addresses of repositories, such as `git@host:path`."""


def stands_in(value: str) -> bool:
    """Whether a value stands where a password or token would be, and is none."""
    low = value.lower()
    known = low.replace("-", "").replace("_", "") in VERDICTS or low in _KNOWN or len(low) < _SHORTEST
    return known or any(one.fullmatch(low) is not None for one in (_YOURS, _SAYS_SO))


def is_default(text: str, name: int, value: str) -> bool:
    """Whether a password is the word before its name, as software comes with: `POSTGRES_PASSWORD=postgres`."""
    before = _WORD_BEFORE.search(text, max(0, name - 40), name)
    return before is not None and before[1].lower() == value.lower()
