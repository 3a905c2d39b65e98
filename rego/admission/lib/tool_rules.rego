# The rules of a policy that match, looked up by what a call holds; policy/tools.yaml is their source.
#
# Rows of the lookup are named in full, never bound as a whole: OPA copies what a variable holds, and the cost
# would grow with the number of rules. `size` says that a section is there; without it nothing here is defined.
package admission.lib.tool_rules

import future.keywords.not

# The numbers of the rules of a section, `deny` or `confirm`, that cover some of these aspects.
#
# METADATA
# custom:
#   proof: the selectors of the tool and the section are there, and the aspects are complete or refused elsewhere
matching(policy, tool, section, aspects) := {number |
	some selector in _selectors(tool)
	some aspect in aspects
	number := data.policy.tool_lookup.policies[policy][section].selectors[selector][aspect]
} if {
	is_array(_selectors(tool))
	is_number(data.policy.tool_lookup.policies[policy][section].size)
}

_selectors(tool) := data.policy.tool_lookup.tools[tool].selectors

# The number of the first rule that allows all of what a call holds: `held` has lists of aspects, one for
# each destination, path and command. The rules to try are those of one thing it holds, the one with fewest.
#
# METADATA
# custom:
#   proof: what is missing leaves rules out, and fewer rules allow less
first_allowing(policy, tool, held) := min(found) if {
	pivots := _pivots(held)
	by_size := sort([[_tries(policy, tool, pivot), number] | some number, pivot in pivots])
	found := {one | some one in _tried(policy, tool, pivots[by_size[0][1]]); _covers_all(policy, one, held)}
	count(found) > 0
}

# The first rule that allows a tool by its name alone.
allowing_by_name(policy, tool) := min(_tried(policy, tool, {"by name"}))

# `<ruleset>/<id>` of a rule by its number.
name(policy, section, number) := data.policy.tool_lookup.policies[policy][section].names[number]

# Whether some rule that allows covers this one thing.
some_covering(policy, tool, aspects) if {
	tries := _tries(policy, tool, aspects)
	is_number(tries)
	tries > 0
}

# METADATA
# custom:
#   proof: what is missing leaves rules out, and fewer rules allow less
_tried(policy, tool, aspects) := [number |
	some selector in _selectors(tool)
	some aspect in aspects
	some number in data.policy.tool_lookup.policies[policy].allow.selectors[selector][aspect].rules
]

# METADATA
# custom:
#   proof: it only says where looking is cheapest
_tries(policy, tool, aspects) := sum([size |
	some selector in _selectors(tool)
	some aspect in aspects
	size := data.policy.tool_lookup.policies[policy].allow.selectors[selector][aspect].size
])

# METADATA
# custom:
#   proof: a call holds nothing only when its three lists are there and empty
_pivots(held) := [{"always"}] if {
	held == {"hosts": [], "paths": [], "commands": []}
} else := [things[0] | some things in held; count(things) > 0]

# METADATA
# custom:
#   proof: the lists are complete, or `held` would not be there; a call that holds nothing has nothing to cover
_covers_all(policy, number, held) if {
	every things in [held.hosts, held.paths, held.commands] {
		every aspects in things {
			_covers(policy, number, aspects)
		}
	}
}

_covers(policy, number, aspects) if {
	some aspect in aspects
	data.policy.tool_lookup.policies[policy].allow.covers[number][aspect] == true
}
