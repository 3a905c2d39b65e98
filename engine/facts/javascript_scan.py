"""Facts of a JavaScript program from its syntax tree, in the same shape as those of Python. Rows C71, H03.

A built-in name is a global one of ECMAScript or Node, or one that the program does not bind; scopes are not
followed, so that a name counts everywhere. `this` is one too: outside of classes it is all globals.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.facts.code_scan_items import Found, ScanFacts
from engine.facts.code_scan_text import kinds, web_addresses
from engine.facts.javascript_scan_imports import imports
from engine.facts.javascript_scan_tree import Node, parse, whole, written

_OF_ECMASCRIPT_AND_NODE = (
    "AbortController AbortSignal AggregateError Array ArrayBuffer Atomics BigInt BigInt64Array BigUint64Array Blob"
    " Boolean BroadcastChannel Buffer Bun ByteLengthQueuingStrategy CompressionStream CountQueuingStrategy Crypto"
    " CryptoKey CustomEvent DOMException DataView Date DecompressionStream Deno Error EvalError Event EventSource"
    " EventTarget File FinalizationRegistry Float32Array Float64Array FormData Function Headers Infinity Int16Array"
    " Int32Array Int8Array Intl Iterator JSON Map Math MessageChannel MessageEvent MessagePort NaN Navigator Number"
    " Object Performance PerformanceObserver Promise Proxy RangeError ReadableStream ReferenceError Reflect RegExp"
    " Request Response Set SharedArrayBuffer Storage String SubtleCrypto Symbol SyntaxError TextDecoder TextEncoder"
    " TransformStream TypeError URIError URL URLSearchParams Uint16Array Uint32Array Uint8Array Uint8ClampedArray"
    " WeakMap WeakRef WeakSet WebAssembly WebSocket WritableStream arguments assert atob async_hooks btoa buffer"
    " child_process clearImmediate clearInterval clearTimeout cluster console constants crypto decodeURI"
    " decodeURIComponent dgram diagnostics_channel dns document domain encodeURI encodeURIComponent escape eval"
    " events exports fetch fs global globalThis http http2 https input inspector isFinite isNaN localStorage module"
    " navigator net os parent parseFloat parseInt path perf_hooks performance process punycode querystring"
    " queueMicrotask readline repl require self setImmediate setInterval setTimeout stream string_decoder"
    " structuredClone sys this timers tls top trace_events tty undefined unescape url util v8 vm wasi window"
    " worker_threads zlib"
)
_GLOBALS = frozenset(_OF_ECMASCRIPT_AND_NODE.split())
_REFLECTION = frozenset({"constructor", "prototype"})
_NAMES = frozenset({"identifier", "shorthand_property_identifier", "shorthand_property_identifier_pattern", "this"})
_DECLARES = {
    "variable_declarator": "name", "function_declaration": "name", "generator_function_declaration": "name",
    "function_expression": "name", "class_declaration": "name", "class": "name", "catch_clause": "parameter",
    "arrow_function": "parameter", "for_in_statement": "left",
}  # fmt: skip
_PATTERNS = frozenset(
    {
        "object_pattern",
        "array_pattern",
        "pair_pattern",
        "rest_pattern",
        "assignment_pattern",
        "formal_parameters",
        "object_assignment_pattern",
    }
)
_CALLS = {"call_expression": "function", "new_expression": "constructor"}
_READER = "input"
"""What the sandbox gives a program to read its input with."""
_READERS = frozenset({_READER, "readFileSync", "readSync"})


def scan_javascript(code: str) -> ScanFacts:
    """The facts of a program. Raises ScanError."""
    found = Found()
    nodes = parse(code)
    found.network_literals = web_addresses(code)
    bound = _bound(nodes)
    imports(nodes, found)
    for node in nodes:
        _look(node, found, bound)
        _texts(node, found)
    return found.facts("javascript")


def _look(node: Node, found: Found, bound: set[str]) -> None:
    above = node.above
    if node.type in _NAMES:
        _variable(node, found, bound)
    elif node.type == "meta_property":
        found.add("names", "import.meta" if above and above.type == "member_expression" else "meta", "variable",
            "as_value", "builtin")  # fmt: skip
    elif node.type in _CALLS:
        _call(node, found, bound)
    elif node.type == "property_identifier":
        defines = above is not None and above.type in {"method_definition", "pair", "field_definition"}
        if not defines or node.text.startswith("__"):
            found.add("attributes", node.text)
    elif node.type == "with_statement":
        found.add("computed", "scope")
    elif node.type.startswith("jsx_"):
        found.add("computed", "jsx")
    if node.type == "shorthand_property_identifier_pattern":
        found.add("attributes", node.text)
    if node.type in {"subscript_expression", "computed_property_name"}:
        _member(node.named("index") if node.type == "subscript_expression" else node.below[0], found)


def _member(index: Node | None, found: Found) -> None:
    """A member by what stands in brackets: a text names it, a number none, anything else is seen by nobody."""
    while index is not None and index.type == "parenthesized_expression" and len(index.below) == 1:
        index = index.below[0]
    if index is None or index.type == "number":
        return
    text = written(index)
    if text is None:
        found.add("computed", "member_variable")
    elif whole(index):
        found.add("attributes", text)
    else:
        found.add("computed", "member_built")


def _variable(node: Node, found: Found, bound: set[str]) -> None:
    above = node.above
    flags = ["variable"]
    if above is None or node.role != _CALLS.get(above.type):
        flags.append("as_value")
        found.input_values += node.text == _READER
    if node.text in bound:
        flags.append("bound")
    if _builtin(node.text, bound):
        flags.append("builtin")
    found.add("names", node.text, *flags)


def _call(node: Node, found: Found, bound: set[str]) -> None:
    called = node.named(_CALLS[node.type])
    if called is None:
        return
    if called.type in _NAMES:
        found.add("calls", called.text, "by_name", *(["builtin"] if _builtin(called.text, bound) else []))
        found.input_calls += called.text in _READERS
    elif called.type == "member_expression" and (name := called.named("property")) is not None:
        found.add("calls", name.text, "by_attribute")
        found.input_calls += name.text in _READERS
    elif called.type == "subscript_expression" and (index := called.named("index")) is not None and whole(index):
        found.add("calls", written(index) or "", "by_attribute")


def _texts(node: Node, found: Found) -> None:
    above = node.above
    if above is not None and above.type == "binary_expression" and above.operator == "+":
        return  # a part of what is looked at as a whole
    text = written(node)
    if text is None:
        return
    if web_addresses(text) and not found.network_literals:  # one that its text spells with escapes
        found.network_literals += 1
    for kind in kinds(text):
        found.add("literals", kind)
    if text in _REFLECTION:
        found.add("literals", "reflection")


def _builtin(name: str, bound: set[str]) -> bool:
    return name in _GLOBALS or name not in bound


def _bound(nodes: Iterable[Node]) -> set[str]:
    """Every name that the program gives to something, anywhere."""
    return {node.text for node in nodes if node.type in _NAMES and _declares(node)}


def _declares(node: Node) -> bool:
    one: Node | None = node
    while one is not None and one.above is not None:
        above = one.above
        if above.type == "formal_parameters" or above.type.startswith(("import_", "named_imports", "namespace_")):
            return True
        if one.role == _DECLARES.get(above.type, "-"):
            return True
        if above.type not in _PATTERNS or one.role == "right":
            return False
        one = above
    return False
