"""Bulk decisions on Ray Data: many workers, each with an OPA of its own, and one record of all of them.

    engine.ray.admit(dataset, …)     adds outcome, codes and decision id to the rows of a `ray.data.Dataset`
    engine.ray.seal(admitted, …)     joins what its workers recorded, under a signed manifest
    engine.ray.check_corpus(…)       `engine check --ray`: files of Parquet and JSON lines

Ray is the extra `ray`; it is imported when it is used.
"""

from engine.ray.columns import Columns, Decided
from engine.ray.corpus import check_corpus
from engine.ray.dataset import admit, seal

__all__ = ["Columns", "Decided", "admit", "check_corpus", "seal"]
