"""Facts of a JavaScript program from its syntax tree, in the same shape as those of Python. Rows C71, H03.

A name is built in where no scope around it declares it, and `this` everywhere: outside of classes it is all globals.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from engine.facts.code.javascript_scan_tree import Node, is_sum, parse, plain, written
from engine.facts.code.scan_items import Collector, Lines, ScanError, ScanFacts

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
"""Names that `var` outside of functions does not hide: in a script, it names the global one."""
_REFLECTION = frozenset({"constructor", "prototype"})
_NAMES = frozenset({"identifier", "shorthand_property_identifier", "shorthand_property_identifier_pattern", "this"})
_DECLARES = {
    "variable_declarator": "name", "function_declaration": "name", "generator_function_declaration": "name",
    "function_expression": "name", "generator_function": "name", "class_declaration": "name", "class": "name",
    "catch_clause": "parameter", "arrow_function": "parameter", "for_in_statement": "left",
}  # fmt: skip
_IMPORTS = frozenset({"import_clause", "import_specifier", "namespace_import"})
_PATTERNS = frozenset(
    {
        "object_pattern",
        "array_pattern",
        "pair_pattern",
        "rest_pattern",
        "assignment_pattern",
        "object_assignment_pattern",
    }
)
_OF_THEMSELVES = frozenset({"function_expression", "generator_function", "class", "catch_clause", "arrow_function"})
"""Nodes that declare names for their own inside only."""
_BLOCKS = frozenset({"program", "statement_block", "switch_body", "for_statement", "for_in_statement"})
_BRANCHES = frozenset({"if_statement", "else_clause"})
"""A function declared in one of these without braces exists only once the branch is taken."""
_FUNCTIONS = _OF_THEMSELVES - {"class", "catch_clause"} | {
    "function_declaration", "generator_function_declaration", "method_definition", "class_static_block",
    "field_definition",
}  # fmt: skip
"""What runs apart from the code around it, also the value of a field."""
_OUTSIDE = frozenset({("method_definition", "name"), ("field_definition", "property")})
"""Computed names, which belong to the code around."""
_SUSPENDS = {"yield_expression": "*", "await_expression": "async"}
"""Which kind of function each needs."""
Declared = Mapping[int, set[str]]
"""The names that a part of the program declares, by its `id`."""

_CALLS = {"call_expression": "function", "new_expression": "constructor"}
_LOADERS = frozenset({"require", "getBuiltinModule", "createRequire"})
_SCHEME = "node:"
_READER = "input"
"""The function of the sandbox that reads the input."""
_READERS = frozenset({_READER, "readFileSync", "readSync"})


def scan_javascript(code: str, lines: Lines) -> ScanFacts:
    """The facts of a program. Raises ScanError."""
    found = Collector(lines)
    nodes = parse(code)
    found.source(code)
    declared: dict[int, set[str]] = defaultdict(set)
    for node in nodes:
        if node.type in _NAMES and (scope := _scope(node)) is not None:
            declared[id(scope)].add(node.text)
    for node in nodes:
        found.line = node.line
        if node.type in _SUSPENDS:
            _suspension(node)
        _imports(node, found)
        _look(node, found, declared)
        _texts(node, found)
    return found.facts("javascript")


def _look(node: Node, found: Collector, declared: Declared) -> None:
    above = node.above
    if node.type in _NAMES:
        _variable(node, found, declared)
    elif node.type == "meta_property":
        found.add("names", node.text, variable=True, as_value=True, builtin=True)
    elif node.type in _CALLS:
        _call(node, found, declared)
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


def _suspension(node: Node) -> None:
    """Raises ScanError where `yield` or `await` may be a variable, and so `/` a division, not a regular expression.

    The grammar takes both for keywords everywhere. Outside of functions, `await` is one in modules, and is admitted
    there unless a regular expression follows.
    """
    at, function = node, node.above
    while function is not None and not (function.type in _FUNCTIONS and _is_inside(at, function)):
        at, function = function, function.above
    if function is not None and _SUSPENDS[node.type] in function.kind:
        return
    first: Node | None = node
    while first is not None and first.type != "regex":
        first = first.below[0] if first.below else None
    if function is not None or node.type == "yield_expression" or first is not None:
        raise ScanError("syntax", node.line)


def _is_inside(node: Node, above: Node) -> bool:
    """Whether a part of a function or class is inside its scope, as decorators and computed names are not."""
    return node.role != "decorator" and (above.type, node.role) not in _OUTSIDE


def _member(index: Node | None, found: Collector) -> None:
    """A member by its index in brackets: a text is a name, a number is not, anything else is computed."""
    while index is not None and index.type == "parenthesized_expression":
        index = index.below[0]
    if index is None or index.type == "number":
        return
    if (text := plain(index)) is not None:
        found.add("attributes", text)
    else:
        found.add("computed", "member_variable" if written(index) is None else "member_built")


def _variable(node: Node, found: Collector, declared: Declared) -> None:
    above = node.above
    as_value = above is None or node.role != _CALLS.get(above.type)
    own = _is_own(node, declared)
    found.reads(value=as_value and node.text == _READER and not own)
    found.add("names", node.text, variable=True, as_value=as_value, bound=own, builtin=not own)


def _call(node: Node, found: Collector, declared: Declared) -> None:
    called = node.named(_CALLS[node.type])
    if called is None:
        return
    if called.type in _NAMES:
        own = _is_own(called, declared)
        found.add("calls", called.text, by_name=True, builtin=not own)
        found.reads(call=called.text in _READERS and not (own and called.text == _READER))
    elif (name := called.named("property")) is not None:
        found.add("calls", name.text, by_attribute=True)
        found.reads(call=name.text in _READERS)
    elif (index := called.named("index")) is not None and (text := plain(index)) is not None:
        found.add("calls", text, by_attribute=True)


def _texts(node: Node, found: Collector) -> None:
    if node.above is not None and is_sum(node.above):
        return  # a part of what is looked at as a whole
    text = written(node)
    if text is None:
        return
    found.text(text)
    if text in _REFLECTION:
        found.add("literals", "reflection")


def _is_own(node: Node, declared: Declared) -> bool:
    """Whether a name is declared in a scope around it, or only names what an import renames."""
    at = node
    while (above := at.above) is not None:
        named = node.text in declared.get(id(above), ()) and _is_inside(at, above)
        if named or above.type == "import_specifier":
            return True
        at = above
    return False


def _scope(node: Node) -> Node | None:
    """The part of the program in which a name is what this node declares; None if it declares nothing."""
    at = node
    while (above := at.above) is not None:
        if above.type == "formal_parameters":
            return above.above
        if above.type in _IMPORTS:
            renamed = at.role == "name" and above.named("alias") is not None
            return None if renamed else _block(above, of_function=False)
        if at.role == _DECLARES.get(above.type, "-"):
            return _of_declaration(node.text, above)
        if above.type not in _PATTERNS or at.role == "right":
            return None
        at = above
    return None


def _of_declaration(name: str, node: Node) -> Node | None:
    if node.type in _OF_THEMSELVES:
        return node
    assigns = node.type == "for_in_statement" and not node.kind
    if assigns or (node.above is not None and node.above.type in _BRANCHES):
        return None
    declaration = node.above if node.type == "variable_declarator" else node
    is_var = declaration is not None and (declaration.type == "variable_declaration" or declaration.kind == "var")
    scope = _block(declaration, of_function=is_var)
    hides = scope is None or not is_var or scope.type != "program" or name not in _GLOBALS
    return scope if hides else None


def _block(node: Node | None, *, of_function: bool) -> Node | None:
    """The closest block around a declaration, or the body of the function around it."""
    while node is not None and node.type != "program":
        body = node.above is not None and node.above.type in _FUNCTIONS
        if body or (node.type in _BLOCKS and not of_function):
            return node
        node = node.above
    return node


def _imports(node: Node, found: Collector) -> None:
    """A module that comes as a whole is a value, and only what is imported by name is a member."""
    if (source := node.named("source")) is not None:
        _from(node, source, found)
    elif node.type in _CALLS and _loads(node):
        _loaded(node, found)


def _from(node: Node, source: Node, found: Collector) -> None:
    module = _module(source, found)
    if module is None:
        return
    waiting = list(node.below)
    names = 0
    while waiting:
        part = waiting.pop()
        if (name := part.named("name")) is not None:
            found.member(module, name.text)
            names += 1
        elif part.type in {"import_clause", "named_imports", "export_clause"}:
            waiting += part.below
        elif part.type in {"identifier", "namespace_import", "namespace_export"}:
            found.add("modules", module, as_value=True)
            names += 1
    if not names and node.type == "export_statement":
        found.add("modules", module, as_value=True)
    found.add("modules", module)


def _loads(node: Node) -> bool:
    called = node.named(_CALLS[node.type])
    if called is None:
        return False
    called = called.named("property") or called
    return called.type == "import" or called.text in _LOADERS


def _loaded(node: Node, found: Collector) -> None:
    arguments = node.named("arguments")
    source = arguments.below[0] if arguments is not None and arguments.below else None
    module = None if source is None else _module(source, found)
    if source is None:
        found.imported("computed", "computed")
    if module is not None:
        found.add("modules", module, as_value=True)


def _module(source: Node, found: Collector) -> str | None:
    """The top-level name of a module; None for a file, or for what is known only while the program runs."""
    text = plain(source)
    if text is None:
        found.imported("computed", "computed")
        return None
    if not text or text[0] in "./\\" or ":" in text.removeprefix(_SCHEME):
        found.imported("relative", "relative")
        return None
    parts = text.removeprefix(_SCHEME).split("/")
    top = "/".join(parts[:2]) if parts[0].startswith("@") else parts[0]
    found.imported(top)
    return top
