package admission.requirements.runner_request.tool

import data.admission.lib.runner
import future.keywords.not

# METADATA
# title: No tool of the run is code
# description: Code in a request would run on the runner's machine. This holds for every kind of tool with code, and
#   no value admits it.
# custom:
#   code: CODE_TOOL_UNSUPPORTED_MESSAGE
#   each: tools
#   empty: allowed
#   after: [uri_not_allowlisted]
#   remedy: Remove the code, and offer a tool of kind `gateway` or `callback`
# labels:
#   row: D14
code_free(tool) if tool.code == false

# METADATA
# title: The kind of every tool is admitted
# description: Kinds are rows in policy/runners.yaml.
# custom:
#   code: tool_kind_not_admitted
#   each: tools
#   empty: allowed
#   after: [CODE_TOOL_UNSUPPORTED_MESSAGE]
#   remedy: Leave out the tool, or ask for its kind to be added to policy/runners.yaml
#   reads: ["runners.tools.{kind}"]
# labels:
#   row: D21
kind_admitted(tool) if is_object(data.policy.runners.tools[tool.kind])

# METADATA
# title: A remote run under strict enforcement has no tool on the runner's machine
# description: Such a tool acts outside the declared sandbox. Where each kind of tool runs, and which enforcement
#   modes admit it, are values in policy/runners.yaml.
# custom:
#   code: runner_host_tool
#   each: tools
#   empty: allowed
#   after: [uri_not_allowlisted, backend_not_admitted]
#   remedy: Leave out the tool, or declare the boundaries with enforcement best_effort
#   reads: ["runners.tools.{kind}", runners.runner_host_tools]
# labels:
#   row: D11
within_sandbox(tool) if {
	is_string(tool.kind)
	runner.host(input.agent) == "runner"
}

within_sandbox(tool) if {
	is_string(tool.kind)
	input.sandbox_permission.enforcement in data.policy.runners.runner_host_tools
}

within_sandbox(tool) if runner.off_runner(tool.kind)
