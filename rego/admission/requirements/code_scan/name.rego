package admission.requirements.code_scan.name

import data.admission.lib.code_scan
import future.keywords.not

# METADATA
# title: The code calls only what it may call
# description: Of built-in names those that are listed may be called, and nothing by an attribute that is denied.
# custom:
#   code: call_not_allowed
#   each: scan.calls
#   empty: allowed
#   remedy: Do without the call; what may be called stands in policy/code.yaml
#   reads: ["code.scan.{scan.language}.builtins"]
# labels:
#   row: A80, A81, A82, C21, C22, E08, H17
call_allowed(call) if code_scan.call_allowed(call)

# METADATA
# title: The code reaches no attribute that is denied
# description: On whatever it is. Attributes that begin with two underscores lead into the interpreter.
# custom:
#   code: attr_not_allowed
#   each: scan.attributes
#   empty: allowed
#   remedy: Do without the attribute
#   reads: ["code.scan.{scan.language}.denied_attributes"]
# labels:
#   row: A81, A82, A83, C22, C25, H03
attribute_allowed(found) if code_scan.attribute_allowed(found)

# METADATA
# title: The code uses no name that is denied
# description: Names of introspection and of the system are refused without a call too, those that begin with two
#   underscores wherever they stand, and built-in names that are not listed as soon as they are passed on.
# custom:
#   code: name_not_allowed
#   each: scan.names
#   empty: allowed
#   remedy: Choose another name, or do without it
#   reads: ["code.scan.{scan.language}.denied_names"]
# labels:
#   row: A83, C23, C24, C25, H03, H17
name_allowed(found) if code_scan.name_allowed(found)

# METADATA
# title: The code reads its input no more often than it may
# description: The payload comes as one text. Whatever passes the reader on could read any number of times.
# custom:
#   code: too_many_input_reads
#   remedy: Read the input once, by a call
#   reads: ["code.scan.{scan.language}.input_reads"]
#   after: [language_not_scanned]
# labels:
#   row: C28
input_read_within if code_scan.input_read_within
