package admission.requirements.code_scan.name

import data.admission.lib.code_scan
import future.keywords.not

# METADATA
# title: The code calls only allowed functions
# description: Only listed built-in functions may be called, and nothing through a denied attribute.
# custom:
#   code: call_not_allowed
#   each: scan.calls
#   empty: allowed
#   remedy: Remove the call; allowed functions are listed in policy/code.yaml
#   reads: ["code.scan.{scan.language}.builtins"]
# labels:
#   row: A80, A81, A82, C21, C22, E08, H17
#   threat: ACE
call_allowed(call) if code_scan.call_allowed(call)

# METADATA
# title: The code uses no denied attribute
# description: Applies to every object. Attributes that begin with two underscores give access to the interpreter.
# custom:
#   code: attr_not_allowed
#   each: scan.attributes
#   empty: allowed
#   remedy: Remove the attribute
#   reads: ["code.scan.{scan.language}.denied_attributes"]
# labels:
#   row: A81, A82, A83, C22, C25, H03
#   threat: ACE
attribute_allowed(attribute) if code_scan.attribute_allowed(attribute)

# METADATA
# title: The code uses no denied name
# description: Names for introspection and the system are refused even without a call, names with two leading
#   underscores everywhere, and unlisted built-in names when passed as values.
# custom:
#   code: name_not_allowed
#   each: scan.names
#   empty: allowed
#   remedy: Use another name, or remove it
#   reads: ["code.scan.{scan.language}.denied_names"]
# labels:
#   row: A83, C23, C24, C25, H03, H17
#   threat: ACE
name_allowed(name) if code_scan.name_allowed(name)

# METADATA
# title: The code reads its input within the allowed number of reads
# description: The payload is one text. A reader that is passed as a value could be called any number of times.
# custom:
#   code: too_many_input_reads
#   field: scan.input_calls
#   remedy: Call the reader once, and use its name for nothing else
#   reads: ["code.scan.{scan.language}.input_reads"]
#   after: [language_not_scanned]
# labels:
#   row: C28
#   threat: ACE
input_read_within if code_scan.input_read_within
