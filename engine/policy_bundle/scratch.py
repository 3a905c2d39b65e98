"""Temporary folders of this user alone (0700), for OPA to read what was read before."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.documents.files import printable
from engine.errors import DecideError, reason_of


@contextmanager
def scratch() -> Iterator[Path]:
    """A new folder, removed at the end. Raises DecideError if it cannot be made, or written to within the block."""
    try:
        with tempfile.TemporaryDirectory(prefix="admission-policy-") as folder:
            yield Path(folder)
    except OSError as error:
        raise DecideError(
            f"the temporary folder `{printable(tempfile.tempdir or 'TMPDIR')}` cannot be used: {reason_of(error)}",
            remedy="free disk space there, or set TMPDIR to another folder",
            code="engine.policy_cache",
        ) from error
