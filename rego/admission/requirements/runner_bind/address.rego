package admission.requirements.runner_bind.address

import future.keywords.not

# METADATA
# title: The bind address is admitted
# description: Addresses are classified by who can reach them. The admitted classes are values in policy/runners.yaml.
# custom:
#   code: bind_address_not_admitted
#   remedy: Bind to 127.0.0.1 or to the private address of the cluster
#   reads: [runners.listeners.addresses]
# labels:
#   row: D01, D02
address_admitted if input.listener.reach in data.policy.runners.listeners.addresses

# METADATA
# title: The port of the runner is not published
# description: A published port is reachable from outside the deployment, whatever the bind address.
# custom:
#   code: port_published
#   remedy: Publish no port of the container; callers reach it inside the deployment
# labels:
#   row: D02
port_kept_inside if input.listener.published == false
