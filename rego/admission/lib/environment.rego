# The values of the environment that a source bundle names.
package admission.lib.environment

import future.keywords.not

row := data.policy.environments.environments[input.environment]
