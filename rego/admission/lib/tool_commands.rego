# What the parts of a command can do beyond the words that a rule names; policy/commands.yaml has the values.
package admission.lib.tool_commands

import future.keywords.not

# What a part can do: `none`, or some of read, write, redirect, connect and execute; `unknown` unless a value says
# otherwise.
#
# METADATA
# custom:
#   proof: a part whose facts or values are missing is unknown, which only a rule that says so covers
abilities(part) := found if {
	found := _stated(part)
	count(found) > 0
} else := {"unknown"}

# The tool runs its commands in the sandbox, where each connection is decided on at point `network`.
connections_decided if data.policy.tools.tools[input.call.tool].hosts_in_commands == "enforced"

# Options of the last four lists are read on, and what follows them is judged by itself.
_lists := {
	"none": "none",
	"without_needle": "none",
	"read": "read",
	"write": "write",
	"connect": "connect",
	"follow": _follows,
	"execute": "execute",
	"shell": "none",
	"rows_by": "none",
	"runs_until": "none",
	"script_options": "none",
}

# METADATA
# custom:
#   proof: it is left out of what needs a rule only if the entry of the tool says so
default _follows := "connect"

_follows := "none" if connections_decided

# For a program that can do nothing, a word such as the first of `echo "--- x ---"` is an option that no list has.
#
# METADATA
# custom:
#   proof: an option that no list has makes an empty set, which counts as unknown unless a value says otherwise
_stated(part) := listed | {"none" | data.policy.program_rows[part.program].any_words == true} if {
	part.kind == "option"
	is_string(part.name)
	listed := {ability |
		some list, ability in _lists
		part.name in data.policy.program_rows[part.program][list]
	}
}

_stated(part) := {"none"} if {
	part.kind == "variable"
	part.name in data.policy.commands.variables
}

_stated(part) := {"none"} if {
	part.kind == "syntax"
	part.name in data.policy.commands.syntax
}

_stated(part) := {"redirect"} if part.kind == "redirect"

_stated(part) := {"none"} if {
	part.kind in {"word", "pattern"}
	data.policy.program_rows[part.program].any_words == true
}

# A pattern that begins with `*` may become any option of its program.
#
# METADATA
# custom:
#   proof: a program without a row is unknown; each list of a row counts unless it is empty
_stated(part) := {"none"} | {ability | some list, ability in _lists; count(row[list]) > 0} if {
	part.kind == "pattern"
	row := data.policy.program_rows[part.program]
	row.any_words == false
}

# METADATA
# custom:
#   proof: the patterns are values that match whole scripts, which is checked when they are loaded
_stated(part) := {"none"} if {
	part.kind == "script"
	some pattern in data.policy.program_rows[part.program].scripts
	regex.match(pattern, part.text)
}

# What a command can do beyond its first `length` words; undefined unless all its parts are known.
#
# METADATA
# custom:
#   proof: the parts of the command are as many as were found, and each has its place
beyond(command, length) := {ability |
	some part in parts
	some ability in abilities(part)
	_counts(part, length)
} - {"none"} if {
	parts := [part | some part in input.command_parts; part.command == command.id; is_number(part.index)]
	count(parts) == command.parts
}

_counts(part, _) if part.index == 0

_counts(part, length) if {
	is_number(length)
	is_number(part.index)
	part.index >= length
}

# The commands that change no file which their words name, and start none for the files that they find.
#
# METADATA
# custom:
#   proof: what it can do beyond its first word is known, and a value says so of its program
kept contains command.id if {
	not _obeyed
	some command in input.commands
	count(beyond(command, 1) - {"read"}) == 0
	some name in _rows(command)
	data.policy.program_rows[name].keeps == true
	not _starts_others(command)
}

# The commands that show nothing of the content of files which their words name, and hand their names to no other.
#
# METADATA
# custom:
#   proof: what it can do beyond its first word is known, and a value says so of its program
unread contains command.id if {
	not _obeyed
	some command in input.commands
	beyond(command, 1) == set()
	some name in _rows(command)
	data.policy.program_rows[name].unread == true
	not _handed_on(command)
}

# METADATA
# custom:
#   proof: all parts of the command are there, or it is not known what it can do
_handed_on(command) if {
	some part in input.command_parts
	part.command == command.id
	part.kind == "syntax"
	not part.name in {"and", "or"}
}

# It may be a function of the text, or be in a word that is not known, such as `$_`.
_handed_on(_) if {
	some part in input.command_parts
	part.name == "function"
}

_handed_on(_) if {
	some part in input.command_parts
	part.kind == "word"
}

# What is before the aspects of paths in a command.
#
# METADATA
# custom:
#   proof: a command is in neither set unless it is shown to be
kind(id) := concat("", [word | some word in ["unread ", "kept "]; id in {"unread ": unread, "kept ": kept}[word]])

# A command may carry out what others print: a shell without a text, or a program that no value describes.
#
# METADATA
# custom:
#   proof: only commands that are shown to carry out nothing do not count
_obeyed if {
	some command in input.commands
	not _obeys_nothing(command)
}

_obeys_nothing(command) if {
	row := data.policy.program_rows[command.words[0]]
	is_string(row.operands)
	row.operands != "shell"
}

# METADATA
# custom:
#   proof: all parts of a command are there, or it keeps nothing
_obeys_nothing(command) if {
	parts := [part | some part in input.command_parts; part.command == command.id]
	_is_text(parts, data.policy.program_rows[command.words[0]])
}

# METADATA
# custom:
#   proof: each part has a kind, or it is unknown what its command can do, which keeps nothing
_is_text(parts, row) if {
	count([part | some part in parts; part.name in row.shell]) > 0
	count([part | some part in parts; part.kind == "word"]) == 0
}

# METADATA
# custom:
#   proof: all parts of the command are there, or it is not known what it can do
_starts_others(command) if {
	some part in input.command_parts
	part.command == command.id
	part.name in data.policy.program_rows[part.program].runs_until
}

# The rows that a command may have: of its program, and of the subcommand behind it or behind options.
#
# METADATA
# custom:
#   proof: it collects names for a lookup
_rows(command) := {concat(" ", array.slice(words, 0, length)) |
	some words in [command.words, command.short]
	some length in [1, 2]
}

# The names of its options; `?` if a part may be any option.
#
# METADATA
# custom:
#   proof: only rules that refuse read them, and a part that lacks its name may be any option
options(command) := {name |
	some part in input.command_parts
	part.command == command.id
	some name in _option_names(part)
}

# METADATA
# custom:
#   proof: only rules that refuse read them, and an unknown option may be any
_option_names(part) := {"?" | "unknown" in abilities(part)} | {name | name := part.name} if part.kind == "option"

_option_names(part) := {"?"} if part.kind in {"word", "pattern", "subcommand"}
