package admission.requirements.code_scan.read

import data.admission.lib.code_scan
import future.keywords.not

# METADATA
# title: The language of the code is one that is scanned
# description: Each language has its own lists in policy/code.yaml; code in another one cannot be looked at.
# custom:
#   code: language_not_scanned
#   remedy: Write the code in a language that has a row under `scan` in policy/code.yaml
#   reads: ["code.scan.{scan.language}"]
# labels:
#   row: C71
language_scanned if code_scan.language_scanned

# METADATA
# title: All of the code was looked at
# description: Code that is larger, or nested more deeply, than a scan reads is not looked at in part.
# custom:
#   code: scan_incomplete
#   remedy: Write the code shorter and less deeply nested
#   after: [language_not_scanned]
# labels:
#   row: C65, H18
complete if code_scan.complete

# METADATA
# title: The code can be parsed
# description: What is no program of its language has no imports, calls or names to look at.
# custom:
#   code: syntax_error
#   remedy: Correct the syntax of the code; it is plain UTF-8 text without NUL
#   after: [language_not_scanned, scan_incomplete]
# labels:
#   row: C27
parsed if code_scan.parsed

# METADATA
# title: The code declares no encoding that it is not written in
# description: A program is run from a file in UTF-8. What an interpreter reads in another encoding is another
#   program than the one that was looked at.
# custom:
#   code: encoding_not_allowed
#   each: scan.encodings
#   empty: allowed
#   remedy: Leave the declaration of the encoding out
# labels:
#   row: H03
encoding_allowed(kind) if code_scan.encoding_allowed(kind)
