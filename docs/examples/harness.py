"""A harness without a model: it calls the tools that the last message names, and returns what they answered.

It shows what a harness needs: standard input and output, and no library. A line of the message such as
`search {"text": "ada"}` is a call of the tool `search`; every other line is repeated.
"""

import json
import sys


def say(**message):
    """Send one message to the runner."""
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def hear():
    """The next message of the runner."""
    return json.loads(sys.stdin.readline())


def call(number, name, arguments):
    """Call a tool and wait for its answer."""
    say(id=number, method="tools/call", params={"name": name, "arguments": arguments})
    return hear()["result"]["content"][0]["text"]


say(id=hear()["id"], result={"capabilities": {"mcpTools": False, "toolCalls": True}})

run = hear()
task = run["params"]
tools = [tool["name"] for tool in task["tools"]]
say(method="advertised", params={"tools": tools})

if "probe" in task:  # the runner tries whether calls reach it
    call(0, tools[0], {"word": task["probe"]["word"]})
    lines = []
else:
    lines = task["messages"][-1]["content"].splitlines() if task["messages"] else []

answers = []
for number, line in enumerate(lines, 1):
    name, _, arguments = line.partition(" ")
    say(method="update", params={"line": number})
    answers.append(call(number, name, json.loads(arguments)) if name in tools else line)

text = "\n".join(answers)
outputs = {"invoke": text, "messages": [{"role": "assistant", "content": text}]}
say(id=run["id"], result={"outputs": outputs, "usage": {"input_tokens": len(lines), "output_tokens": len(answers)}})
