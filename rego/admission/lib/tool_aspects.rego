# The aspects of a destination, path or command that a rule may cover, as named in `data.policy.tool_lookup`.
#
# Allow rules compare letter for letter, and a folder covers what is in it. Deny and confirm rules ignore the
# letter case of paths and programs and the folder of a program, and a folder also covers itself.
package admission.lib.tool_aspects

import data.admission.lib.host
import data.admission.lib.tool_commands as commands
import future.keywords.not

# Aspects of a destination, for allow rules: its origin, the domains and ranges that contain its host, and folders.
#
# METADATA
# custom:
#   proof: it collects forms of one origin that is present; without a path, no folder covers it
of_destination(destination) := (_anywhere(parts) | named) | _in_ranges(parts) if {
	destination.canonical == true
	parts := host.parts(destination.origin)
	named := {form |
		some name in host.names(parts.host)
		some port in {_port(parts.port), ":*"}
		some folder in ({""} | {folder | some folder in _host_paths; startswith(destination.path, folder)})
		form := concat("", ["host ", parts.scheme, "://", name, port, folder])
	}
}

# METADATA
# custom:
#   proof: a host that is not known to be public is in no rule for any host
_anywhere(parts) := {"any host"} if {
	parts.scheme == "https"
	host.public(parts.host)
} else := set()

# METADATA
# custom:
#   proof: a port is digits, or empty; an origin has no other
_port(port) := concat("", [":", port]) if {
	port != ""
} else := ""

_host_paths := data.policy.tool_lookup.host_paths

# Ranges of addresses cover every scheme and port.
#
# METADATA
# custom:
#   proof: a name is in no range, and deny and confirm rules need the list of ranges to be present
_in_ranges(parts) := {concat("", ["host *://", range, ":*"]) |
	some range in data.policy.tool_lookup.ranges
	net.cidr_contains(range, host.literal(parts.host))
}

# Aspects of a destination, for deny and confirm rules: also every scheme and port, and a domain covers its own name.
#
# METADATA
# custom:
#   proof: it collects forms of one origin that is present; without a path, every folder counts
of_destination_refused(destination) := ({"any host"} | named) | _in_ranges(parts) if {
	destination.canonical == true
	parts := host.parts(destination.origin)
	folders := {""} | _folders_of_hosts(destination)
	named := {form |
		some name in (host.names(parts.host) | {concat("", ["*.", parts.host])})
		some place in {
			[parts.scheme, _port(parts.port)], [parts.scheme, ":*"], ["*", _port(_stated_port(parts))], ["*", ":*"],
		}
		some folder in folders
		form := concat("", ["host ", place[0], "://", name, place[1], folder])
	}
}

# METADATA
# custom:
#   proof: a port is digits, or empty; an origin has no other
_stated_port(parts) := parts.port if {
	parts.port != ""
} else := {"http": "80", "https": "443"}[parts.scheme]

# METADATA
# custom:
#   proof: the list of folders is present
_folders_of_hosts(destination) := {folder | some folder in _host_paths; _maybe_below(destination, folder)} if {
	is_array(_host_paths)
}

# METADATA
# custom:
#   proof: a destination without a path counts as one that may be anywhere on its host
_maybe_below(destination, folder) if startswith(_slashed(lower(destination.path)), lower(folder))

_maybe_below(destination, _) if not is_string(destination.path)

# Aspects of a path, for allow rules: the path and every folder that contains it.
of_path(path) := (({"any path"} | _ways(_bare(path.path))) | _below_cwd(path)) | _patterns(path.path) if {
	path.canonical == true
	startswith(path.path, "/")
}

# METADATA
# custom:
#   proof: without a stated working folder, a path is in no folder that could allow it
_below_cwd(path) := _ways(below) | _patterns(below) if {
	is_string(path.below_cwd)
	path.below_cwd != ""

	# regal ignore:defer-assignment
	below := concat("", ["{cwd}/", _bare(path.below_cwd)])
	path.path != concat("", ["/", path.below_cwd]) # a working folder `/` is the whole machine and admits nothing
} else := set()

# The working folder itself, for allow rules.
#
# METADATA
# custom:
#   proof: a path that is not known to be the working folder has no aspect more
of_cwd(path, context) := {"{cwd}"} if {
	startswith(path.path, "/")
	path.path in {context.cwd, concat("", [context.cwd, "/"])}
} else := set()

# Aspects of a path, for deny and confirm rules.
of_path_refused(path, context) := ({"any path"} | _over(folded)) | _over_cwd(_slashed(folded), context) if {
	is_array(data.policy.tool_lookup.path_patterns)
	path.canonical == true
	startswith(path.path, "/")
	folded := lower(upper(path.path)) # some letters have an equal only in upper case
}

# METADATA
# custom:
#   proof: without a working folder, every path counts as one that may be in it
_over_cwd(slashed, context) := _over(concat("", ["{cwd}/", trim_prefix(slashed, cwd)])) if {
	startswith(context.cwd, "/")
	cwd := _slashed(lower(upper(context.cwd)))
	startswith(slashed, cwd)
} else := set() if {
	startswith(context.cwd, "/")
} else := {"any path without cwd"}

_over(path) := ({_slashed(path)} | _ways(_bare(path))) | _patterns(_bare(path))

