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
#   proof: the selectors, the section and the values are present, and the aspects are complete or refused elsewhere
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
	stated := {value.name | some value in values}
	count({condition.argument |
		some selector in _selectors(tool)
		some row in data.policy.tool_lookup.policies[policy][section].conditional[selector]
		some condition in row.where
	} - stated) == 0
}

# METADATA
# custom:
#   proof: matching needs the selectors of the tool and the section to be present
_by_aspect(policy, tool, section, aspects) := {number |
	some selector in _selectors(tool)
	some aspect in aspects
	number := data.policy.tool_lookup.policies[policy][section].selectors[selector][aspect]
}

# The numbers of the rules of a section with a path that a pattern of file names may become, or that is above or below;
# `kind` is put before their aspects.
#
# METADATA
# custom:
#   proof: it is one more way for rules that refuse to match; another requirement refuses a pattern that is no text
meeting(policy, tool, section, pattern, kind) := plain | conditional if {
	plain := {number |
		some selector in _selectors(tool)
		some aspect, number in data.policy.tool_lookup.policies[policy][section].selectors[selector]
		startswith(aspect, kind)
		_may_become(lower(upper(pattern)), trim_prefix(aspect, kind))
	}
	conditional := {row.number |
		some selector in _selectors(tool)
		some row in data.policy.tool_lookup.policies[policy][section].conditional[selector]
		some aspect in row.aspects
		startswith(aspect, kind)
		_may_become(lower(upper(pattern)), trim_prefix(aspect, kind))
		not tool_values.refuted(row.where, input.values)
	}
}

_may_become(pattern, aspect) if {
	path := split(trim_suffix(_placed(aspect), "/"), "/")
	some parts in _depths(split(trim_suffix(pattern, "/"), "/"), [1 | some _ in path])
	_reaches(count(parts), count(path), aspect)
	_meets(parts, path)
}

# Two patterns may mean the same file unless they are shown not to.
#
# METADATA
# custom:
#   proof: it is one more way for rules that refuse to match, and what cannot be compared matches
_may_become(pattern, aspect) if {
	startswith(aspect, "path ")
	not _disjoint(pattern, _placed(_rooted(trim_prefix(aspect, "path "))))
}

# A rule on a folder is about what is below it too, one on a file is not.
_reaches(_, _, aspect) if endswith(aspect, "/")

_reaches(own, stated, _) if {
	is_number(own)
	is_number(stated)
	own <= stated
}

# A pattern with each number of folders that `**` may stand for, up to those of a path. Behind another one, only what is
# before it is compared.
#
# METADATA
# custom:
#   proof: a pattern without `**` stays as it is
_depths(parts, _) := {parts} if not "**" in parts

_depths(parts, folders) := {deep |
	some stars, _ in array.concat(folders, [1])
	between := ["*" | some _ in array.slice(folders, 0, stars)]
	deep := array.flatten([array.slice(parts, 0, first), between, array.slice(parts, first + 1, last)])
} if {
	places := [place | some place, part in parts; part == "**"]
	first := places[0]
	last := array.concat(places, [count(parts), count(parts)])[1]
}

_rooted(path) := concat("", ["/", path]) if startswith(path, "**/")

_rooted(path) := path if substring(path, 0, 3) != "**/"

_disjoint(pattern, other) if _globs_differ(pattern, other)

# A rule for names in any folder meets a pattern by its last names. No `*` or `?` becomes the dot of a hidden file.
_disjoint(pattern, other) if {
	startswith(other, "/**/")
	contains(concat("", [pattern, trim_prefix(other, "/**/")]), "**") == false
	names := split(trim_prefix(other, "/**/"), "/")
	own := split(trim_suffix(pattern, "/"), "/")
	count(own) > count(names)
	some index, name in names
	_differ(own[(count(own) - count(names)) + index], name)
}

_differ(part, name) if _globs_differ(part, name)

_differ(part, name) if {
	startswith(name, ".")
	substring(part, 0, 1) in {"*", "?"}
}

_globs_differ(pattern, other) if regex.globs_match(_globbed(pattern), _globbed(other)) == false

# A pattern as `regex.globs_match` compares it, where `*` also covers folders. A `*` at the end would cover one
# character or more, so it does not stand there.
_globbed(pattern) := strings.replace_n(
	{"\\": "\\\\", ".": "\\.", "+": "\\+", "[": "\\[", "]": "\\]", "*": ".*", "?": "."},
	concat("", [replace(pattern, "**/", "*"), "/"]),
)

_placed(aspect) := aspect if startswith(aspect, "/")

_placed(aspect) := concat("", [cwd, "/", trim_prefix(aspect, "{cwd}/")]) if {
	startswith(aspect, "{cwd}/")
	cwd := trim_suffix(lower(upper(input.context.cwd)), "/")
}

# METADATA
# custom:
#   proof: a pattern matches where its parts do; `*` matches no name that begins with a dot, as in a shell
_meets(pattern, path) if {
	length := min([count(pattern), count(path)])
	glob.match(concat("/", array.slice(pattern, 0, length)), ["/"], concat("/", array.slice(path, 0, length)))
	every index in numbers.range(0, length - 1) {
		_dotted(pattern[index], path[index])
	}
}

_dotted(_, name) if substring(name, 0, 1) != "."

_dotted(part, _) if startswith(part, ".")

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
_pivots(to_cover) := [{_without_parts}] if {
	to_cover == {"hosts": [], "paths": [], "commands": [], "values": []}
} else := [aspect_sets[0] | some aspect_sets in to_cover; count(aspect_sets) > 0]

# What covers a call without parts: any rule if it has data, where there may be none, else a rule by name.
#
# METADATA
# custom:
#   proof: without the type of an argument, only rules by name cover the call
default _without_parts := "by name"

_without_parts := "always" if {
	some argument in input.call.arguments
	argument.type == "data"
}

# METADATA
# custom:
#   proof: the lists are complete, or `to_cover` would be undefined; for an empty call, only rules by name are tried
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
