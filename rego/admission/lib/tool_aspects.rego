# What of a destination, a path or a command one rule may cover, in the words of `data.policy.tool_lookup`.
#
# Rules that allow compare letter for letter, and a folder covers what is in it. Rules that refuse or ask
# disregard the letter case of paths and programs and the folder of a program, and a folder covers itself too.
package admission.lib.tool_aspects

import future.keywords.not

# Of a destination, for every rule: its exact origin.
destination(one) := {"any host", concat(" ", ["host", one.origin])} if {
	one.canonical == true
	is_string(one.origin)
}

# Of a path, for rules that allow: it and every folder that it is in.
path(one) := ({"any path"} | _inside("/", _bare(one.path))) | _below_cwd(one) if {
	one.canonical == true
	startswith(one.path, "/")
}

# METADATA
# custom:
#   proof: without a word on the working folder a path is in none that could allow it
_below_cwd(one) := _inside("{cwd}/", trim_suffix(one.below_cwd, "/")) if {
	is_string(one.below_cwd)
} else := set()

# Of a path, for rules that refuse or ask.
path_refused(one, asked) := ({"any path"} | _over("/", folded)) | _over_cwd(concat("", ["/", folded]), asked) if {
	one.canonical == true
	startswith(one.path, "/")
	folded := _folded(_bare(one.path))
}

# METADATA
# custom:
#   proof: without a working folder every path counts as one that may be in it
_over_cwd(path, asked) := _over("{cwd}/", trim_suffix(trim_prefix(slashed, cwd), "/")) if {
	startswith(asked.cwd, "/")
	cwd := concat("", [trim_suffix(_folded(asked.cwd), "/"), "/"])
	slashed := concat("", [path, "/"])
	startswith(slashed, cwd)
} else := set() if {
	startswith(asked.cwd, "/")
} else := {"any path without cwd"}

# Of a command, for rules that allow: its first word, its first two words, and so on.
command(one) := {"any command"} | _beginnings(one.words) if {
	one.canonical == true
	is_array(one.words)
}

# Of a command, for rules that refuse or ask: whatever folder its program is in.
command_refused(one) := ({"any command"} | _beginnings(full)) | _beginnings(short) if {
	one.canonical == true
	is_array(one.words)
	program := lower(one.words[0])
	others := array.slice(one.words, 1, count(one.words))
	full := array.concat([program], others)
	parts := split(program, "/")
	short := array.concat([parts[count(parts) - 1]], others)
}

_bare(path) := trim_suffix(trim_prefix(path, "/"), "/")

# Upper case first: some letters have an equal only there.
_folded(text) := lower(upper(text))

# A rule speaks of at most 32 parts of a path and of at most 16 words of a command: engine.values.tool_checks.
_most_parts := 32

_most_words := 16

# METADATA
# custom:
#   proof: what is left out of the ways of a path is covered by fewer rules that allow
_inside(base, rest) := {concat("", ["path ", base, way]) | some way in _ways(rest)} if {
	rest != ""
} else := set()

# METADATA
# custom:
#   proof: it collects parts of one text that is there
_over(base, rest) := {concat("", ["path ", base, way]) | some way in (_ways(rest) | {_slashed(rest)})}

_slashed("") := ""

_slashed(rest) := concat("", [rest, "/"]) if {
	is_string(rest)
	rest != ""
}

# Of `a/b/c`: ``, `a/`, `a/b/` and `a/b/c`.
#
# METADATA
# custom:
#   proof: it collects parts of one text that is there
_ways(rest) := {"", rest} | {_slashed(concat("/", array.slice(parts, 0, length))) |
	some length in numbers.range(1, _most_parts)
	length < count(parts)
} if {
	parts := split(rest, "/")
}

# METADATA
# custom:
#   proof: a command without words has no beginning, and is refused by a requirement of its own
_beginnings(words) := {concat(" ", array.concat(["command", format_int(length, 10)], array.slice(words, 0, length))) |
	some length in numbers.range(1, _most_words)
	length <= count(words)
}
