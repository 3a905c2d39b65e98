package admission.requirements.llm.request

import data.admission.lib.llm
import future.keywords.not

# METADATA
# title: The model is admitted for this provider
# description: Models are values in policy/llm.yaml.
# custom:
#   code: model_not_admitted
#   after: [provider_not_admitted]
#   facts: {model: llm.model}
#   remedy: Ask for a model that the row of the provider in policy/llm.yaml lists, or have this one added there and
#     under `models`
#   reads: ["llm.models.{llm.model}"]
# labels:
#   row: A64
model_admitted if {
	input.llm.model in data.policy.llm.providers[llm.provider].models
	is_array(data.policy.llm.models[input.llm.model].answers_as)
}

# METADATA
# title: There is a prompt
# description: At least one message.
# custom:
#   code: prompt_missing
#   remedy: Send at least one message
# labels:
#   row: A102
prompt_stated if {
	is_number(input.llm.messages)
	input.llm.messages > 0
}

# METADATA
# title: The request is within the size limit
# description: Counted in bytes of the JSON that is sent, the prompt included. The limit is a value in policy/llm.yaml.
# custom:
#   code: prompt_too_large
#   facts: {bytes: llm.prompt_bytes}
#   remedy: Shorten the prompt, or have request.max_prompt_bytes in policy/llm.yaml raised
#   reads: [llm.request.max_prompt_bytes]
# labels:
#   row: A102
prompt_small_enough if {
	is_number(input.llm.prompt_bytes)
	input.llm.prompt_bytes >= 0
	input.llm.prompt_bytes <= data.policy.llm.request.max_prompt_bytes
}

# METADATA
# title: The requested tokens of the answer are within the limit
# description: The limit is a value in policy/llm.yaml.
# custom:
#   code: output_too_long
#   facts: {tokens: llm.max_output_tokens}
#   remedy: Ask for fewer tokens, or have request.max_output_tokens in policy/llm.yaml raised
#   reads: [llm.request.max_output_tokens]
# labels:
#   row: A102
output_short_enough if {
	is_number(input.llm.max_output_tokens)
	input.llm.max_output_tokens > 0
	input.llm.max_output_tokens <= data.policy.llm.request.max_output_tokens
}
