package admission.requirements.tool_call.spelling

import data.admission.lib.tool_words as words
import future.keywords.not

# METADATA
# title: Every host and address is written in its only spelling
# description: Two readers of an odd address may see two hosts, and a rule would compare one of them. A word of a
#   command that may be a host or something else counts as both, unless policy/tools.yaml says that it is no host.
# custom:
#   code: destination_not_canonical
#   each: destinations
#   empty: allowed
#   remedy: Write it as https://host.example/path, in lower case, without user, escapes, trailing dot or address
#   reads: [tools.words_without_hosts]
#   after: [tool_unknown]
# labels:
#   row: B07
destination_canonical(one) if {
	one.canonical == true
	contains(one.origin, "://")
}

destination_canonical(one) if words.no_host(one)

destination_canonical(one) if one.word.label == true

# METADATA
# title: Every path is written in its only spelling
# description: With `..`, backslashes or escapes it may lead elsewhere than it says. A relative one needs a working
#   folder.
# custom:
#   code: path_not_canonical
#   each: paths
#   empty: allowed
#   remedy: Write the whole path from `/` on, without `.`, `..`, `//`, `~`, backslashes or escapes
#   after: [tool_unknown]
# labels:
#   row: B07
path_canonical(one) if {
	one.canonical == true
	startswith(one.path, "/")
}

# METADATA
# title: No path leads over a link
# description: A link may lead elsewhere than its path says.
# custom:
#   code: path_linked
#   each: paths
#   empty: allowed
#   remedy: Use the path that the link leads to
#   after: [tool_unknown, path_not_canonical]
unlinked(one) if one.links in {"none", "unknown"}

# METADATA
# title: Every path of a tool that works on this machine was looked at
# description: Whether a path leads over a link can be told below the folder that the engine serves, and in process.
#   Nobody can look at paths of tools that run elsewhere.
# custom:
#   code: path_not_looked_at
#   each: paths
#   empty: allowed
#   remedy: Ask an engine on the machine of the tool, with `--root` above the path, or say that the tool runs elsewhere
#   reads: ["tools.tools.{call.tool}.paths_on"]
#   after: [tool_unknown, path_not_canonical]
looked_at(one) if one.links in {"none", "linked"}

looked_at(one) if {
	one.links == "unknown"
	data.policy.tools.tools[input.call.tool].paths_on == "elsewhere"
}

# METADATA
# title: Every word of a command that runs on this machine was looked at as a path
# description: A word without a slash may be a link too. Words are looked at below the folder that the engine serves,
#   and in process; without a working folder there is nothing to look at. Nobody can look at commands
#   that run elsewhere.
# custom:
#   code: command_not_looked_at
#   each: commands
#   empty: allowed
#   remedy: Name the working folder; ask an engine on the machine of the tool, with `--root` above that folder
#   reads: ["tools.tools.{call.tool}.paths_on"]
#   after: [tool_unknown, command_not_canonical]
# labels:
#   row: B07
command_looked_at(one) if one.links == "none"

command_looked_at(one) if {
	one.links == "unknown"
	data.policy.tools.tools[input.call.tool].paths_on == "elsewhere"
}

# METADATA
# title: Every command is one command, written plainly
# description: With operators, substitutions, redirections, line ends or assignments before it a text is more than the
#   command that it begins with.
# custom:
#   code: command_not_canonical
#   each: commands
#   empty: allowed
#   remedy: Run one command a call, as a list of words, without shell operators, substitutions or variables
#   proof: the list of what it touches has to be there, and is empty when no word could be a path
#   after: [tool_unknown]
# labels:
#   row: B10
command_canonical(one) if {
	one.canonical == true
	is_array(one.words)
	count(one.words) > 0
	every word in one.words {
		is_string(word)
	}
	is_array(one.touches)
	every path in one.touches {
		startswith(path, "/")
	}
}
