"""Markdown as spans: pieces of text with a style. There is no HTML, so nothing can be run."""

from collections.abc import Sequence

try:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
except ImportError:
    raise ImportError(
        "lessons need the package markdown-it-py: pip install markdown-it-py"
    ) from None

Spans = list[dict[str, str | None]]

MARKDOWN = MarkdownIt("zero").enable(
    ["heading", "list", "fence", "code", "emphasis", "backticks", "escape", "link", "newline"]
)


def read_spans(text: str) -> Spans:
    """Return text in pieces, with the style of each: "em", "strong", "code" or None."""
    return list_spans(MARKDOWN.parseInline(text)[0].children or [])


def list_spans(tokens: Sequence[Token]) -> Spans:
    """Return the tokens of a line of text as spans; links are shown as text."""
    spans: Spans = []
    styles: list[str] = []
    targets: list[str] = []
    for token in tokens:
        text, style = token.content, styles[-1] if styles else None
        if token.type in ("em_open", "strong_open"):
            styles.append(token.type.removesuffix("_open"))
        elif token.type in ("em_close", "strong_close"):
            styles.pop()
        elif token.type == "link_open":
            targets.append(str(token.attrs["href"]))
        elif token.type == "link_close" and (target := targets.pop()):
            text = f" ({target})"
        elif token.type == "softbreak":
            text = " "
        elif token.type == "code_inline":
            style = "code"
        if text and spans and spans[-1]["style"] == style:
            spans[-1]["text"] = f"{spans[-1]['text']}{text}"
        elif text:
            spans.append({"text": text, "style": style})
    return spans


def plain_text(text: str) -> str:
    """Return a text without marks of emphasis."""
    return "".join(str(span["text"]) for span in read_spans(text))
