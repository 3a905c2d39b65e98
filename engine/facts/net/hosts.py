"""Detects text that is only a host name or address, in any spelling, and its origin.

A host without a scheme is one that is reached by `https`, on the loopback interface by `http`: that is the
origin which rules compare. An address has one spelling.
A word of a command may be a host although it looks like a file, a number or a plain word (`word_host`).
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, ip_address

from engine.facts.net.urls import LONGEST, REFUSED, OriginFacts, https_origin, reached

_AUTHORITY = re.compile(
    r"(?:(?P<user>[^/?#\\]*)@)?(?P<host>\[[^\]]*\]|[^:@/?#\\]*)(?P<port>:[^/?#\\@]*)?(?P<rest>[/?#\\].*)?"
)
_NAME = re.compile(r"(?:[^\W_](?:[\w-]{0,61}\w)?\.|_[\w-]{1,62}\.){1,126}[^\W\d_][\w-]{1,62}\.?")
_NUMBERS = re.compile(r"(?:0[xX][0-9a-fA-F]*|[0-9]+)(?:\.(?:0[xX][0-9a-fA-F]*|[0-9]+)){0,3}\.?")
_ODD_NUMBER = re.compile(r"(?:^|\.)0[xX0-9]")
_QUAD = 3
"""Dots of an address in its usual form."""

_WORD = re.compile(
    r"(?:[^/?#\\]*@)?(?P<host>\[[^\]]*\]|[^:@/?#\\]*)(?P<port>:[0-9]{1,5}(?=[/?#\\]|\Z))?(?P<rest>[:/?#\\][^{}<>|\"'\s]*)?"
)
_LABELS = re.compile(r"\w[\w-]*(?:\.[\w-]+)*\.?")
_PORT = re.compile(r":[0-9]{1,5}")

_NOWHERE = IPv4Network("0.0.0.0/8")
"""Only the first of these is an address that a program can connect to (RFC 1122, section 3.2.1.3)."""

_LOCAL = tuple(map(IPv4Network, ("127.0.0.0/8", "169.254.0.0/16")))
_INTERNAL = (*_LOCAL, *map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))

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


@dataclass(frozen=True, slots=True)
class WordHost:
    """The host that a word may be. `label`: it has a name that no rule can state, such as a single label.

    `remote`: it is written with a user or a colon, as programs write what is on another machine.
    """

    facts: OriginFacts
    label: bool
    remote: bool


def host_origin(text: str) -> OriginFacts:
    """The origin of a host that is declared as one: a name or address, perhaps with a port. Never raises."""
    if text == "::1":
        return reached("http://[::1]/")
    if len(text) > LONGEST or (match := _AUTHORITY.fullmatch(text)) is None:
        return REFUSED
    if match["user"] is not None or match["rest"] is not None:
        return REFUSED
    return _origin(match["host"], text, "/")


def bare_host(text: str, endings: frozenset[str]) -> OriginFacts | None:
    """The origin of a text that is a host and perhaps a path, without a scheme; None for any other text.

    `endings` are those of file names. An e-mail address is no host, unless a path or port follows.
    """
    text = text[: LONGEST + 1]
    if _has_v6(text):
        return host_origin(text)
    if not text or (match := _AUTHORITY.fullmatch(text)) is None:
        return None
    host, user, port = match["host"], match["user"], match["port"]
    if port is not None and " " in port:  # a sentence: `pkg.Error: see a/b`
        return None
    plain, in_data = port is None and match["rest"] is None, endings is FILE_ENDINGS
    reached = in_data and _is_reached(host, user, port, alone=match["rest"] is None)
    if not reached and not _looks_like_host(host, plain and user is None, endings):
        return None
    if user is not None or reached:
        return None if plain and ":" not in (user or "") and in_data else REFUSED
    host = host if in_data else host.lower()  # a word such as `com.example.Main`
    return _origin(host, f"{host}{port or ''}", match["rest"] or "/")


def word_host(text: str) -> WordHost | None:
    """The host that a word of a command may be; None if it cannot be one. Never raises."""
    text = text[: LONGEST + 1]
    authority = re.split(r"[/?#\\]", text, maxsplit=1)[0]
    remote = "@" in authority or ":" in authority
    match = _WORD.fullmatch(text)
    host = "" if match is None else match["host"]
    if _has_v6(text) or (host.startswith("[") and _is_v6(host[1:-1])):
        return WordHost(REFUSED, label=False, remote=remote)
    if _NUMBERS.fullmatch(host):
        return _number(host, remote=remote, alone=host == text)
    if match is None or _LABELS.fullmatch(host) is None:
        return None
    name = host.lower().removesuffix(".")
    if not name.isascii():
        return WordHost(REFUSED, label="." not in name, remote=remote)
    found = https_origin(f"https://{name}{match['port'] or ''}/")
    if not found.canonical:
        found = https_origin(f"https://{name}/")
    return WordHost(found, label=not found.canonical, remote=remote)


def _number(host: str, *, remote: bool, alone: bool) -> WordHost | None:
    address = _v4(host)
    if address is None or (address in _NOWHERE and int(address)):
        return None
    number = alone and not any(address in network for network in (_NOWHERE, *_INTERNAL))
    return WordHost(REFUSED, label=number, remote=remote)


def _origin(host: str, authority: str, rest: str) -> OriginFacts:
    scheme = "http" if host in {"localhost", "127.0.0.1", "[::1]"} else "https"
    return reached(f"{scheme}://{authority}{rest}")


def _looks_like_host(host: str, alone: bool, endings: frozenset[str]) -> bool:  # noqa: FBT001 (one caller)
    if host.startswith("["):
        return _is_v6(host[1:-1])
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    if _NUMBERS.fullmatch(host):
        return _is_v4(host, alone, endings is FILE_ENDINGS)
    if _NAME.fullmatch(host) is None:
        return False
    ending = name.rpartition(".")[2]
    return ending not in FILE_ENDINGS and not (alone and name.count(".") == 1 and ending in endings)


def _is_reached(host: str, user: str | None, port: str | None, *, alone: bool) -> bool:
    """Whether text reaches a host of a single label: `build:8080`, `git@build:repository`. `page:1` does not."""
    if _LABELS.fullmatch(host) is None or "." in host or host.isdigit() or host.lower() == "localhost" or port is None:
        return False
    return bool(user) or (_PORT.fullmatch(port) is not None and (len(port) > len(":1") or not alone))


def _has_v6(text: str) -> bool:
    """Whether a text is an IPv6 address without brackets, possibly with a user before it and a path after it."""
    bare = re.split(r"[/?#\\]", text, maxsplit=1)[0].rpartition("@")[2]
    return bare.count(":") > 1 and _is_v6(bare)


def _is_v6(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _v4(text: str) -> IPv4Address | None:
    """The address of numbers as C libraries read them: `2852039166`, `0x7f.1`, `127.1`, `0`."""
    try:
        return IPv4Address(socket.inet_aton(text.rstrip(".")))
    except OSError:
        return None


def _is_v4(text: str, alone: bool, in_data: bool) -> bool:  # noqa: FBT001 (one caller)
    """Whether numbers are an address; short ones only where hardly anything else can be meant.

    `1.5` is a version, `20261122` a date and `12:30` a time: alone, these spellings are addresses of this machine or
    its link, and as one number those of an internal network; with a port or path any that leads somewhere.
    """
    if (address := _v4(text)) is None:
        return False
    if address in _NOWHERE and int(address) and "." not in text:
        return False
    if text.count(".") >= _QUAD or (_ODD_NUMBER.search(text) is not None and ("." in text or "x" in text.lower())):
        return True
    if alone:
        return any(address in network for network in (_LOCAL if "." in text else _INTERNAL))
    return in_data and (address not in _NOWHERE or not int(address))
