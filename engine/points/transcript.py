"""Point `transcript`: whether entries may be appended to the transcript of an episode, as whose words, and for whom.

The engine sets author and role of an entry from the actor that wrote it, or `external` for text from outside; what the
text or the request claims is a fact of its own. Of texts only digests, sizes and quotes get into the input. Rows
E24 to E26, E36.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from engine.documents.canonical import digest
from engine.facts.proposals import Name
from engine.facts.text.quotes import Runs, words_of
from engine.model import Digest, Limits, Model, Word
from engine.points import GatherContext, Gathered, Point
from engine.points.episode import EpisodeActor, EpisodeId

EntryText = Annotated[str, Field(max_length=16 << 20)]
MOST_WORDS = 100_000
"""Words of an entry that are compared with monologues."""

MOST_COMPARED = 4_000_000
"""Words of monologues that are compared with all entries together, once for each entry."""

EXTERNAL = "external"
"""Author and role of text from outside."""


class NewEntry(Model):
    """An entry to append. `actor` wrote it; null for text from outside.

    `recipient` is the actor that it is for. `claimed_role` is the role that its source claims; it is never taken over.
    """

    actor: Name | None
    kind: Word
    recipient: Name | None
    claimed_role: Annotated[str, Field(max_length=200)] | None
    text: EntryText


class Monologue(Model):
    """A monologue of an actor that this episode has."""

    actor: Name
    text: EntryText


class TranscriptRequest(Model):
    """Entries that are appended together, all or none."""

    episode: EpisodeId
    actors: Annotated[tuple[EpisodeActor, ...], Field(strict=False, max_length=1_000)]
    entries: Annotated[tuple[NewEntry, ...], Field(strict=False, min_length=1, max_length=16)]
    monologues: Annotated[tuple[Monologue, ...], Field(strict=False, max_length=10_000)]


class Quote(Model):
    """The longest run of words of another actor's monologue that an entry repeats; `whole`: all of the monologue."""

    id: str
    words: int
    whole: bool


class EntryFacts(Model):
    """An entry without its text. `author` and `role` are absent for an actor that the episode does not have.

    `quotes` is absent if there is too much text to compare.
    """

    id: str
    author: str | None = None
    role: str | None = None
    kind: str
    recipient: str | None = None
    recipient_known: bool
    poses: bool
    digest: Digest
    bytes: int
    quotes: tuple[Quote, ...] | None = None


class TranscriptInput(Model):
    """What OPA sees."""

    episode: str
    entries: tuple[EntryFacts, ...]


class AdmittedEntry(Model):
    """An entry as it is appended, for all or for exactly these `readers`. `mark_for_review`: for a person."""

    author: str
    role: str
    kind: str
    readers: Literal["all"] | tuple[str, ...]
    mark_for_review: bool
    digest: Digest


class TranscriptLimits(Limits):
    """The entries, in order."""

    episode: str
    entries: tuple[AdmittedEntry, ...]


def gather(request: TranscriptRequest, _: GatherContext) -> Gathered:
    """Look up the authors, and look for quotes of monologues of other actors."""
    roles = {actor.id: actor.role for actor in request.actors if actor.id != EXTERNAL}
    found = zip(request.entries, quotes_of(request), strict=True)
    entries = tuple(_entry(str(at), one, roles, quotes) for at, (one, quotes) in enumerate(found))
    return Gathered(
        TranscriptInput(episode=request.episode, entries=entries),
        f"transcript of episode {request.episode}",
        subjects=tuple(f"entries/{one.id}" for one in entries),
    )


def quotes_of(request: TranscriptRequest) -> list[tuple[Quote, ...] | None]:
    """For each entry, the longest quote of each other actor. None if there is too much text to compare."""
    sources = [(one.actor, words_of(one.text)) for one in request.monologues]
    if len(request.entries) * sum(len(words) for _, words in sources) > MOST_COMPARED:
        return [None] * len(request.entries)
    return [_quotes(EXTERNAL if one.actor is None else one.actor, one.text, sources) for one in request.entries]


def _entry(position: str, entry: NewEntry, roles: dict[str, str], quotes: tuple[Quote, ...] | None) -> EntryFacts:
    data = entry.text.encode("utf-8")
    role = EXTERNAL if entry.actor is None else roles.get(entry.actor)
    author = EXTERNAL if entry.actor is None else entry.actor
    return EntryFacts(
        id=position,
        author=None if role is None else author,
        role=role,
        kind=entry.kind,
        recipient=entry.recipient,
        recipient_known=entry.recipient in roles,
        poses=entry.claimed_role not in {None, role},
        digest=digest(data),
        bytes=len(data),
        quotes=quotes,
    )


def _quotes(author: str, text: str, sources: list[tuple[str, tuple[str, ...]]]) -> tuple[Quote, ...] | None:
    """A monologue that is quoted as a whole counts most."""
    others = [(actor, source) for actor, source in sources if actor != author and source]
    words = words_of(text) if others else ()
    if len(words) > MOST_WORDS:
        return None
    runs = Runs(words)
    found: dict[str, tuple[bool, int]] = {}
    for actor, source in others:
        if length := runs.longest_in(source):
            found[actor] = max(found.get(actor, (False, 0)), (length == len(source), length))
    return tuple(Quote(id=actor, words=length, whole=whole) for actor, (whole, length) in sorted(found.items()))


POINT = Point("transcript", TranscriptRequest, TranscriptInput, TranscriptLimits, gather, secret=True)
