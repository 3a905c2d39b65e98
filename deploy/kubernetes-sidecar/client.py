"""An example of a client beside its engine: asks for one license a minute, and prints what it may do."""  # noqa: INP001  (run by path)

import sys
import time

from engine.api.client import Client

REQUEST = {
    "purpose": "train",
    "export_license": None,
    "license": "CC0-1.0",
    "sha256": "45fc3534f5b5f88dc073f5cadc10cace2fd2147f2866dc3775fab8c1c3752f65",
    "decisions": [],
}

with Client(sys.argv[1]) as engine:
    while True:
        decision = engine.decide("license", REQUEST)  # a deny, too, where no engine answers
        codes = [finding.code for finding in decision.findings]
        sys.stdout.write(" ".join([decision.outcome.value, *codes]) + "\n")
        sys.stdout.flush()
        time.sleep(60)
