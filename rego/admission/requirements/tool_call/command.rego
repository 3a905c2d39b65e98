package admission.requirements.tool_call.command

import data.admission.lib.tool_call
import data.admission.lib.tool_commands as commands
import future.keywords.not

# METADATA
# title: Options, variables, syntax and unknown words of a command are harmless, or its rule covers what they can do
# description: policy/commands.yaml lists what they can do. What is not listed is unknown. A rule covers it with `can`,
#   or by naming it in its words.
# custom:
#   code: command_part_not_permitted
#   each: command_parts
#   empty: allowed
#   standing: confirm
#   facts: {kind: kind, name: name, program: program}
#   remedy: Leave that part out, or write values in place of variables; else have it listed in policy/commands.yaml, or
#     have a rule permit it by `can`
#   reads: ["commands.programs.{program}"]
#   after: [tool_unknown]
# labels:
#   row: B10
part_permitted(part) if commands.abilities(part) == {"none"}

part_permitted(part) if part.command in tool_call.admitted_commands
