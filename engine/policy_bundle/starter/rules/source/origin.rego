package admission.added.source.origin

import future.keywords.not

import data.admission.added.lib.names

# METADATA
# title: The origin alias of every record begins with one of our teams
# description: Questions about a source go to its team. The teams are in values/parameters.yaml.
# custom:
#   code: origin_team_unknown
#   each: bundle.records
#   field: origin_alias
#   remedy: Begin origin_alias with a team of values/parameters.yaml, such as acme-recipes
#   reads: [parameters.teams]
origin_team_known(record) if names.team(record.origin_alias) in data.policy.parameters.teams
