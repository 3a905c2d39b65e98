"""policy/code.yaml: what a code action may be, how long it may run, and what its output must be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field, StringConstraints
from pydantic_core import InitErrorDetails

from engine.documents.strict_json import MAX_SAFE_INTEGER
from engine.facts.code.answers import NAMED, Places
from engine.model import Model
from engine.values.fields import Checked, Items, Text, Word, value_error

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)]
Bound = Annotated[float, Field(ge=-MAX_SAFE_INTEGER, le=MAX_SAFE_INTEGER)] | Literal["any"]
Count = Annotated[int, Field(ge=1, le=1_000_000)]

SAID_OF_A_RUN = ("exec_ms", "stdout_bytes", "stderr_bytes", "backend", "isolation")
"""Fields about the run itself that an answer may use: milliseconds, bytes of output, the sandbox and its type."""


class Percent(Model):
    """A rate that is also shown as a percentage."""

    name: Name = Field(description="Name of the percentage in the answer.")
    decimals: Places = Field(description="Number of decimal places.")


class _Named(Model):
    name: Name = Field(description="Name of the field.")


class _Bounded(_Named):
    minimum: Bound = Field(description="Lowest allowed value, or `any`.")
    maximum: Bound = Field(description="Highest allowed value, or `any`.")


class NumberField(_Bounded):
    """A number."""

    type: Literal["number"] = Field(description="The output must be a JSON number.")
    decimals: Places = Field(description="Number of decimal places in the answer.")
    percent: Percent | None = Field(default=None, description="Also repeats the value in the answer as a percentage.")


class IntegerField(_Bounded):
    """A whole number, written without point and exponent."""

    type: Literal["integer"] = Field(description="The output must be a whole number.")


class ConvertibleField(_Bounded):
    """A number, or text that is one; it is rounded before anything else is done with it."""

    type: Literal["convertible"] = Field(description="The output must be a number, or text that contains one.")
    decimals: Places = Field(description="Number of decimal places. The value is rounded before it is checked.")


class ChoiceField(_Named):
    """One of a few texts."""

    type: Literal["choice"] = Field(description="The output must be one of the listed texts.")
    one_of: Annotated[Items[Text], Field(min_length=1)] = Field(description="Allowed texts.")


class FlagField(_Named):
    """True or false."""

    type: Literal["flag"] = Field(description="The output must be a boolean.")
    must_be: bool = Field(description="Required value.")


class RequestField(_Named):
    """Equal to the request's field of this name, which must be echoed."""

    type: Literal["request"] = Field(
        description="The output must equal the request's field of the same name, which must be listed in `echoed`."
    )


class TextField(_Named):
    """A text of the program. Nothing vouches for it; secrets are taken out of it."""

    type: Literal["text"] = Field(description="The output must be a text.")
    characters: Count = Field(description="Maximum length, in characters.")


class _Cell(Model):
    optional: bool = Field(default=False, description="A value may be null or, in a table, left out.")


class _BoundedCell(_Cell):
    minimum: Bound = Field(description="Lowest allowed value, or `any`.")
    maximum: Bound = Field(description="Highest allowed value, or `any`.")


class NumberCell(_BoundedCell):
    """A number."""

    type: Literal["number"] = Field(description="Each value must be a JSON number.")


class IntegerCell(_BoundedCell):
    """A whole number, written without point and exponent."""

    type: Literal["integer"] = Field(description="Each value must be a whole number.")


class ChoiceCell(_Cell):
    """One of a few texts."""

    type: Literal["choice"] = Field(description="Each value must be one of the listed texts.")
    one_of: Annotated[Items[Text], Field(min_length=1)] = Field(description="Allowed texts.")


class TextCell(_Cell):
    """A text of the program. Nothing vouches for it; secrets are taken out of it."""

    type: Literal["text"] = Field(description="Each value must be a text.")
    characters: Count = Field(description="Maximum length of each, in characters.")


class BooleanCell(_Cell):
    """True or false."""

    type: Literal["boolean"] = Field(description="Each value must be a boolean.")


class NumberColumn(_Named, NumberCell):
    """A column of numbers."""


class IntegerColumn(_Named, IntegerCell):
    """A column of whole numbers."""


