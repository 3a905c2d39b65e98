package admission.requirements.code_action.run

import data.admission.lib.code
import future.keywords.not

# METADATA
# title: The hints ask for no network
# description: Looked at before everything else. A hint that is not there asks for none; null, a blank or another word
#   does not say that it does not. What keeps a program from the network is the sandbox.
# custom:
#   code: "invalid_request:network_access_must_be_denied"
#   remedy: Leave network_access out of the hints, or state one of the words in policy/code.yaml
#   reads: [code.hints.network_access]
# labels:
#   row: C03, C77, H19
network_denied if code.network_denied

# METADATA
# title: The time budget of the run is not spent
# description: The seconds of a whole run are a value in policy/code.yaml, and no hint raises them.
# custom:
#   code: "max_seconds"
#   after:
#     - "invalid_request:network_access_must_be_denied"
#   remedy: Start the run again; propose sooner, or have max_seconds in policy/code.yaml raised
#   reads: [code.max_seconds]
# labels:
#   row: C06, C44, C78
in_time if code.in_time
