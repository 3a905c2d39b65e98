package admission.requirements.code_scan.module

import data.admission.lib.code_scan
import future.keywords.not

# METADATA
# title: The code imports only modules that are allowed
# description: A module is known by its top-level name. A relative import reaches files beside the code, whatever
#   it is called; an import of what is put together at run time reaches anything.
# custom:
#   code: import_not_allowed
#   each: scan.imports
#   empty: allowed
#   remedy: Do without the module; those that are allowed stand in policy/code.yaml
#   reads: ["code.scan.{scan.language}.modules"]
# labels:
#   row: A79, A81, A82, A83, C20, C54, E08, H17
import_allowed(found) if code_scan.import_allowed(found)

# METADATA
# title: The code takes only members that are allowed out of a module
# description: A module holds the modules that it imports itself, so that one that is allowed leads to others.
#   Of a module that is refused nothing more is said.
# custom:
#   code: member_not_allowed
#   each: scan.members
#   empty: allowed
#   remedy: Use the members of the module that policy/code.yaml lists
#   reads: ["code.scan.{scan.language}.modules"]
# labels:
#   row: E08, H17
member_allowed(found) if code_scan.member_allowed(found)

# METADATA
# title: Modules are used by their own names
# description: What is taken out of a module that was put into a variable, a list or a class is seen by nobody.
# custom:
#   code: module_as_value
#   each: scan.modules
#   empty: allowed
#   remedy: Write the name of the module before the dot, and use it nowhere else
# labels:
#   row: H17
module_plain(found) if code_scan.module_plain(found)