class ChoiceColumn(_Named, ChoiceCell):
    """A column of a few texts."""


class TextColumn(_Named, TextCell):
    """A column of texts."""


class BooleanColumn(_Named, BooleanCell):
    """A column of booleans."""


Cell = Annotated[NumberCell | IntegerCell | ChoiceCell | TextCell | BooleanCell, Field(discriminator="type")]
Column = Annotated[
    NumberColumn | IntegerColumn | ChoiceColumn | TextColumn | BooleanColumn, Field(discriminator="type")
]


class _Counted(_Named):
    least: Annotated[int, Field(ge=0, le=100_000)] = Field(description="Minimum number of entries.")
    most: Annotated[int, Field(ge=0, le=100_000)] = Field(description="Maximum number of entries.")


class ListField(_Counted):
    """A list of values of one type."""

    type: Literal["list"] = Field(description="The output must be a list.")
    items: Cell = Field(description="What each value must be.")


class TableField(_Counted):
    """A list of rows, each an object with these columns; other columns are dropped."""

    type: Literal["table"] = Field(description="The output must be a list of objects.")
    columns: Annotated[Items[Column], Field(min_length=1, max_length=100)] = Field(
        description="Columns, in the order in which they are checked."
    )


SingleField = NumberField | IntegerField | ConvertibleField | ChoiceField | FlagField | RequestField
ContentField = TextField | ListField | TableField
"""Fields whose content is the program's own; an answer repeats none of it."""

OutputField = Annotated[SingleField | ContentField, Field(discriminator="type")]


class Echoed(_Named):
    """A field of the request that the answer repeats."""

    case: Literal["as_is", "upper"] = Field(
        description="`upper` repeats the field in upper case, and compares output in upper case; `as_is` changes "
        "nothing."
    )


class Streams(Model):
    """Limits of both output streams of a program."""

    stdout_bytes: Count = Field(description="Maximum size of standard output, in bytes. More is refused.")
    stderr_bytes: Count = Field(description="Maximum size of standard error, in bytes. More is refused.")


class Contract(Model):
    """The required output of a program, and the answer made from it."""

    text: Streams | None = Field(
        default=None,
        description="The output is text, within these limits: it is passed on as it was printed, without secrets, and "
        "nothing vouches for it. Such a contract has no fields.",
    )
    streams: Streams | None = Field(
        default=None, description="Limits of a contract with a text, list or table, in place of the general ones."
    )
    fields: Items[OutputField] = Field(
        description="Fields of the output, in the order in which they are checked. The first failure is reported."
    )
    echoed: Items[Echoed] = Field(description="Fields of the request that the answer repeats.")
    answer: Annotated[str, StringConstraints(min_length=1, max_length=2_000)] = Field(
        description="Template of the answer, with field names in braces."
    )


def _contract_errors(name: str, contract: Contract) -> Iterator[InitErrorDetails]:
    """Every mistake of one contract, at the path of its field."""
    at = ("contracts", name)
    if (contract.text is None) != bool(contract.fields):
        yield value_error("states either `text` or at least one field", (*at, "fields"), [])
    fields = [field.name for field in contract.fields]
    echoed = [field.name for field in contract.echoed]
    content = {field.name for field in contract.fields if isinstance(field, ContentField)}
    if (contract.streams is not None) != bool(content):
        yield value_error("`streams` belongs to contracts with a text, list or table", (*at, "streams"), None)
    percents = [
        field.percent.name for field in contract.fields if isinstance(field, NumberField) and field.percent is not None
    ]
    yield from _doubled((*at, "fields"), fields)
    yield from _doubled((*at, "echoed"), echoed)
    yield from _doubled((*at, "fields"), [*set(fields), *percents], what="percentage")
    for index, field in enumerate(contract.fields):
        yield from _field_errors((*at, "fields", index), field, echoed)
    for one in sorted((set(echoed) | set(SAID_OF_A_RUN)) & set(_computed(contract, percents))):
        yield value_error(f"`{one}` is ambiguous in the answer", (*at, "echoed"), one)
    known = {*fields, *percents, *echoed, *SAID_OF_A_RUN} - content
    yield from _answer_errors((*at, "answer"), contract.answer, known)


