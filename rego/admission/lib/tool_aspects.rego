# What of a destination, a path or a command one rule may cover, in the words of `data.policy.tool_lookup`.
#
# Rules that allow compare letter for letter, and a folder covers what is in it. Rules that refuse or ask
# disregard the letter case of paths and programs and the folder of a program, and a folder covers itself too.
package admission.lib.tool_aspects

import future.keywords.not

# Of a destination, for every rule: its exact origin.
destination(one) := {"any host", concat(" ", ["host", one.origin])} if {
	one.canonical == true
	contains(one.origin, "://")
}

# Of a path, for rules that allow: it and every folder that it is in.
path(one) := ({"any path"} | _ways(_bare(one.path))) | _below_cwd(one) if {
	one.canonical == true
	startswith(one.path, "/")
}

# METADATA
# custom:
#   proof: without a word on the working folder a path is in none that could allow it
_below_cwd(one) := _ways(concat("", ["{cwd}/", _bare(one.below_cwd)])) if {
	is_string(one.below_cwd)
	one.below_cwd != ""
	one.path != concat("", ["/", one.below_cwd]) # a working folder `/` is the whole machine and admits nothing
} else := set()

# Of a path, for rules that refuse or ask.
path_refused(one, asked) := ({"any path"} | _over(folded)) | _over_cwd(_slashed(folded), asked) if {
	one.canonical == true
	startswith(one.path, "/")
	folded := lower(upper(one.path)) # some letters have an equal only in upper case
}

# METADATA
# custom:
#   proof: without a working folder every path counts as one that may be in it
_over_cwd(slashed, asked) := _over(concat("", ["{cwd}/", trim_prefix(slashed, cwd)])) if {
	startswith(asked.cwd, "/")
	cwd := _slashed(lower(upper(asked.cwd)))
	startswith(slashed, cwd)
} else := set() if {
	startswith(asked.cwd, "/")
} else := {"any path without cwd"}

_over(path) := {_slashed(path)} | _ways(_bare(path))

# Of a command, for rules that allow: its first word, its first two words, and so on.
command(one) := {"any command"} | beginnings(one.words) if {
	one.canonical == true
	is_array(one.words)
}

# Of a command, for rules that refuse or ask: whatever folder its program is in, and the paths that its words may be.
# METADATA
# custom:
#   proof: the words of a command are there before the program is put in front of them; more aspects only refuse more
command_refused(one, asked) := (({"any command"} | beginnings(full)) | beginnings(short)) | _touched(one, asked) if {
	one.canonical == true
	is_array(one.words)
	program := lower(one.words[0])
	others := array.slice(one.words, 1, count(one.words))
	full := array.concat([program], others)
	parts := split(program, "/")
	short := array.concat([parts[count(parts) - 1]], others)
}

# The command runs in its working folder for certain.
#
# METADATA
# custom:
#   proof: it collects parts of texts that are there; a command without its paths is refused by a requirement of its own
_touched(one, asked) := touched(array.concat(one.touches, _own_folder(asked)), asked) | _in_no_folder(asked)

# Of paths that words may be, for rules that refuse or ask. A word is a path only perhaps, so it is not `any path`.
#
# METADATA
# custom:
#   proof: it collects parts of texts that are there
touched(paths, asked) := {aspect |
	some path in paths
	some aspect in (path_refused({"canonical": true, "path": path}, asked) - {"any path"})
}

# METADATA
# custom:
#   proof: without a working folder the command is in none, and counts as one that may be in every folder below it
_own_folder(asked) := [asked.cwd] if {
	startswith(asked.cwd, "/")
} else := []

# METADATA
# custom:
#   proof: without a working folder a command may touch every path that a rule names below it
_in_no_folder(asked) := set() if {
	startswith(asked.cwd, "/")
} else := {"any path without cwd"}

# Of texts that may be paths below a working folder that the call does not name: each path that a rule names below it.
#
# METADATA
# custom:
#   proof: only a fact that says so leaves the aspect out
unplaced(call) := set() if {
	call.unplaced == false
} else := {"any path without cwd"}

_bare(path) := trim_suffix(path, "/")

_slashed(path) := concat("", [_bare(path), "/"])

# A rule speaks of at most 32 parts of a path and of at most 16 words of a command: engine.values.tool_checks.
_most_parts := 32

_most_words := 16

# Of `/a/b`: `/`, `/a/` and `/a/b`. What is in no folder has none.
_ways(path) := {path} | _folders(concat("/", array.slice(parts, 0, count(parts) - 1))) if {
	parts := split(path, "/")
	count(parts) > 1
}

_ways(path) := set() if count(split(path, "/")) == 1

# Of `/a`: `/` and `/a/`. OPA remembers what it called, and many paths share their folder.
#
# METADATA
# custom:
#   proof: it collects parts of one text that is there
_folders(folder) := {concat("/", array.concat(array.slice(parts, 0, length), [""])) |
	some index, _ in parts
	length := index + 1
	length <= _most_parts
} if {
	parts := split(folder, "/")
}

# Of a command: its first word, its first two words, and so on.
#
# METADATA
# custom:
#   proof: a command without words has no beginning, and is refused by a requirement of its own
beginnings(words) := {concat(" ", array.concat(["command", format_int(length, 10)], array.slice(words, 0, length))) |
	some index, _ in words
	length := index + 1
	length <= _most_words
}
