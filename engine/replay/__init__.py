"""Recorded inputs, decided again by a candidate policy: nothing is enforced, and nothing is recorded."""