def _computed(contract: Contract, percents: Iterable[str]) -> Iterator[str]:
    yield from percents
    yield from (field.name for field in contract.fields if not isinstance(field, RequestField))


def _field_errors(path: tuple[str | int, ...], field: OutputField, echoed: list[str]) -> Iterator[InitErrorDetails]:
    if isinstance(field, RequestField) and field.name not in echoed:
        yield value_error(
            f"`{field.name}` is a request field and must be listed in `echoed`", (*path, "name"), field.name
        )
    if isinstance(field, TableField):
        yield from _doubled((*path, "columns"), [column.name for column in field.columns], what="column")
    if isinstance(field, _Counted) and field.least > field.most:
        yield value_error("`least` is above `most`", (*path, "least"), field.least)
    for place, one in _parts(path, field):
        if isinstance(one, _Bounded | _BoundedCell):
            low, high = one.minimum, one.maximum
            if isinstance(low, float) and isinstance(high, float) and low > high:
                yield value_error("the minimum is above the maximum", (*place, "minimum"), low)
    if isinstance(field, NumberField) and field.percent is not None and "any" in {field.minimum, field.maximum}:
        yield value_error("a percentage needs a minimum and a maximum", (*path, "percent"), field.percent.name)


def _parts(path: tuple[str | int, ...], field: OutputField) -> Iterator[tuple[tuple[str | int, ...], Model]]:
    """The field, what its values are, and its columns, with their paths."""
    yield path, field
    if isinstance(field, ListField):
        yield (*path, "items"), field.items
    if isinstance(field, TableField):
        yield from (((*path, "columns", index), column) for index, column in enumerate(field.columns))


def _doubled(path: tuple[str | int, ...], names: list[str], what: str = "field") -> Iterator[InitErrorDetails]:
    for name, times in Counter(names).items():
        if times > 1:
            yield value_error(f"the {what} `{name}` occurs twice", path, name)


def _answer_errors(path: tuple[str | int, ...], answer: str, known: set[str]) -> Iterator[InitErrorDetails]:
    for name in sorted(set(NAMED.findall(answer)) - known):
        yield value_error(f"there is no field `{name}`: use one of {', '.join(sorted(known))}", path, answer)
    if set("{}") & set(NAMED.sub("", answer)):
        yield value_error("unmatched brace: write `{name}`", path, answer)


Seconds = Annotated[float, Field(gt=0, le=3_600)]
Entrypoint = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_]+\.[a-z0-9]+$", max_length=64)]

CodeName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_$][A-Za-z0-9_$]*$", max_length=64)]
"""A name in a program, as written."""

CodeKind = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]*$", max_length=64)]
"""A kind of text or construct, or an encoding, by its name in the scan."""


class Scan(Model):
    """What code of one language may contain: lists of what is allowed, and three lists of denied names."""

    modules: Mapping[CodeName, Items[CodeName]] = Field(
        description="Modules that may be imported, with the members that may be used. A module without a row is "
        "refused."
    )
    builtins: Items[CodeName] = Field(description="Built-in names that may be used. All others are refused.")
    literals: Items[CodeKind] = Field(
        description="Kinds of text that code may contain: `path`, `url`, `format`, `dunder`, `reflection`, `hidden`."
    )
    computed: Items[CodeKind] = Field(
        description="What code may build at run time: `format` (format strings that are not literals), "
        "`member_built`, `member_variable`, `scope`."
    )
    encodings: Items[CodeKind] = Field(description="Source encodings that code may declare, in lower case.")
    denied_calls: Items[CodeName] = Field(description="Names that must not be called.")
    denied_names: Items[CodeName] = Field(description="Names that must not be used at all, called or not.")
    denied_attributes: Items[CodeName] = Field(description="Attributes that must not be used on any object.")
    input_reads: Annotated[int, Field(ge=0, le=100)] = Field(description="Maximum number of reads of the input.")


class WholeHint(Model):
    """A whole number that a hint may set, with its default and bounds."""

    default: Count = Field(description="Value without a readable hint.")
    minimum: Count = Field(description="Lowest value. A lower hint is raised to it.")
    maximum: Count = Field(description="Highest value. A higher hint is lowered to it.")


