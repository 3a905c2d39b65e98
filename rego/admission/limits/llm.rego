# One attempt: exactly this request, to exactly this address, what counts as its answer, and what may follow it.
package admission.limits.llm

import data.admission.lib.llm
import future.keywords.not

# METADATA
# custom:
#   proof: an address without text is dropped, and then the counts differ; a price that is not there makes the cost
#     unknown and nothing else
limits := {
	"provider": llm.provider,
	"url_digest": input.llm.url.digest,
	"host": input.llm.url.host,
	"port": input.llm.url.port,
	"addresses": addresses,
	"status": llm.status,
	"max_bytes": data.policy.llm.request.max_answer_bytes,
	"seconds": min([input.llm.timeout_seconds, data.policy.llm.request.seconds]),
	"model": input.llm.model,
	"prompt_digest": input.llm.prompt_digest,
	"stream": input.llm.stream,
	"answers_as": data.policy.llm.models[input.llm.model].answers_as,
	"finish_reasons": data.policy.llm.request.finish_reasons,
	"unmetered": data.policy.llm.request.unmetered_answers,
	"prices": [price | some name, price in data.policy.llm.prices; name == input.llm.model],
	"retry_errors": _retry_errors,
	"wait_least_ms": bits.rsh(_wait_ms, 1),
	"wait_most_ms": _wait_ms,
	"longest_wait_ms": data.policy.llm.retry.longest_wait_ms,
} if {
	is_number(input.llm.timeout_seconds)
	is_number(data.policy.llm.request.seconds)
	is_array(input.addresses)
	addresses := [address.text | some address in input.addresses; is_string(address.text)]
	count(addresses) > 0
	count(addresses) == count(input.addresses)
}

# The longest wait doubles from attempt to attempt, up to the longest one of the policy.
_wait_ms := min([
	data.policy.llm.retry.longest_wait_ms,
	bits.lsh(data.policy.llm.retry.first_wait_ms, input.llm.attempt - 1),
]) if {
	is_number(data.policy.llm.retry.longest_wait_ms)
	is_number(data.policy.llm.retry.first_wait_ms)
	is_number(input.llm.attempt)
}

# After the last attempt nothing is sent again.
_retry_errors := data.policy.llm.retry.errors if {
	is_number(input.llm.attempt)
	input.llm.attempt < data.policy.llm.retry.max_attempts
}

_retry_errors := [] if {
	is_number(input.llm.attempt)
	input.llm.attempt >= data.policy.llm.retry.max_attempts
}
