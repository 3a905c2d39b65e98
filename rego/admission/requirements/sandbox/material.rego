package admission.requirements.sandbox.material

import data.admission.lib.input_files
import future.keywords.not

# METADATA
# title: The input files are within their limits
# description: Their number and their size together are values in policy/code.yaml. They take at most half of what the
#   profile lets a command write.
# custom:
#   code: input_files_exceeded
#   remedy: Give fewer or smaller files, each with a name of its own. `inputs` in policy/code.yaml has both limits;
#     together, files also take at most half of `disk_bytes` of the profile in policy/sandbox.yaml
#   facts: {files: files}
#   reads: [code.inputs, "sandbox.profiles.{profile}.limits"]
#   after: [profile_below_floor]
# labels:
#   row: B11, C30
#   threat: DoS
files_within if input_files.within(input.profile, "solution")
