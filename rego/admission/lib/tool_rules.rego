# The rules of a policy that match, looked up by the aspects of a call; policy/tools.yaml is their source.
#
# Rows of the lookup are always named by their full path and never bound to a variable: OPA would copy them,
# at a cost that grows with the number of rules. Without `size`, a section is missing and nothing is defined.
package admission.lib.tool_rules

import data.admission.lib.tool_values
import future.keywords.not

# The numbers of the rules of a section, `deny` or `confirm`, that cover any of these aspects. A rule with conditions on
# arguments matches unless `values` show that one of them does not hold.
#
# METADATA
# custom:
#   proof: the selectors of the tool and the section are present, and the aspects are complete or refused elsewhere
matching(policy, tool, section, aspects, values) := _by_aspect(policy, tool, section, aspects) | {row.number |
	some selector in _selectors(tool)
	some row in data.policy.tool_lookup.policies[policy][section].conditional[selector]
	some aspect in row.aspects
	aspect in aspects
	not tool_values.refuted(row.where, values)
} if {
	is_array(_selectors(tool))
	is_number(data.policy.tool_lookup.policies[policy][section].size)
	is_object(data.policy.tool_lookup.policies[policy][section].conditional)
}

# METADATA
# custom:
#   proof: matching needs the selectors of the tool and the section to be present
_by_aspect(policy, tool, section, aspects) := {number |
	some selector in _selectors(tool)
	some aspect in aspects
	number := data.policy.tool_lookup.policies[policy][section].selectors[selector][aspect]
}

_selectors(tool) := data.policy.tool_lookup.tools[tool].selectors

# The number of the first rule that allows the whole call: `to_cover` has a set of aspects for each
# destination, path, command and value. Only the rules of the set with the fewest rules are tried.
#
# METADATA
# custom:
#   proof: a missing fact leaves rules out, and fewer rules allow less
first_allowing(policy, tool, to_cover) := min(covering) if {
	pivots := _pivots(to_cover)
	by_size := sort([[_tries(policy, tool, pivot), number] | some number, pivot in pivots])
	covering := {number |
		some number in _tried(policy, tool, pivots[by_size[0][1]])
		_covers_all(policy, number, to_cover)
	}
	count(covering) > 0
}

# The first rule that allows a tool by its name alone.
allowing_by_name(policy, tool) := min(_tried(policy, tool, {"by name"}))

# `<ruleset>/<id>` of a rule by its number.
name(policy, section, number) := data.policy.tool_lookup.policies[policy][section].names[number]

# Some allow rule covers one of these aspects.
some_covering(policy, tool, aspects) if {
	tries := _tries(policy, tool, aspects)
	is_number(tries)
	tries > 0
}

# METADATA
# custom:
#   proof: a missing fact leaves rules out, and fewer rules allow less
_tried(policy, tool, aspects) := [number |
	some selector in _selectors(tool)
	some aspect in aspects
	some number in data.policy.tool_lookup.policies[policy].allow.selectors[selector][aspect].rules
]

# METADATA
# custom:
#   proof: it only chooses the cheapest lookup
_tries(policy, tool, aspects) := sum([size |
	some selector in _selectors(tool)
	some aspect in aspects
	size := data.policy.tool_lookup.policies[policy].allow.selectors[selector][aspect].size
])

# METADATA
# custom:
#   proof: a call has nothing to cover only if its four lists are present and empty
_pivots(to_cover) := [{"always"}] if {
	to_cover == {"hosts": [], "paths": [], "commands": [], "values": []}
} else := [aspect_sets[0] | some aspect_sets in to_cover; count(aspect_sets) > 0]

# METADATA
# custom:
#   proof: the lists are complete, or `to_cover` would be undefined; an empty call has nothing to cover
_covers_all(policy, number, to_cover) if {
	every aspect_sets in [to_cover.hosts, to_cover.paths, to_cover.commands, to_cover.values] {
		every aspects in aspect_sets {
			_covers(policy, number, aspects)
		}
	}
}

_covers(policy, number, aspects) if {
	some aspect in aspects
	data.policy.tool_lookup.policies[policy].allow.covers[number][aspect] == true
}
