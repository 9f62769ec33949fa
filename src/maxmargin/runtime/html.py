"""HTML in which no name can act as markup: all text is escaped unless it is markup already.

Names and labels can hold anything. Besides ``<``, ``>``, ``&`` and quotes, characters that cannot
be seen are dangerous, and replaced: NUL ends strings elsewhere, U+202E reverses the text after it,
and a lone surrogate cannot be written at all.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

LONGEST = 1000  # characters of a text; names are cut shorter where they are shown


class Html(str):
    """Markup, made by the functions below; any other string is text."""

    __slots__ = ()


def visible(value: Any, longest: int = LONGEST) -> str:
    """Return the text of a value on one line, not too long, and without invisible characters."""
    text = str(value)
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    shown = (c if c.isprintable() else " " if c.isspace() else "�" for c in text)
    return "".join(shown)


def html(value: Any, longest: int = LONGEST) -> Html:
    """Return markup as it is, anything else as text that is safe inside an element or attribute."""
    if isinstance(value, Html):
        return value
    return Html(escape(visible(value, longest), quote=True))


def joined(parts: Iterable[Any]) -> Html:
    """Return markup and texts one after the other."""
    return Html("".join(html(part) for part in parts))


def tag(name: str, *inside: Any, **attributes: Any) -> Html:
    """Return an element; attribute names lose a final ``_``, and any other ``_`` becomes ``-``.

    Examples
    --------
    >>> tag("p", "a < b", class_="note")
    '<p class="note">a &lt; b</p>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html(value)}"' for key, value in attributes.items()
    )
    return Html(f"<{name}{given}>{joined(inside)}</{name}>")


def bullets(items: Iterable[Any]) -> Html:
    """Return a list, or nothing for no items."""
    points = joined(tag("li", item) for item in items)
    return tag("ul", points) if points else Html("")


def table(columns: Sequence[Any], rows: Iterable[Sequence[Any]], caption: Any = "") -> Html:
    """Return a table; every cell is text unless it is markup.

    Examples
    --------
    >>> table(["x"], [["<1>"]]).partition("<tbody>")[2]
    '<tr><td>&lt;1&gt;</td></tr></tbody></table>'
    """
    heads = joined(tag("th", column, scope="col") for column in columns)
    body = joined(tag("tr", *(tag("td", cell) for cell in row)) for row in rows)
    title = tag("caption", caption) if caption else Html("")
    return tag("table", title, tag("thead", tag("tr", heads)), tag("tbody", body))
