"""Reports of many requests, in order: in memory while they are few, then in a temporary file without a name."""

from __future__ import annotations

import pickle
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from itertools import pairwise

from engine.errors import EngineError, reason_of
from engine.reports.explain import Report

_MEMORY_BYTES = 4 << 20
"""Of packed reports, before they go to a file; some 40,000 records in order."""


class ReportSpool(Iterable[Report]):
    """Grows by `add`; each look at a report reads it anew, so only what is looked at is in memory.

    Raises EngineError if the folder for temporary files cannot be used.
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_MEMORY_BYTES)  # noqa: SIM115  (until `close`)
        self._ends = [0]

    def add(self, report: Report) -> None:
        """Keep one more report."""
        packed = zlib.compress(pickle.dumps(report), 1)
        try:
            self._file.seek(self._ends[-1])
            self._file.write(packed)
            self._file.flush()
        except OSError as error:
            raise EngineError(
                f"the reports cannot be written to a temporary file: {reason_of(error)}",
                remedy="free disk space in the folder for temporary files, or name another one in TMPDIR",
            ) from error
        self._ends.append(self._ends[-1] + len(packed))

    def close(self) -> None:
        """Free the memory, or remove the file."""
        self._file.close()

    def __iter__(self) -> Iterator[Report]:
        for start, end in pairwise(self._ends):
            self._file.seek(start)
            report: Report = pickle.loads(zlib.decompress(self._file.read(end - start)))  # noqa: S301  (written above)
            yield report
