package admission.requirements.code_scan.text

import data.admission.lib.code_scan
import future.keywords.not

# METADATA
# title: The code holds no web address
# description: In whatever case, and in comments too. This explains; what keeps code from the network is the
#   sandbox.
# custom:
#   code: network_literal_blocked
#   remedy: Take the address out; code has no network
# labels:
#   row: A82, C26
no_web_address if code_scan.no_web_address

# METADATA
# title: The texts in the code are of kinds that are allowed
# description: Text that names a path or an address, or a format that reaches into what it is given.
# custom:
#   code: literal_not_allowed
#   each: scan.literals
#   empty: allowed
#   remedy: Take the path, the address or the format that reaches into things out of the code
#   reads: ["code.scan.{scan.language}.literals"]
# labels:
#   row: A80, H03
literal_allowed(kind) if code_scan.literal_allowed(kind)

# METADATA
# title: The code puts nothing together at run time that a scan cannot follow
# description: A format that stands in no literal, or a member whose name is built, can name anything.
# custom:
#   code: computed_not_allowed
#   each: scan.computed
#   empty: allowed
#   remedy: Write the format or the name of the member out
#   reads: ["code.scan.{scan.language}.computed"]
# labels:
#   row: H03
computed_allowed(kind) if code_scan.computed_allowed(kind)
