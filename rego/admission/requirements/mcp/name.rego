package admission.requirements.mcp.name

import future.keywords.not

# METADATA
# title: Local names of tools are unique
# description: The local name is mcp_<server>__<tool>, in characters that every model provider accepts. Two tools with
#   one name could not be distinguished.
# custom:
#   code: tool_name_collision
#   each: tools
#   empty: allowed
#   remedy: Have one of the tools renamed at its server, or leave its server out
# labels:
#   row: B37
unique(tool) if tool.collides == false

# METADATA
# title: Names of tools do not look alike
# description: People and models confuse names that differ only in letter case or in look-alike letters.
# custom:
#   code: tool_name_confusable
#   each: tools
#   empty: allowed
#   after: [tool_name_collision]
#   remedy: Have one of the tools renamed at its server, or leave its server out
# labels:
#   row: H14
distinct(tool) if tool.confusable == false
