"""Whether a text is nothing but the name or address of a host, in whatever spelling, and its origin.

A host without a scheme is one that is reached by `https`, on the loopback interface by `http`: that is the
origin which rules compare. Addresses have no canonical spelling but those of the loopback interface.
"""

from __future__ import annotations

import re
import socket
from ipaddress import IPv4Address, ip_address

from engine.facts.origins import OriginFacts, https_origin, origin_facts
from engine.facts.urls import LONGEST

_REFUSED = OriginFacts(canonical=False)
_AUTHORITY = re.compile(
    r"(?:(?P<user>[^/?#\\]*)@)?(?P<host>\[[^\]]*\]|[^:@/?#\\]*)(?P<port>:[^/?#\\@]*)?(?P<rest>[/?#\\].*)?"
)
_NAME = re.compile(r"(?:[^\W_](?:[\w-]{0,61}\w)?\.|_[\w-]{1,62}\.){1,126}[^\W\d_][\w-]{1,62}\.?")
_NUMBERS = re.compile(r"(?:0[xX][0-9a-fA-F]*|[0-9]+)(?:\.(?:0[xX][0-9a-fA-F]*|[0-9]+)){0,3}\.?")
_ODD_NUMBER = re.compile(r"(?:^|\.)0[xX0-9]")
_QUAD = 3
"""Dots of an address in its usual form."""

_LOOPBACK = IPv4Address("127.0.0.0"), IPv4Address("127.255.255.255")

FILE_ENDINGS = frozenset(
    (
        *("txt", "pdf", "csv", "tsv", "json", "jsonl", "xml", "html", "htm", "css", "js", "mjs", "ts", "tsx", "jsx"),
        *("yaml", "yml", "toml", "ini", "cfg", "conf", "log", "lock", "bak", "tmp", "sql", "sqlite", "db", "parquet"),
        *("ipynb", "png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "mp3", "mp4", "wav", "doc", "docx", "xls"),
        *("xlsx", "pptx", "gz", "bz2", "xz", "zst", "tar", "tgz", "whl", "exe", "dll", "bin", "dat", "java", "kt"),
        *("go", "rb", "php", "cpp", "hpp", "rst", "tex", "patch", "diff", "pem", "crt", "env"),
    )
)
"""Endings of file names that are no top-level domain: `notes.txt` is no host."""

PROGRAM_ENDINGS = FILE_ENDINGS | {"py", "md", "sh", "rs", "pl", "cc", "zip", "so", "mk", "ps", "tf", "pub", "app", "in"}
"""Endings of file names in commands, some of them top-level domains too."""


def host_origin(text: str) -> OriginFacts:
    """The origin of a host that is declared as one: a name, `name:port`, or a loopback address. Never raises."""
    if text == "::1":
        return origin_facts("http://[::1]/")
    if len(text) > LONGEST or (match := _AUTHORITY.fullmatch(text)) is None:
        return _REFUSED
    if match["user"] is not None or match["rest"] is not None:
        return _REFUSED
    return _origin(match["host"], text, "/")


def bare_host(text: str, endings: frozenset[str] = FILE_ENDINGS) -> OriginFacts | None:
    """The origin of a text that is a host and perhaps a path, without a scheme; None for any other text.

    `endings` are those of file names. An e-mail address is no host, unless a path or port follows.
    """
    if not text:
        return None
    text = text[: LONGEST + 1]
    if text.count(":") > 1 and _is_v6(text):
        return host_origin(text)
    if (match := _AUTHORITY.fullmatch(text)) is None:
        return None
    host, plain = match["host"], match["port"] is None and match["rest"] is None
    if not _looks_like_host(host, plain and match["user"] is None, endings):
        return None
    if match["user"] is not None:
        return None if plain and ":" not in match["user"] and endings is FILE_ENDINGS else _REFUSED
    return _origin(host, f"{host}{match['port'] or ''}", match["rest"] or "/")


def _origin(host: str, authority: str, rest: str) -> OriginFacts:
    if host in {"localhost", "127.0.0.1", "[::1]"}:
        return origin_facts(f"http://{authority}{rest}")
    return https_origin(f"https://{authority}{rest}")


def _looks_like_host(host: str, alone: bool, endings: frozenset[str]) -> bool:  # noqa: FBT001 (one caller)
    if host.startswith("["):
        return _is_v6(host[1:-1])
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    if _NUMBERS.fullmatch(host):
        return _is_v4(host, alone)
    if _NAME.fullmatch(host) is None:
        return False
    ending = name.rpartition(".")[2]
    return ending not in FILE_ENDINGS and not (alone and name.count(".") == 1 and ending in endings)


def _is_v6(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _is_v4(text: str, alone: bool) -> bool:  # noqa: FBT001 (one caller)
    """Whether numbers are an address as C libraries read it; short ones only where nothing else can be meant.

    `1.5` is a version and `20261122` a date: only a loopback address is taken for one in these spellings.
    """
    try:
        address = IPv4Address(socket.inet_aton(text.rstrip(".")))
    except OSError:
        return False
    odd = _ODD_NUMBER.search(text) is not None and ("." in text or "x" in text.lower())
    return text.count(".") >= _QUAD or odd or (alone and _LOOPBACK[0] <= address <= _LOOPBACK[1])
