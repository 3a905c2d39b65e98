"""x"""
from engine.facts.code_scan_items import ScanFacts, ScanError
def scan_javascript(code: str) -> ScanFacts:
    raise ScanError("no_scanner")
