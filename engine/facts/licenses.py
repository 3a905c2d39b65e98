"""Facts about a license label: the alternatives of an SPDX expression, in canonical spelling.

OR offers alternatives, AND binds tighter and demands all its keys, WITH makes one key of a license
and its exception. Nothing is judged: which key is admitted is a value in `policy/licenses.yaml`.
license_expression (grammar and SPDX list of ScanCode LicenseDB, CC-BY-4.0) is imported here only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any

_LABEL_CHARACTERS = 1_000
_SYMBOLS = 64  # keys written in one expression; longer ones are lists of files, not licenses
_NESTING = 32  # parentheses in each other; the library recurses once for each
_ALTERNATIVES = 64  # an AND of ORs multiplies them
_KEYS = 512  # of all alternatives together; 10,000 records of such labels still fit into one request

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*\+?")
_LICENSE_REF = re.compile(r"(DocumentRef-[A-Za-z0-9.-]+:)?LicenseRef-[A-Za-z0-9.-]+")
_ADDITION_REF = re.compile(r"(DocumentRef-[A-Za-z0-9.-]+:)?AdditionRef-[A-Za-z0-9.-]+")
_WORDS = re.compile(r"[^\s()]+")
_PARTS = re.compile(r"[()]|[^\s()]+")
_BEFORE = re.compile(r"^(https?://(www\.)?(choosealicense\.com/licenses/)?|(license :: )(osi approved :: )?)")
"""What addresses, those in Croissant of Hugging Face among them, and classifiers of PyPI have before a license."""
_TEXT_OF = re.compile(r"/(deed|legalcode)(\.[a-z_-]+)?$")
"""Ends of addresses that Creative Commons has for a license: its summary and its text, in a language."""
_PAGE = re.compile(
    r"https?://(?:www\.)?(?:spdx\.org|choosealicense\.com)/licenses/([A-Za-z0-9.+-]+?)(?:\.html|\.json)?/?"
)
_OPERATORS = frozenset({"and", "or", "with"})
_NO_LICENSE = frozenset({"NOASSERTION", "NONE"})
"""SPDX values in place of an expression, for an unknown or absent license."""


Alternatives = tuple[tuple[str, ...], ...]
"""Each alternative is a sorted tuple of keys that all apply; alternatives are sorted and distinct."""


class _RefusedError(Exception):
    """The label is no expression, or larger than anyone needs."""


Aliases = Mapping[str, str]
"""SPDX ids by other spellings of a license, each as `alias_key` has it."""


def license_alternatives(label: str, aliases: Aliases = MappingProxyType({})) -> Alternatives | None:
    """Read a label as an SPDX expression (SPDX 3.0, annex B; operators and ids in any case); None for any other text.

    An alias counts as its id, if it is the whole label or one word of it. So does a whole label that is an address of
    spdx.org or choosealicense.com, or an id of the SPDX list with spaces in place of hyphens. Ids get the spelling of
    the SPDX list; `X` and `X+` that SPDX replaced become `X-only` and `X-or-later`; `LicenseRef-…` and unknown ids stay
    as written. `NOASSERTION` and `NONE` alone are keys of their own. Labels beyond a limit: like a
    label that does not parse.
    """
    text = label.strip()
    if not text.isascii() or not 0 < len(text) <= _LABEL_CHARACTERS:
        return None
    whole = aliases.get(alias_key(text))
    text = whole or _WORDS.sub(lambda word: aliases.get(alias_key(word[0]), word[0]), text)
    if len(text) > _LABEL_CHARACTERS:
        return None
    return _read(text) or _read_loosely(label.strip())


@lru_cache(maxsize=4_096)
def alias_key(text: str) -> str:
    """A label in the form that aliases have: lower case, single spaces, addresses without scheme and last slash.

    Classifiers of PyPI lose what is before the license, addresses of Creative Commons what names its summary or text.
    """
    return _TEXT_OF.sub("", _BEFORE.sub("", " ".join(text.lower().split())).rstrip("/"))


def canonical_key(text: str) -> str | None:
    """Spell a license as labels name it and a table's row must.

    None unless it is one SPDX license, `LicenseRef-…`, or one of them WITH a known exception.
    """
    match license_alternatives(text):
        case ((key,),) if key not in _NO_LICENSE:
            license_, _, exception = key.partition(" WITH ")
            return key if _is_known(license_, exception) else None
        case _:
            return None


def _is_known(license_: str, exception: str) -> bool:
    spdx = _spdx()
    known = license_.removesuffix("+").lower() in spdx.licenses or _LICENSE_REF.fullmatch(license_)
    fits = not exception or exception.lower() in spdx.exceptions or _ADDITION_REF.fullmatch(exception)
    return bool(known and fits)


def _read_loosely(text: str) -> Alternatives | None:
    page = _PAGE.fullmatch(text)
    key = page[1] if page else "-".join(text.split())
    return _read(key) if key.lower() in _spdx().licenses or key.lower() in _spdx().renamed else None


@lru_cache(maxsize=4096)
def _read(text: str) -> Alternatives | None:
    if text.upper() in _NO_LICENSE:
        return ((text.upper(),),)
    try:
        found = _alternatives(_parse(text))
    except _RefusedError:
        return None
    return tuple(sorted(tuple(sorted(keys)) for keys in found))


@dataclass(frozen=True, slots=True)
class _Spdx:
    """The SPDX list by lower-case id."""

    licenses: dict[str, str]
    exceptions: dict[str, str]
    renamed: dict[str, str]


@cache
def _spdx() -> _Spdx:
    from license_expression import get_license_index  # type: ignore[import-untyped]

    licenses: dict[str, str] = {}
    exceptions: dict[str, str] = {}
    renamed: dict[str, str] = {}
    for row in get_license_index():
        key = row.get("spdx_license_key") or "LicenseRef-"
        if key.startswith("LicenseRef-"):
            continue
        # A deprecated exception of the index is a deprecated license that includes its exception.
        alone = not row["is_exception"] or row["is_deprecated"]
        (licenses if alone else exceptions)[key.lower()] = key
        for old in row["other_spdx_license_keys"]:
            # The index also lists loose names; only the renaming that SPDX itself made is taken.
            if key == (f"{old[:-1]}-or-later" if old.endswith("+") else f"{old}-only"):
                renamed[old.lower()] = key
    return _Spdx(licenses, exceptions, renamed)


def _parse(text: str) -> Any:
    depth = deepest = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    parts = [part.lower() for part in _PARTS.findall(text)]
    keys = [part not in _OPERATORS and part not in "()" for part in parts]
    ends = [False, *(key or part == ")" for key, part in zip(keys, parts, strict=True))]
    continues = [*(part in _OPERATORS or part == ")" for part in parts), True]
    # The library drops a last operator, and takes a license behind a closing parenthesis as one more alternative.
    if deepest > _NESTING or keys.count(True) > _SYMBOLS or ends != continues:
        raise _RefusedError
    try:
        # Without its own symbols, the library only parses the grammar and leaves ids as written.
        return _licensing().parse(text, simple=True)
    except Exception as error:  # it raises AttributeError, TypeError and others besides its own
        raise _RefusedError from error


@cache
def _licensing() -> Any:
    from license_expression import Licensing

    return Licensing()


def _alternatives(node: Any) -> frozenset[frozenset[str]]:
    licensing = _licensing()
    if isinstance(node, licensing.OR):
        found = frozenset[frozenset[str]]().union(*map(_alternatives, node.args))
    elif isinstance(node, licensing.AND):
        found = frozenset({frozenset()})
        for part in map(_alternatives, node.args):
            found = _within(frozenset(keys | more for keys in found for more in part))
    else:
        found = frozenset({frozenset({_key(node)})})
    return _within(found)


def _within(found: frozenset[frozenset[str]]) -> frozenset[frozenset[str]]:
    if len(found) > _ALTERNATIVES or sum(map(len, found)) > _KEYS:
        raise _RefusedError
    return found


def _key(symbol: Any) -> str:
    """Spell one key; a license WITH its exception is one."""
    if hasattr(symbol, "exception_symbol"):
        return f"{_license_id(symbol.license_symbol.key)} WITH {_exception_id(symbol.exception_symbol.key)}"
    return _license_id(symbol.key)


def _license_id(text: str) -> str:
    spdx, lower = _spdx(), text.lower()
    if _LICENSE_REF.fullmatch(text):
        return text
    if not _ID.fullmatch(text) or lower in spdx.exceptions or text.upper() in _NO_LICENSE:
        raise _RefusedError
    known = spdx.licenses.get(lower) or spdx.renamed.get(lower)
    if known is None and lower.endswith("+") and (base := spdx.licenses.get(lower[:-1])):
        if base.endswith(("-only", "-or-later")):
            raise _RefusedError  # it already states whether later versions are meant
        known = f"{base}+"
    return known or text


def _exception_id(text: str) -> str:
    if _ADDITION_REF.fullmatch(text):
        return text
    if not _ID.fullmatch(text) or _spdx().licenses.get(text.lower()):
        raise _RefusedError
    return _spdx().exceptions.get(text.lower()) or text
