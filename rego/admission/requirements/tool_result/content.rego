package admission.requirements.tool_result.content

import data.admission.lib.tool_result
import future.keywords.not

# METADATA
# custom:
#   proof: an error without a result shows nothing of one
_no_result if {
	input.status == "error"
	not input.result
}

# METADATA
# title: The whole result was checked
# description: Only text that was checked is shown. A result with more links than the engine lists is not shown.
# custom:
#   code: result_unread
#   waivable: false
#   remedy: Send the text of the result as `result.text`; shorten a result with thousands of links
#   after: [result_not_text]
#   proof: a result that has no text is an error, whose own requirements apply
# labels:
#   row: B28
#   threat: injection
looked_at if input.content.complete == true

looked_at if _no_result

# METADATA
# title: Secrets are removed from the result
# description: The engine searches every text of the result for keys, tokens and passwords. Whether they are taken out
#   is a value in policy/results.yaml.
# custom:
#   code: secret_in_result
#   waivable: false
#   remedy: Remove the secret where the tool reads it, or list `secrets` under `redact` in policy/results.yaml
#   reads: [results.redact]
#   after: [result_unread]
#   proof: a result that has no text is an error, whose own requirements apply
# labels:
#   row: B26
secrets_taken_out if input.content.secrets == 0

secrets_taken_out if {
	is_number(input.content.secrets)
	tool_result.taken_out("secrets")
}

secrets_taken_out if _no_result

# METADATA
# title: Hidden characters are removed from the result
# description: Invisible characters that no script or emoji needs can hide text from people and show it to a model.
# custom:
#   code: hidden_characters_in_result
#   waivable: false
#   remedy: Remove them where the tool reads the text, or list `hidden_characters` under `redact` in policy/results.yaml
#   reads: [results.redact]
#   after: [result_unread]
#   proof: a result that has no text is an error, whose own requirements apply
# labels:
#   row: B28
#   threat: injection
hidden_taken_out if input.content.hidden == 0

hidden_taken_out if {
	is_number(input.content.hidden)
	tool_result.taken_out("hidden_characters")
}

hidden_taken_out if _no_result

# METADATA
# title: Links and images carry data to named hosts only
# description: A program that shows a model's answer may load an image, and so send the data in its address.
#   Hosts, and how much may go to others, are values in policy/results.yaml; elsewhere the address is taken out.
# custom:
#   code: link_carries_data
#   each: links
#   empty: allowed
#   remedy: Add the origin to `hosts` in policy/results.yaml, or list `links` under `redact` there
#   reads: [results.hosts, results.data_characters, results.redact]
# labels:
#   row: B28
#   threat: injection
carries_nothing(link) if tool_result.harmless(link)

carries_nothing(link) if {
	is_string(link.id)
	tool_result.taken_out("links")
}

# METADATA
# title: The result has no instructions to the model
# description: A result informs; text in it that gives orders may come from anyone. Markers are values in
#   policy/results.yaml, and no list of them is complete.
# custom:
#   code: instructions_in_result
#   standing: confirm
#   remedy: Have a person read the result and approve it with `engine approvals grant`, or leave it out
#   reads: [results.markers]
#   after: [result_unread]
#   proof: a result that has no text is an error, whose own requirements apply
# labels:
#   row: B28
#   threat: injection
without_instructions if {
	input.content.instructions == 0
	is_object(data.policy.results.markers)
}

without_instructions if _no_result
