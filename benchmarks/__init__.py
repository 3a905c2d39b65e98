"""Ratios measured on this machine; run them with `scripts/bench`. No test, and nothing waits for them."""
