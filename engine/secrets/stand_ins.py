"""What stands where a secret would be: names and calls in programs, placeholders, and statements about passwords."""

from __future__ import annotations

import re

VERDICTS = frozenset(
    re.findall(
        "[a-z]+",
        "a above again all already also an and any are as at bad be been below blank bool by bytes callable can "
        "cannot case changed changeme char characters confirmed correct default disabled dummy either empty enabled "
        "encrypted enforced entered ever example expired fake false field fine for from given go goes good had has "
        "hash hashed have here hidden how if important in incorrect insecure int invalid is it its kept known least "
        "long longer lost managed masked max maximum may min mine minimum missing mock must my needed never new nil "
        "no none not null object of off ok okay old on only optional or our out placeholder plain private protected "
        "provided read redacted required reset right safe salted same sample secret secretstr secure see sent set "
        "shared short should shown so some specified stale stored str string strong stronger test testing text that "
        "the their then there this to too true type undefined unknown unset until up updated use used user using "
        "valid value varchar verified via was we weak weaker were what when where which who why will with without "
        "wrong xxx yes yet you your",
    )
)
"""Statements about a password and placeholders for one, which are none."""
PLACEHOLDER = re.compile(r"[A-Z]{1,16}(?:_[A-Z]{1,16})*|(?i:your)(?:[_-][A-Za-z_-]*)?|[a-z_-]{0,8}\.{3}")
"""What stands for a token in an example: `YOUR_API_KEY`, `your-key-here`, `sk-...`."""
YOURS = re.compile(
    r"(?i)your[_-]?(?:[a-z]{1,20}[_-]){0,4}(?:(?:api|secret)?key|pass(?:phrase|wd|word)?|pwd|secret|token)(?:[_-]here)?"
    r"|(?:[a-z0-9]{1,6}[_-]){0,3}\.{3}"
)
"""What stands for a password in an example: `your_password`, `whsec_...`."""
REFERENCE = re.compile(
    r"[\"']?(?:[$<{%*]|[A-Za-z_](?:[A-Za-z0-9_.]|\?\.|::|->)*[(\[{])|`[^`\n]{0,64}\$\{|[&(]|\[(?!\]byte\(\")"
    r"|[fF][rR]?[\"']|(?:ConvertTo|Get|Import|New|Read)-[A-Z]?[A-Za-z]{0,30}"
    r"(?:Content|Credential|Guid|Host|Key|Object|Password|Secret|String|Token|Variable)(?=[\s)|]|\Z)"
    r"|(?:await|lambda|new|not|yield)(?=[ \t:])"
    r"|[\"']?:?(?:[xX]{3,}|\*+)(?!\w)|(?:\"\"|'')(?=[.\s)+,;]|\Z)|\?(?=[\s\"',;)]|\Z)"
    r"|[0-9]{1,3}(?=[\"',;)\]}]|[ \t]*(?:[\[#\r\n]|\Z))"
)
"""The beginning of what a program evaluates, or of a mask such as `***`, where a text would be."""
DOTTED = re.compile(r"[A-Za-z_$][A-Za-z_$]*(?:(?:\??\.|::|->)[A-Za-z_$]+)*")
OPERATORS = frozenset({"and", "else", "if", "in", "is", "not", "or"})
NOBODY = "git"
"""The user in addresses of repositories, such as `git@host:path`."""
