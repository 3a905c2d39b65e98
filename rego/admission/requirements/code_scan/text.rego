package admission.requirements.code_scan.text

import data.admission.lib.code_scan
import future.keywords.not

# METADATA
# title: The code contains no web address
# description: In any letter case, including comments. The scan explains; the sandbox is what blocks the network.
# custom:
#   code: network_literal_blocked
#   field: scan.network_literals
#   remedy: Remove the address; code has no network access
# labels:
#   row: A82, C26
#   threat: ACE
no_web_address if code_scan.no_web_address

# METADATA
# title: The string literals in the code are of allowed kinds
# description: Refused are paths, addresses, format strings that access attributes or items, and invisible characters,
#   which show a reader another program; these in comments too.
# custom:
#   code: literal_not_allowed
#   each: scan.literals
#   empty: allowed
#   remedy: Remove the path, address, format string or invisible character from the code
#   reads: ["code.scan.{scan.language}.literals"]
# labels:
#   row: A80, H03
#   threat: ACE
literal_allowed(kind) if code_scan.literal_allowed(kind)

# METADATA
# title: The code builds no names or formats at run time
# description: A format that is not a literal, or a computed member name, can refer to anything.
# custom:
#   code: computed_not_allowed
#   each: scan.computed
#   empty: allowed
#   remedy: Write the format or member name as a literal
#   reads: ["code.scan.{scan.language}.computed"]
# labels:
#   row: H03
#   threat: ACE
computed_allowed(kind) if code_scan.computed_allowed(kind)
