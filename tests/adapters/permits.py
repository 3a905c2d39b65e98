"""Permits as tests seal them, and those that no executor may take for one of its own."""

from __future__ import annotations

from dataclasses import replace

from engine.model import Limits, Permit

DIGEST = "sha256:" + "0" * 64
OTHER_DIGEST = "sha256:" + "1" * 64


def sealed(point: str, limits: Limits, digest: str = DIGEST) -> Permit:
    return Permit.seal(decision_id="d", point=point, input_digest=digest, limits=limits)


def misused(own: Permit) -> dict[str, Permit]:
    """This permit forged, or sealed for something else, by what is wrong with it."""
    return {
        "forged": replace(own, _seal=b"x" * 32),
        "unsealed": replace(own, _seal=None),
        "another decision": replace(own, decision_id="e"),
        "another point": sealed("license", own.limits, own.input_digest),
        "another input": sealed(own.point, own.limits, OTHER_DIGEST),
    }


MISUSED = tuple(misused(sealed("license", Limits())))
"""The names of all that can be wrong."""
