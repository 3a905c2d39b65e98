# The rules of a policy that match, looked up by what a call holds; policy/tools.yaml is their source.
#
# A rule that refuses or asks must not get lost: sections and their selectors say how many rows they have,
# and where one is missing nothing here is defined, so that whatever asks is not proven.
package admission.lib.tool_rules

import future.keywords.not

# The numbers of the rules of a section, `deny` or `confirm`, that cover some of these aspects.
#
# METADATA
# custom:
#   proof: the section and the selectors of the tool are whole, and each row of them is asked for
matching(policy, tool, section, aspects) := {number |
	some selector in data.policy.tool_lookup.tools[tool].selectors
	rules := rows.selectors[selector].rules
	some aspect in aspects
	number := rules[aspect]
} if {
	selectors := data.policy.tool_lookup.tools[tool].selectors
	rows := data.policy.tool_lookup.policies[policy][section]
	is_array(selectors)
	is_object(rows.selectors)
	count(rows.selectors) == rows.count
	broken := {selector | some selector in selectors; rows.selectors[selector]; not _whole(rows.selectors[selector])}
	count(broken) == 0
}

_whole(index) if {
	is_object(index.rules)
	count(index.rules) == index.count
}

# The number of the first rule that allows all of what a call holds: `held` has lists of aspects, one for
# each destination, path and command. The rules to try are those of one thing it holds, the one with fewest.
#
# METADATA
# custom:
#   proof: what is missing leaves rules out, and fewer rules allow less
first_allowing(policy, tool, held) := min(numbers) if {
	rows := data.policy.tool_lookup.policies[policy].allow
	tried := [rules | some pivot in _pivots(held); rules := _tried(rows, tool, pivot)]
	fewest := min([count(rules) | some rules in tried])
	numbers := {number |
		some rules in tried
		count(rules) == fewest
		some number in rules
		_covers_all(rows.covers[number], held)
	}
	count(numbers) > 0
}

# The first rule that allows a tool by its name alone.
allowing_by_name(policy, tool) := min(_tried(data.policy.tool_lookup.policies[policy].allow, tool, {"by name"}))

# `<ruleset>/<id>` of a rule by its number.
name(policy, section, number) := data.policy.tool_lookup.policies[policy][section].names[number]

# Whether some rule that allows covers this one thing.
some_covering(policy, tool, aspects) if {
	tried := _tried(data.policy.tool_lookup.policies[policy].allow, tool, aspects)
	is_array(tried)
	count(tried) > 0
}

# METADATA
# custom:
#   proof: what is missing leaves rules out, and fewer rules allow less
_tried(rows, tool, aspects) := [number |
	some selector in data.policy.tool_lookup.tools[tool].selectors
	rules := rows.selectors[selector].rules
	some aspect in aspects
	some number in rules[aspect]
]

# METADATA
# custom:
#   proof: a call holds nothing only when its three lists are there and empty
_pivots(held) := [{"always"}] if {
	held == {"hosts": [], "paths": [], "commands": []}
} else := [things[0] | some things in held; count(things) > 0]

# METADATA
# custom:
#   proof: the lists are complete, or `held` would not be there; a call that holds nothing has nothing to cover
_covers_all(covers, held) if {
	every things in [held.hosts, held.paths, held.commands] {
		every aspects in things {
			some aspect in aspects
			covers[aspect] == true
		}
	}
}
