package admission.added.lib.names

import future.keywords.not

# The team is the part before the first hyphen.
team(alias) := split(alias, "-")[0]
