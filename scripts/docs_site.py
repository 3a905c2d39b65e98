"""A hook of MkDocs: adds the pages outside docs/ to the site, and corrects links to and from them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
OUTSIDE = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#:\s]+)(#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages in the top folder."""
    for name in OUTSIDE:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: Any) -> str:
    """Point each link to the page of its target; a file that the site leaves out is named without a link."""
    return _LINK.sub(lambda link: _mended(link, page.file, files), markdown)


def _mended(link: re.Match[str], page: File, files: Files) -> str:
    text, path, anchor = link.groups(default="")
    folder = ROOT if page.src_uri in OUTSIDE else (ROOT / "docs" / page.src_uri).parent
    target = (folder / path).resolve()
    if not target.exists():
        return link[0]  # MkDocs reports it
    source = target.relative_to(ROOT).as_posix().removeprefix("docs/")
    if files.get_file_from_path(source) is None:
        return text
    return f"[{text}]({'../' * page.src_uri.count('/')}{source}{anchor})"
