package admission.requirements.code_output.run

import data.admission.lib.code_output
import future.keywords.not

# METADATA
# title: The output contract is known
# description: Contracts are rows in policy/code.yaml.
# custom:
#   code: "invalid_request:contract_unknown"
#   remedy: Name a contract that is in policy/code.yaml
#   reads: [code.contracts]
# labels:
#   row: C38
contract_known if is_object(code_output.contract)

# METADATA
# title: The program ran to its end
# description: A run that was cancelled or that the sandbox could not complete has no result.
# custom:
#   code: "code_run_incomplete"
#   after: ["invalid_request:contract_unknown"]
#   remedy: Run the action again; if the sandbox failed, `engine doctor --sandbox` shows what is missing
# labels:
#   row: C73
ended if code_output.stopped

ended if {
	code_output.ended
	count(input.run.exits) == 1
	is_number(input.run.exits[0].code)
}

# METADATA
# title: The program ended within its time limit
# description: Wall-clock time and CPU time; the sandbox kills a program that exceeds either.
# custom:
#   code: "code_timeout"
#   after: [code_run_incomplete]
#   remedy: Reduce the work of the program, or raise the time hint within the bounds of policy/code.yaml
#   facts: {ended: run.status}
#   reads: [code.hints.exec_timeout_seconds, code.max_seconds]
# labels:
#   row: C34, C73
in_time if code_output.ended

in_time if input.run.status == "output_limit"

# METADATA
# title: Standard output is within its size limit
# description: Counted in bytes, before trimming. The larger of two counts applies, that of the text as UTF-8
#   and that of the sandbox.
# custom:
#   code: "code_output_too_large"
#   after: [code_timeout]
#   remedy: Print only the result. The limit is that of the contract in policy/code.yaml; without one, the general limit
#     there
#   reads: ["code.contracts.{contract}.text", "code.contracts.{contract}.streams", code.stdout_bytes]
# labels:
#   row: C35, C61, C73, C85
stdout_fits if {
	_not_cut("stderr")
	is_number(input.run.stdout_bytes)
	is_number(input.output.bytes)
	is_number(code_output.streams.stdout_bytes)
	input.run.stdout_bytes <= code_output.streams.stdout_bytes
	input.output.bytes <= code_output.streams.stdout_bytes
}

# METADATA
# title: Standard error is within its size limit
# description: Counted in bytes that the sandbox received.
# custom:
#   code: "code_stderr_too_large"
#   after: [code_output_too_large]
#   remedy: Print less on standard error. The limit is that of the contract in policy/code.yaml; without one, the
#     general limit there
#   reads: ["code.contracts.{contract}.text", "code.contracts.{contract}.streams", code.stderr_bytes]
# labels:
#   row: C35, C61, C73, C85
stderr_fits if {
	_not_cut("stdout")
	is_number(input.run.stderr_bytes)
	is_number(code_output.streams.stderr_bytes)
	input.run.stderr_bytes <= code_output.streams.stderr_bytes
}

# No other limit cut the output.
_not_cut(_) if input.run.status in {"timeout_cpu", "timeout_wall"}

_not_cut(_) if code_output.ended

_not_cut(other) if {
	input.run.status == "output_limit"
	input.run.limit == other
}

# METADATA
# title: The program ended with exit code 0
# description: A program killed by a signal has the negative number of the signal as exit code.
# custom:
#   code: "code_runtime_error"
#   each: run.exits
#   empty: allowed
#   after: [code_stderr_too_large]
#   remedy: Correct the program; the trace of the run ends with its error. If it ended with `oom`, use less memory. For
#     a missing module, name a package environment that has it
#   facts: {ended: run.status}
# labels:
#   row: C36, C73
ended_well(exit) if {
	exit.code == 0
	input.run.status == "ok"
}
