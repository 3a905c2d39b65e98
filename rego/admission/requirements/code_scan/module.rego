package admission.requirements.code_scan.module

import data.admission.lib.code_scan
import future.keywords.not

# METADATA
# title: The code imports only allowed modules
# description: Modules are matched by top-level name. A relative import could reach any file beside the code; an
#   import by a computed name could reach any module.
# custom:
#   code: import_not_allowed
#   each: scan.imports
#   empty: allowed
#   remedy: Remove the import; allowed modules are listed in policy/code.yaml
#   reads: ["code.scan.{scan.language}.modules"]
# labels:
#   row: A79, A81, A82, A83, C20, C54, E08, H17
#   threat: ACE
import_allowed(module) if code_scan.import_allowed(module)

# METADATA
# title: The code uses only allowed members of a module
# description: A module exposes the modules that it imports, so an allowed one can lead to others. Members of a
#   refused module are not reported.
# custom:
#   code: member_not_allowed
#   each: scan.members
#   empty: allowed
#   remedy: Use the members of the module that policy/code.yaml lists
#   reads: ["code.scan.{scan.language}.modules"]
# labels:
#   row: E08, H17
#   threat: ACE
member_allowed(member) if code_scan.member_allowed(member)

# METADATA
# title: Modules are used by their own names
# description: Uses of a module that was put into a variable, list or class cannot be scanned.
# custom:
#   code: module_as_value
#   each: scan.modules
#   empty: allowed
#   remedy: Write the name of the module before the dot, and use it nowhere else
# labels:
#   row: H17
#   threat: ACE
module_plain(module) if code_scan.module_plain(module)
