package admission.requirements.code_scan.read

import data.admission.lib.code_scan
import future.keywords.not

# METADATA
# title: The language of the code can be scanned
# description: Each language has its own lists in policy/code.yaml; code in other languages cannot be scanned.
# custom:
#   code: language_not_scanned
#   remedy: Write the code in a language that has a row under `scan` in policy/code.yaml
#   reads: ["code.scan.{scan.language}"]
# labels:
#   row: C71
#   threat: ACE
language_scanned if code_scan.language_scanned

# METADATA
# title: All of the code was scanned
# description: Code that exceeds the size or nesting limits of a scan is refused as a whole.
# custom:
#   code: scan_incomplete
#   remedy: Shorten the code and nest it less deeply
#   after: [language_not_scanned]
# labels:
#   row: C65, H18
#   threat: ACE
complete if code_scan.complete

# METADATA
# title: The code can be parsed
# description: Code that cannot be parsed cannot be scanned.
# custom:
#   code: syntax_error
#   remedy: Correct the syntax of the code; it is plain UTF-8 text without NUL, and without lines of notebooks such as
#     `%matplotlib` and `!pip`
#   after: [scan_incomplete]
# labels:
#   row: C27
#   threat: ACE
parsed if code_scan.parsed

# METADATA
# title: The code declares no encoding other than UTF-8
# description: A program is run from a UTF-8 file. In another encoding, the interpreter would read a different program
#   than the one scanned.
# custom:
#   code: encoding_not_allowed
#   each: scan.encodings
#   empty: allowed
#   remedy: Remove the encoding declaration
# labels:
#   row: H03
#   threat: ACE
encoding_allowed(kind) if code_scan.encoding_allowed(kind)
