"""The record: one line a decision, chained over exact bytes, on disk before the answer is given."""

from __future__ import annotations

from engine.record.log import RecordLog
from engine.record.model import (
    DecisionRecord,
    Durations,
    PolicyRecord,
    RecoveryRecord,
    ReplayRecord,
    ResultRecord,
    RetentionRecord,
    Versions,
    timestamp,
)
from engine.record.redaction import redact, redact_text
from engine.record.source_events import EventName, Hashes, SourceEvent
from engine.record.verify import Verification, verify

__all__ = [
    "DecisionRecord",
    "Durations",
    "EventName",
    "Hashes",
    "PolicyRecord",
    "RecordLog",
    "RecoveryRecord",
    "ReplayRecord",
    "ResultRecord",
    "RetentionRecord",
    "SourceEvent",
    "Verification",
    "Versions",
    "redact",
    "redact_text",
    "timestamp",
    "verify",
]
