package admission.requirements.code_output.file

import data.admission.lib.code_output
import future.keywords.not

# METADATA
# title: The file contains no secret
# description: Files that a program leaves are kept byte for byte or not at all. Secret formats of vendors are values
#   in policy/secrets.yaml.
# custom:
#   code: artifact_secret
#   waivable: false
#   standing: warn
#   each: artifacts
#   empty: allowed
#   after: [code_runtime_error, invalid_code_output]
#   remedy: Write the file without the secret; the file was not kept
#   reads: [secrets.forms]
# labels:
#   row: C62
free_of_secrets(file) if code_output.keepable(file)
