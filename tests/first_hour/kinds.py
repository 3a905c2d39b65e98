"""Kinds of data as people have them: folders with cards, metadata and files of our own making."""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
import struct
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conftest import ROOT

ROWS = b'{"text": "Soup is hot."}\n{"text": "Rain is wet."}\n'
TABLE = b"city,people\nOslo,717710\nBergen,291940\n"


@dataclass(frozen=True)
class Kind:
    """A folder of data, the options of `engine source init`, what the first check finds, and the right end.

    `completed` are the values that a person writes in the place of comments or of what was found; `ends` is
    the outcome of the second check and its codes.
    """

    files: Mapping[str, bytes]
    options: tuple[str, ...] = ()
    finds: tuple[str, ...] = ()
    completed: Mapping[str, str] = field(default_factory=dict)
    ends: tuple[str, ...] = ("allow",)


def card(license_: str, name: str = "Soups", more: str = "") -> bytes:
    """A dataset card as Hugging Face describes them."""
    return f"---\npretty_name: {name}\nlicense: {license_}\n{more}---\n# {name}\n\nOne sentence a line.\n".encode()


def croissant(license_: str, *files: Mapping[str, str]) -> bytes:
    """Metadata as MLCommons describes them; file objects with name, contentUrl and so on."""
    return json.dumps(
        {
            "@context": {"@vocab": "https://schema.org/", "cr": "http://mlcommons.org/croissant/"},
            "@type": "Dataset",
            "conformsTo": "http://mlcommons.org/croissant/1.0",
            "name": "stations",
            "license": license_,
            "distribution": [{"@type": "cr:FileObject", "@id": one["name"], **one} for one in files],
        }
    ).encode()


def package(license_: Mapping[str, str], *resources: Mapping[str, Any]) -> bytes:
    """A Frictionless data package."""
    return json.dumps({"name": "cities", "licenses": [license_], "resources": resources}).encode()


def png() -> bytes:
    """A picture of one grey pixel."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0\x80")) + chunk(b"IEND", b"")


def database() -> bytes:
    """An SQLite file with one table."""
    with sqlite3.connect(":memory:") as connection:
        connection.execute("create table cities (name text, people integer)")
        return connection.serialize()


def shards() -> bytes:
    """A tar file as WebDataset has them: samples by their common name."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in (("1.txt", b"a dot"), ("1.png", png())):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


PERSON = (
    *("--purpose", "train", "--retention-until", "2030-12-31", "--retention-basis", "license"),
    *("--decided-by", "legal@example.org"),
)
REMOTE = "https://data.example.org/stations.csv"
PARQUET = b"PAR1" + b"\0" * 16 + b"PAR1"

KINDS: dict[str, Kind] = {
    "a card with jsonl": Kind(
        {"README.md": card("odc-by"), "data/train.jsonl": ROWS, ".gitattributes": b"*.jsonl lfs\n"}, PERSON
    ),
    "a data package": Kind(
        {
            "datapackage.json": package(
                {"name": "ODC-PDDL-1.0"},
                {"name": "cities", "path": "data/cities.csv", "hash": f"sha256:{hashlib.sha256(TABLE).hexdigest()}"},
                {"name": "database", "path": ["data/cities.sqlite"], "licenses": [{"name": "CC0-1.0"}]},
            ),
            "data/cities.csv": TABLE,
            "data/cities.sqlite": database(),
        },
        (*PERSON, "--export-license", "CC-BY-4.0"),
    ),
    "a card with parquet, licensed for non-commercial use": Kind(
        {"README.md": card("cc-by-nc-4.0"), "data/train-00000-of-00001.parquet": PARQUET},
        PERSON,
        finds=("license_incompatible",),
        completed={"purpose: train": "purpose: eval"},
        ends=("confirm", "license_review_required"),
    ),
    "a card with terms of a model": Kind(
        {"README.md": card("llama3"), "generated.jsonl": ROWS},
        PERSON,
        finds=("license_incompatible",),
        completed={"purpose: train": "purpose: eval"},
        ends=("deny", "license_incompatible"),
    ),
    "a card without a license": Kind(
        {"README.md": card("other", more="license_name: in-house\n"), "train.csv": TABLE},
        PERSON,
        finds=("license_unknown",),
        completed={"license: in-house": "license: CC0-1.0"},
    ),
    "croissant with an address": Kind(
        {
            "croissant.json": croissant(
                "https://creativecommons.org/licenses/by/4.0/",
                {"name": "stations.csv", "contentUrl": REMOTE, "encodingFormat": "text/csv"},
            ),
            "stations.csv": TABLE,
        },
        (*PERSON, "--retrieved-at", "2026-11-02T09:30:00Z"),
    ),
    "a card with two licenses": Kind(
        {
            "README.md": card("[mit, apache-2.0]"),
            "a/über uns.txt": "naïve".encode(),
            "b/über uns.txt": b"",
            "null.md": b"#",
        },
        (*PERSON, "--from", "hf"),
    ),
    "plain text of our own": Kind(
        {f"letters/{number}.txt": f"Letter {number}\n".encode() for number in range(3)},
        ("--license", "CC0-1.0"),
        finds=("bundle_invalid", "license_decision_missing", "purpose_not_admitted", "retention_missing"),
        completed={
            "# purpose: # state train, eval, tool or environment": "purpose: train",
            '# retention: {until: "2030-12-31", basis: license} # state the last day and the legal basis': (
                'retention: {until: "2030-12-31", basis: own_work}'
            ),
            "license_decisions: []": "DECISIONS",
        },
    ),
    "pictures with captions": Kind(
        {"images/0001.png": png(), "captions.csv": b"file,text\n0001.png,a dot\n", "LICENSE": b"CC BY 4.0\n"},
        (*PERSON, "--license", "CC BY 4.0 International"),
        finds=("license_unknown",),
        completed={"license: CC BY 4.0 International": "license: CC-BY-4.0"},
    ),
    "code under a copyleft license": Kind(
        {"src/main.py": b"print(1)\n", "src/lib.c": b"int x;\n", "README.md": b"# A program\n"},
        (*PERSON, "--license", "GPLv3", "--export-license", "MIT"),
        finds=("license_incompatible",),
        completed={"export_license: MIT": "export_license: null", "export: allowed": "export: forbidden"},
        ends=("confirm", "license_review_required"),
    ),
    "shards and a dump": Kind(
        {
            "shards/train-000000.tar": shards(),
            "shards/rest.tar.zst": b"\x28\xb5\x2f\xfd",
            "dump.sql": b"create table t (a int);\n",
            "notes.md": b"# Notes\n",
        },
        (*PERSON, "--license", "MIT OR Apache-2.0", "--from", "folder"),
    ),
}


def filled(text: str, kind: Kind) -> str:
    """The document as a person completes it; license decisions as the page shows them."""
    for old, new in kind.completed.items():
        assert old in text, (old, text)
        text = text.replace(old, decisions(text) if new == "DECISIONS" else new)
    return text


def decisions(text: str) -> str:
    """A decision to accept each record of a document."""
    from engine.documents.files import load
    from engine.settings import ReadLimits

    records = load(text.encode(), "bundle.yaml", ReadLimits()).value["records"]
    lines = [
        f"  - {{record: {one['id']}, sha256: {one['sha256']}, decision: accepted, decided_by: legal@example.org,"
        ' decided_at: "2026-11-20T10:00:00Z"}'
        for one in records
    ]
    return "\n".join(["license_decisions:", *lines])


def write(kind: Kind, folder: Path) -> None:
    """Put the files of a kind below a folder."""
    assert ROOT not in folder.parents
    for name, data in kind.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
