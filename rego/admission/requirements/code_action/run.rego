package admission.requirements.code_action.run

import data.admission.lib.code
import future.keywords.not

# METADATA
# title: The hints request no network
# description: Checked first. A missing hint means no network; null, a blank or any other word does not.
#   The sandbox is what blocks the network.
# custom:
#   code: "invalid_request:network_access_must_be_denied"
#   waivable: false
#   remedy: Omit network_access from the hints, or use a value listed in policy/code.yaml
#   reads: [code.hints.network_access]
# labels:
#   row: C03, C77, H19
#   threat: ACE
network_denied if code.network_denied

# METADATA
# title: The run has time left
# description: The time budget of a run is a value in policy/code.yaml; hints cannot raise it.
# custom:
#   code: "max_seconds"
#   after: ["invalid_request:network_access_must_be_denied"]
#   remedy: Start a new run; propose sooner, or have max_seconds in policy/code.yaml raised
#   reads: [code.max_seconds]
# labels:
#   row: C06, C44, C78
#   threat: ACE
in_time if code.in_time

# METADATA
# title: The task has attempts left
# description: Repairs count as attempts, and so do actions that are refused. A request without a task has none. The
#   limit is a value in policy/code.yaml.
# custom:
#   code: attempts_exhausted
#   after: [max_seconds]
#   remedy: Have a person review the earlier attempts, or start another task
#   reads: [code.attempts]
# labels:
#   row: C63
#   threat: ACE
attempts_left if code.attempts_left
