"""Verifies all chains of a state folder, also while engines write to them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from engine.record.chains import chain_folder, chain_folders, chain_path, require_chain
from engine.record.checkpoint import key_of, read_identity
from engine.record.layout import Break, BreakKind, BrokenError, broken_file
from engine.record.storage import Storage
from engine.record.verify import Heads, Verification, verify

_COPY = "--against"
"""Names a copied checkpoint in a break; it is in no chain."""


def verify_chains(
    state: Path, heads: Mapping[int, Heads] | None = None, against: bytes | None = None
) -> dict[int, Verification]:
    """`verify` for each chain by its number; places of breaks are relative to the state folder.

    `heads` are those that the state remembers, by chain, read before this is called. `against` is a copied
    checkpoint; the chain that signed it has to contain it.
    """
    known = heads or {}
    last = max(chain_folders(state))
    signer = None if against is None else _signer(state, last, against)
    found = {
        number: verify(chain_folder(state, number), known.get(number), against if number == signer else None)
        for number in range(1, max([last, *known]) + 1)
    }
    for number, chain in found.items():
        place = chain_path(number)
        named = (one if one.file == _COPY else replace(one, file=place + one.file) for one in chain.breaks)
        chain.breaks = tuple(named) or _gone(state, number, last)
    if against is not None and signer is None:
        expected = "a chain with the key of this checkpoint"
        found[1].breaks += (broken_file(_COPY, BreakKind.ROLLED_BACK, expected, "none").broken,)
    return found


def _signer(state: Path, last: int, against: bytes) -> int | None:
    """The chain whose key signed a copied checkpoint; else the first, for which the signature is then wrong."""
    if (key := key_of(against)) is None:
        return 1
    for number in range(1, last + 1):
        with suppress(BrokenError, OSError):  # reported by verifying this chain
            identity = read_identity(Storage(chain_folder(state, number)))
            if identity is not None and identity.key_id == key:
                return number
    return None


def _gone(state: Path, number: int, last: int) -> tuple[Break, ...]:
    try:
        require_chain(state, number, last)
    except BrokenError as problem:
        return (problem.broken,)
    return ()
