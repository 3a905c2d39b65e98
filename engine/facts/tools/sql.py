"""Facts about SQL: the kinds of its statements, its tables and its functions, or that it is not understood.

sqlglot parses the text, after a lexer of ours has read it: what a database may read differently is not understood, such
as nested or executable comments, a carriage return in a comment, backslashes, dollar quotes, and other letters outside
of quotes. sqlglot is imported here only.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, get_args

from engine.model import Model

if TYPE_CHECKING:
    from sqlglot import exp

Dialect = Literal["postgres", "mysql", "sqlite"]
Kind = Literal["select", "insert", "update", "delete", "merge", "create", "alter", "drop", "truncate", "other"]
KINDS: tuple[str, ...] = get_args(Kind)

LONGEST, TOKENS, DEPTH = 20_000, 4_000, 16
"""Characters, tokens and nested parentheses; agents write queries of a few hundred characters and three levels."""

_LEXER = re.compile(
    r"(?P<string>'(?:[^']|'')*')"
    r'|(?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)'
    r"|(?P<bracket>\[[^\[\]]*\])"
    r"|(?P<comment>--(?:[ \t][^\r\n]*)?(?:\r?\n|\Z)|/\*(?![!+M])(?:(?!/\*)[^*]|\*(?!/))*\*/)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<number>[0-9][A-Za-z0-9_.]*)"
    r"|(?P<space>[ \t\r\n]+)"
    r"|(?P<parameter>(?<![A-Za-z0-9_])\$[0-9]+)"
    r"|(?P<sign>[](),;.=<>+|&^%!~?:{}@#]|/(?!\*)|\*(?!/)|-(?!-))"
)
_NO_SIGNS = {"postgres": "`", "mysql": "[]@#", "sqlite": "]#"}
_SYNTAX = frozenset(
    re.findall(
        r"\S+",
        "all and any array as between bigint bit by case char character check conflict cube decimal default "
        "distinct else escape except exists filter float from group having ilike in int integer intersect "
        "interval into is join key lateral like limit materialized not numeric offset on or order over "
        "partition primary real references returning rollup row select set sets some then "
        "time timestamp timestamptz to union unique using values varchar varying when where window with",
    )
)
"""Words before a parenthesis that are no functions."""

_PLACES = {
    "by": {"group", "order", "partition"},
    "conflict": {"on"},
    "key": {"foreign", "primary", "unique"},
    "materialized": {"as", "not"},
    "sets": {"grouping"},
}
"""Those of them that may be names of functions too: what is before them where they are none."""

logging.getLogger("sqlglot").addHandler(logging.NullHandler())
logging.getLogger("sqlglot").propagate = False  # it warns of what it does not parse


class SqlFacts(Model):
    """What a text of SQL does; nothing is stated unless it is `understood`.

    `statements` are the kinds of all statements, those in other statements too. `tables` are written as in the text,
    in lower case where the database does not distinguish; `functions` in lower case.
    """

    understood: bool
    statements: tuple[Kind, ...] = ()
    tables: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()


UNKNOWN = SqlFacts(understood=False)


def sql_facts(text: str, dialect: Dialect) -> SqlFacts:
    """The facts of a text of SQL. Never raises."""
    import sqlglot

    try:
        lexed = _lexed(text, dialect)
        statements = [one for one in sqlglot.parse(text, read=dialect) if one is not None]
        if not statements or len(statements) != _parts(lexed):
            return UNKNOWN
        return _facts(statements, lexed, dialect)
    except (sqlglot.errors.SqlglotError, RecursionError, ValueError, TypeError, AttributeError, KeyError, IndexError):
        return UNKNOWN


_Token = tuple[str, str]


def _lexed(text: str, dialect: Dialect) -> list[_Token]:
    """The tokens of a text without blanks and comments. Raises ValueError for one that has no one reading."""
    if (
        len(text) > LONGEST
        or "\\" in text
        or not text.replace("\n", " ").replace("\r", " ").replace("\t", " ").isprintable()
    ):
        raise ValueError
    tokens: list[_Token] = []
    position = depth = 0
    while position < len(text):
        match = _LEXER.match(text, position)
        if match is None or match[0][0] in _NO_SIGNS[dialect]:
            raise ValueError
        kind, position = match.lastgroup or "", match.end()
        if kind == "bracket" and dialect == "postgres":
            position, kind = match.start() + 1, "sign"  # of an array; what is inside is read as all else
        if kind in {"space", "comment"}:
            continue
        token = text[match.start() : position]
        depth += {"(": 1, ")": -1}.get(token, 0)
        tokens.append((kind, token))
        if len(tokens) > TOKENS or depth > DEPTH:
            raise ValueError
    if any(one[1].lower() == "u" and two[1] == "&" for one, two in pairwise(tokens)):
        raise ValueError  # of PostgreSQL: a name with escapes
    return tokens


def _parts(tokens: list[_Token]) -> int:
    """How many statements there are between semicolons."""
    parts, filled = 0, False
    for token in tokens:
        if token == ("sign", ";"):
            parts, filled = parts + filled, False
        else:
            filled = True
    return parts + filled


def _facts(statements: list[exp.Expr], tokens: list[_Token], dialect: Dialect) -> SqlFacts:
    from sqlglot import exp

    kinds: dict[Kind, None] = {}
    tables: dict[str, None] = {}
    listed = Counter[str]()
    bare = any(
        one[1].lower() == "values" and two != ("sign", "(") and two[1].lower() != "row" for one, two in pairwise(tokens)
    )
    for statement in statements:
        kinds[_kind(statement) or "other"] = None
        for node in statement.walk():
            if isinstance(node, exp.Command) or (isinstance(node, exp.In) and node.args.get("field") is not None):
                return UNKNOWN  # SQLite reads a table after IN
            if bare and isinstance(node, exp.Values):
                return UNKNOWN  # PostgreSQL reads a table of this name
            if (kind := _kind(node)) is not None:
                kinds[kind] = None
            if isinstance(node, exp.Into | exp.Lock):
                kinds["create" if isinstance(node, exp.Into) and dialect == "postgres" else "other"] = None
            if isinstance(node, exp.Schema | exp.TableAlias) and node.expressions + (node.args.get("columns") or []):
                name = ".".join(part.name.lower() for part in getattr(node.this, "parts", [node.this]))
                listed[name] += name not in _SYNTAX or name in _PLACES
            if isinstance(node, exp.Table) and (table := _table(node, dialect)) is not None:
                tables[table] = None
    functions = Counter(_functions(tokens)) - listed  # a list of columns stands behind its name once
    return SqlFacts(understood=True, statements=tuple(kinds), tables=tuple(tables), functions=tuple(functions))


def _kind(node: exp.Expr) -> Kind | None:
    """The kind of a statement; None for a node that is none."""
    from sqlglot import exp

    if isinstance(node, exp.Values | exp.Subquery):
        return "select" if node.parent is None else None
    if isinstance(node, exp.Query):
        return "select"
    kinds: dict[type[exp.Expr], Kind] = {
        exp.Insert: "insert",
        exp.Update: "update",
        exp.Delete: "delete",
        exp.Merge: "merge",
        exp.Create: "create",
        exp.Alter: "alter",
        exp.Drop: "drop",
        exp.TruncateTable: "truncate",
    }
    return kinds.get(type(node), "other" if isinstance(node, exp.DDL | exp.DML | exp.Copy | exp.Pragma) else None)


def _table(node: exp.Table, dialect: Dialect) -> str | None:
    """The name of a table; None for a function in its place, and for a name that a WITH before it has defined.

    Raises ValueError for anything else.
    """
    from sqlglot import exp

    if isinstance(node.this, exp.Func | exp.Anonymous):
        return None
    parts = [part for part in (node.args.get("catalog"), node.args.get("db"), node.this) if part is not None]
    if not all(isinstance(part, exp.Identifier) for part in parts):
        raise ValueError
    if len(parts) == 1 and _defined(node):
        return None
    return ".".join(_name(part, dialect) for part in parts)


def _name(part: exp.Expr, dialect: Dialect) -> str:
    folds = dialect == "sqlite" or (dialect == "postgres" and not part.args.get("quoted"))
    return part.name.lower() if folds else part.name


def _defined(node: exp.Table) -> bool:
    """Whether a name is that of a common table expression that is complete before it, or that contains itself."""
    from sqlglot import exp

    inner: exp.Expr = node
    while (outer := inner.parent) is not None:
        defining, earlier = outer.args.get("with_"), []
        if isinstance(outer, exp.With):
            earlier = outer.expressions[: _index(outer, inner) + bool(outer.args.get("recursive"))]
        elif isinstance(defining, exp.With) and inner is not defining:
            earlier = defining.expressions
        if any(_same(one, node) for one in earlier):
            return True
        inner = outer
    return False


def _index(outer: exp.Expr, inner: exp.Expr) -> int:
    return next(number for number, one in enumerate(outer.expressions) if one is inner)


def _same(one: exp.Expr, node: exp.Table) -> bool:
    """Whether a common table expression has the name as it is written: in another case it counts as another."""
    return bool(one.alias == node.name)


def _functions(tokens: list[_Token]) -> list[str]:
    """The names before parentheses, with what they are qualified by, and those of PostgreSQL behind `(x).`, `$1.`."""
    found: list[str] = []
    behind: set[int] = set()
    for number, token in enumerate(tokens):
        if token == ("sign", ".") and (
            tokens[number - 1][1] in {")", "]"} or tokens[number - 1][0] == "parameter" or number - 1 in behind
        ):
            behind.add(number + 1)
        if number in behind and token[0] in {"name", "quoted"}:
            found.append(_bare(token[1]))
        if token != ("sign", "(") or number == 0:
            continue
        kind, text = tokens[number - 1]
        if kind not in {"name", "quoted", "bracket"} or _is_syntax(text.lower(), tokens[max(0, number - 2)][1].lower()):
            continue
        name, at = _bare(text), number - 2
        while tokens[at] == ("sign", "."):
            name, at = f"{_bare(tokens[at - 1][1])}.{name}", at - 2
        found.append(name)
    return found


def _is_syntax(word: str, before: str) -> bool:
    return word in _SYNTAX and before != "." and before in _PLACES.get(word, (before,))


def _bare(text: str) -> str:
    return (text if text[0].isalpha() or text[0] == "_" else text[1:-1]).lower()