class SecondsHint(Model):
    """A time in seconds that a hint may set, with its default and bounds."""

    default: Seconds = Field(description="Seconds without a readable hint.")
    minimum: Seconds = Field(description="Lowest number of seconds. A lower hint is raised to it.")
    maximum: Seconds = Field(description="Highest number of seconds. A higher hint is lowered to it.")


class Hints(Model):
    """What the hints of a request may set. They can only narrow what the policy allows."""

    network_access: Items[Word] = Field(
        description="Words that mean no network. A hint with any other word is refused."
    )
    max_code_chars: WholeHint = Field(description="Maximum length of the code, in characters. Longer code is refused.")
    exec_timeout_seconds: SecondsHint = Field(
        description="Timeout of one execution, in seconds. The program is then killed."
    )


class Inputs(Model):
    """Files that a program may be given beside its input."""

    files: Annotated[int, Field(ge=0, le=1_000)] = Field(description="Maximum number of files.")
    bytes: Annotated[int, Field(ge=0, le=1 << 30)] = Field(description="Maximum size of all files together, in bytes.")


class Outputs(Model):
    """The contract for the output of a program, by its role in a run."""

    solution: Word = Field(description="Contract of programs for which the run names no contract.")
    verifier: Word = Field(description="Contract of programs that verify another program's output.")
    program: Word = Field(description="Contract of a program file that `engine code run` gets without an action.")


class Code(Checked):
    """policy/code.yaml: what a code action may be, how it may run, and what its output must be."""

    languages: Items[Word] = Field(description="Languages in which an action may be proposed.")
    execution: Mapping[Word, Word] = Field(
        description="Languages that may be executed, each with its profile in policy/sandbox.yaml."
    )
    entrypoints: Items[Entrypoint] = Field(description="File names that an action may use as entry point.")
    max_seconds: Seconds = Field(
        description="Time budget of a whole run, in seconds. A run that exceeds it is stopped."
    )
    stdout_bytes: Count = Field(description="Maximum size of standard output, in bytes. More is refused.")
    stderr_bytes: Count = Field(description="Maximum size of standard error, in bytes. More is refused.")
    attempts: Annotated[int, Field(ge=1, le=100)] = Field(
        description="Maximum number of attempts at one task, repairs included."
    )
    retention_days: Annotated[int, Field(ge=1, le=36_500)] = Field(
        description="Days for which code, results and failure logs are kept."
    )
    environment: Mapping[Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]*$")], Text] = Field(
        description="Environment variables of a program. Besides these it gets only PATH, HOME, LANG and "
        "PYTHONHASHSEED."
    )
    hints: Hints = Field(description="Values that a request may influence by hints, with their bounds.")
    scan: Mapping[Word, Scan] = Field(description="What source code may contain, by language.")
    contracts: Mapping[Word, Contract] = Field(description="Output contracts by name.")
    inputs: Inputs = Field(description="Limits of the files that a program finds in `inputs/`.")
    outputs: Outputs = Field(description="Output contract for each role of a program.")

    def _mistakes(self) -> Iterator[InitErrorDetails]:
        for language in self.execution:
            if language not in self.languages:
                yield value_error(
                    f"`{language}` is not in `languages`: add it there, or remove it here",
                    ("execution", language),
                    language,
                )
        for name, hint in (
            ("max_code_chars", self.hints.max_code_chars),
            ("exec_timeout_seconds", self.hints.exec_timeout_seconds),
        ):
            if not hint.minimum <= hint.default <= hint.maximum:
                yield value_error(
                    "the default is not between minimum and maximum", ("hints", name, "default"), hint.default
                )
        if self.hints.exec_timeout_seconds.maximum > self.max_seconds:
            yield value_error(
                "one execution may not take longer than a whole run (`max_seconds`)",
                ("hints", "exec_timeout_seconds", "maximum"),
                self.hints.exec_timeout_seconds.maximum,
            )
        for role, name in self.outputs:
            if name not in self.contracts:
                yield value_error(f"there is no contract `{name}`", ("outputs", role), name)
        for name, contract in self.contracts.items():
            yield from _contract_errors(name, contract)
