package admission.requirements.adapter.ability

import future.keywords.not

# METADATA
# title: The adapter runs in an admitted way
# description: An adapter runs in the process of the engine, on its registry of tools.
# custom:
#   code: execution_not_admitted
#   fixed: true
#   remedy: "State `execution: in_process`"
#   reads: [adapters.executions]
# labels:
#   row: A46
execution_admitted if input.manifest.execution in data.policy.adapters.executions

# METADATA
# title: The operation is admitted
# description: Operations are values in policy/adapters.yaml.
# custom:
#   code: operation_not_admitted
#   each: manifest.supported_operations
#   after: ["manifest_incomplete:supported_operations"]
#   remedy: Remove the operation from the manifest, or ask for it in policy/adapters.yaml
#   reads: [adapters.operations]
# labels:
#   row: A55
operation_admitted(operation) if operation.name in data.policy.adapters.operations

# METADATA
# title: The adapter has no capability besides its operations
# description: No adapter discovers or connects to servers, starts a browser, reads credentials, brokers secrets,
#   reaches remote file systems or executes generated handlers. The manifest states so with an empty list.
# custom:
#   code: capability_not_admitted
#   fixed: true
#   each: manifest.capabilities
#   empty: required
#   proof: the list must be there, and an empty one states that there is no capability
#   remedy: "State `capabilities: []`, and use an adapter that needs none"
# labels:
#   row: A47, A48, A49, A50, A51, A52
no_capability if input.manifest.capabilities == []
