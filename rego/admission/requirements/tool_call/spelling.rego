package admission.requirements.tool_call.spelling

import data.admission.lib.tool_words as words
import future.keywords.not

# METADATA
# title: Every host and address is in canonical form
# description: Two parsers may see different hosts in an unusual address, and a rule would compare only one. A command
#   word that may be a host counts as one, unless policy/tools.yaml states otherwise. In a script,
#   the form does not matter, but a rule has to permit the whole script.
# custom:
#   code: destination_not_canonical
#   each: destinations
#   empty: allowed
#   remedy: Write it as https://host.example/path, in lower case and at most 2,048 characters, without user, spaces,
#     port 443, escapes in the host, trailing dot or address
#   reads: [tools.words_without_hosts]
#   after: [tool_unknown]
# labels:
#   row: B07
destination_canonical(destination) if {
	destination.canonical == true
	contains(destination.origin, "://")
}

destination_canonical(destination) if words.no_host(destination)

destination_canonical(destination) if destination.word.label == true

destination_canonical(destination) if words.no_name(destination)

destination_canonical(destination) if {
	words.enforced(destination)
	destination.canonical == false
}

# METADATA
# title: Every path is in canonical form
# description: With `..`, backslashes or escapes a path may lead elsewhere. A relative path needs a working folder.
# custom:
#   code: path_not_canonical
#   each: paths
#   empty: allowed
#   remedy: Write the whole path from `/` on, without `.`, `..`, `//`, `~`, backslashes or escapes; in a command, use
#     `..` only at the start of a word, where each `cd` has a plain name, and `~` only if the request states `home`
#   after: [tool_unknown]
# labels:
#   row: B07
path_canonical(path) if {
	path.canonical == true
	startswith(path.path, "/")
}

path_canonical(path) if words.no_name(path)

# METADATA
# title: No path passes through a symbolic link
# description: A link may lead outside the paths that a rule allows. Where only the owner of the system can change it,
#   as /etc/os-release, and not in the working folder, the path that it leads to counts like a path of the call.
# custom:
#   code: path_linked
#   waivable: false
#   each: paths
#   empty: allowed
#   remedy: Use the path that the link points to
#   after: [path_not_canonical]
# labels:
#   row: A103
unlinked(path) if path.links in {"none", "followed", "unknown"}

unlinked(path) if words.no_name(path)

# METADATA
# title: Every path of a tool on this machine was checked for links
# description: Links can be checked inside the folder that the engine serves, and in process. Paths of tools that run
#   elsewhere cannot be checked.
# custom:
#   code: path_not_looked_at
#   waivable: false
#   each: paths
#   empty: allowed
#   remedy: Ask an engine on the machine of the tool with `--root` above the path, or have `paths_on` of a tool that
#     runs elsewhere corrected in policy/tools.yaml
#   reads: ["tools.tools.{call.tool}.paths_on"]
#   after: [path_not_canonical]
# labels:
#   row: A103
inspected(path) if path.links in {"none", "followed", "linked"}

inspected(path) if words.no_name(path)

inspected(path) if {
	path.links == "unknown"
	data.policy.tools.tools[input.call.tool].paths_on == "elsewhere"
}

# METADATA
# title: Every word of a command on this machine was checked for links
# description: A word without a slash may be a link too. Words can be checked inside the folder that the engine
#   serves, and in process, given a working folder. Commands that run elsewhere cannot be checked.
# custom:
#   code: command_not_looked_at
#   waivable: false
#   each: commands
#   empty: allowed
#   remedy: State the working folder, and ask an engine on the tool's machine with a `--root` that contains it
#   reads: ["tools.tools.{call.tool}.paths_on"]
#   after: [command_not_canonical]
# labels:
#   row: B07
command_inspected(command) if command.links == "none"

command_inspected(command) if {
	command.links == "unknown"
	data.policy.tools.tools[input.call.tool].paths_on == "elsewhere"
}

# METADATA
# title: Every command can be parsed
# description: A command is parsed as a shell reads it. What no shell accepts, what shells read differently, invisible
#   characters, and a program that is known only when it runs are refused.
# custom:
#   code: command_not_canonical
#   each: commands
#   empty: allowed
#   facts: {reason: refused}
#   remedy: Write the name of each program as it is, and commands that shells accept and read alike, of at most 64 KiB
#     and without a comment that ends with a backslash; if the reason is `parser_missing` or `parser_failed`, reinstall
#     the engine and run `engine doctor`
#   proof: the lists of what it may touch are present, and empty if no word could be a path
#   after: [tool_unknown]
# labels:
#   row: B10
command_canonical(command) if {
	command.canonical == true
	is_array(command.words)
	count(command.words) > 0
	every word in command.words {
		is_string(word)
	}
	every paths in [command.touches, command.patterns] {
		is_array(paths)
		every path in paths {
			startswith(path, "/")
		}
	}
	is_array(command.short)
	is_number(command.parts)
}