# The patterns of rules that a whole path matches.
#
# METADATA
# custom:
#   proof: it collects the patterns of one list; deny and confirm rules need the list to be present
_patterns(path) := {concat(" ", ["path", pattern[0]]) |
	some pattern in data.policy.tool_lookup.path_patterns
	regex.match(pattern[1], path)
}

# Aspects of a command, for allow rules: its first words, or the folder of its program, with all that it can do beyond.
#
# METADATA
# custom:
#   proof: where it is not known what the command can do beyond some words, there is no aspect
of_command(command, context) := ({"any command"} | by_words) | by_folder if {
	command.canonical == true
	is_array(command.words)
	by_words := {aspect |
		some index, _ in command.words
		length := index + 1
		length <= _most_words
		able := commands.beyond(command, length)
		aspect := concat(" ", array.concat([_kind(able), format_int(length, 10)], array.slice(command.words, 0, length)))
	}
	by_folder := {concat(" ", [_kind(commands.beyond(command, 1)), "1 ./"]) | _below(command.words[0], context)}
}

# The program is called by a path below the working folder: `./x`, `bin/x`, `/work/bin/x`.
_below(program, _) if {
	contains(program, "/")
	substring(program, 0, 1) != "/"
}

_below(program, context) if {
	startswith(program, _slashed(context.cwd))
	startswith(context.cwd, "/")
	context.cwd != "/"
}

_kind(able) := trim_suffix(concat("+", ["command", concat(",", sort(able))]), "+")

# Aspects of a command, for deny and confirm rules: its prefixes without the program's folder, and its paths.
# METADATA
# custom:
#   proof: the program is put before words that are present; more aspects can only refuse more
of_command_refused(command, context) := ({"any command"} | by_words) | _of_touches(command, context) if {
	command.canonical == true
	is_array(command.words)
	program := lower(command.words[0])
	others := array.slice(command.words, 1, count(command.words))
	parts := split(program, "/")
	bare := parts[count(parts) - 1]
	beginnings := {
		array.concat([program], others),
		array.concat([bare], others),
		array.concat([bare], array.slice(command.short, 1, count(command.short))),
	} | {["./"] | contains(program, "/")}
	by_words := {aspect |
		some words in beginnings
		some prefix in prefixes(words)
		some aspect in _with_options(prefix, command)
	}
}

# A rule may be about commands with one of some options only.
#
# METADATA
# custom:
#   proof: only rules that refuse read them; more aspects can only refuse more
_with_options(prefix, command) := {prefix} | {aspect |
	some option in commands.options(command)
	aspect := concat(" ", ["option", option, trim_prefix(prefix, "command ")])
}

# The command runs in its working folder for certain.
#
# METADATA
# custom:
#   proof: it collects parts of texts that are there; another requirement refuses a command without its paths
_of_touches(command, context) := as_named(command.id, of_touched_paths(paths, context) | _in_no_folder(context)) if {
	paths := array.concat(command.touches, _own_folder(context))
}

# Aspects of paths in a command, for deny and confirm rules: some of these are only about what it changes.
#
# METADATA
# custom:
#   proof: they stay as they are unless the command is shown to keep its files, or to show nothing of them
as_named(id, found) := {concat("", [commands.kind(id), aspect]) | some aspect in found}

# Aspects of words that may be paths, for deny and confirm rules. Not `any path`, because they may be no paths.
#
# METADATA
# custom:
#   proof: it collects parts of texts that are present
of_touched_paths(paths, context) := {aspect |
	some path in paths
	some aspect in (of_path_refused({"canonical": true, "path": path}, context) - {"any path"})
}

# METADATA
# custom:
#   proof: without a working folder, the command counts as one that may be in every folder below it
_own_folder(context) := [context.cwd] if {
	startswith(context.cwd, "/")
} else := []

# METADATA
# custom:
#   proof: without a working folder, a command may touch every path that a rule names below it
_in_no_folder(context) := set() if {
	startswith(context.cwd, "/")
} else := {"any path without cwd"}

# Aspects of texts that may be paths below an unknown working folder: each path that a rule names below it.
#
# METADATA
# custom:
#   proof: the aspect is left out only if a fact says so
unplaced(call) := set() if {
	call.unplaced == false
} else := {"any path without cwd"}

_bare(path) := trim_suffix(path, "/")

_slashed(path) := concat("", [_bare(path), "/"])

# Rules have at most 32 parts of a path and 16 words of a command (engine.values.tools).
_most_parts := 32

_most_words := 16

# For `/a/b`: `/`, `/a/` and `/a/b`. A path that is in no folder has none.
_ways(path) := {path} | _folders(concat("/", array.slice(parts, 0, count(parts) - 1))) if {
	parts := split(path, "/")
	count(parts) > 1
}

_ways(path) := set() if count(split(path, "/")) == 1

# For `/a`: `/` and `/a/`. OPA caches calls, and many paths share a folder.
#
# METADATA
# custom:
#   proof: it collects parts of one text that is present
_folders(folder) := {concat("/", array.concat(array.slice(parts, 0, length), [""])) |
	some index, _ in parts
	length := index + 1
	length <= _most_parts
} if {
	parts := split(folder, "/")
}

# The prefixes of a command: its first word, its first two words, and so on.
#
# METADATA
# custom:
#   proof: a command without words has no prefix, and another requirement refuses it
prefixes(words) := {concat(" ", array.concat(["command", format_int(length, 10)], array.slice(words, 0, length))) |
	some index, _ in words
	length := index + 1
	length <= _most_words
}
