"""From what a program said and what the host saw to one word an act: `did` is only what really came to pass."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from adapters.sandbox.probe.canaries import FILES, Canaries, Victim

ALLOWED = "ADMISSION_ALLOWED"
"""A variable that the program is given on purpose."""

_SECRETS = (*FILES, "process_environment", "shared_memory", "inherited", "secret_variable")
_SENT = ("tcp", "udp", "dns", "unix_path", "unix_abstract")
_DYING_SECONDS = 5.0
"""For a process that was killed to be gone, on a machine that does other things too."""

_USUAL = frozenset({"PATH", "HOME", "LANG", "PWD", "PYTHONHASHSEED", ALLOWED})
"""Variables that tell nothing of the host."""


def said(output: bytes) -> dict[str, str]:
    """The words of the probe program; none of what is not its answer."""
    try:
        words = json.loads(output)
    except ValueError:
        return {}
    return {str(act): str(word) for act, word in words.items()} if isinstance(words, dict) else {}


def compared(words: Mapping[str, str], token: str, canaries: Canaries, victim: Victim) -> dict[str, str]:
    """The words with everything that the host can see put right. `token` is what this run sent and wrote."""
    seen = dict(words)
    for act in _SECRETS:
        seen[act] = _secret(words.get(act, "missing"), canaries.secret)
    for act in _SENT:
        seen[act] = _came(words.get(act, "missing"), f"{act}:{token}" in canaries.reached)
    seen["outside_write"] = _came(words.get("outside_write", "missing"), canaries.wrote(token))
    killed = words.get("process_killed", "missing")
    seen["process_killed"] = _came(killed, victim.hurt(_DYING_SECONDS if killed == "did" else 0))
    seen["variables"] = _none(set(_listed(words, "variables", "names:")) - _USUAL, words.get("variables"))
    seen["descriptors"] = _none(_listed(words, "descriptors", "fds:"), words.get("descriptors"))
    seen["host_name"] = _same(words, "host_name", os.uname().nodename, "did", "other")
    seen["work_environment"] = _same(words, "work_environment", canaries.secret[::-1], "did", "failed:value")
    return seen


def _secret(word: str, secret: str) -> str:
    if secret in word:
        return "did"
    return "none" if word in {"value:", "read:"} else "failed:other" if word.startswith(("value:", "read:")) else word


def _came(word: str, happened: bool) -> str:  # noqa: FBT001 (what the host saw)
    if happened:
        return "did"
    return "failed:unseen" if word == "did" else word


def _listed(words: Mapping[str, str], act: str, sort: str) -> list[str]:
    return [one for one in words.get(act, "").removeprefix(sort).split(",") if one]


def _none(found: object, word: str | None) -> str:
    return "missing" if word is None else "did" if found else "none"


def _same(words: Mapping[str, str], act: str, value: str, same: str, other: str) -> str:
    word = words.get(act)
    return "missing" if word is None else same if word == f"value:{value}" else other
