"""Check that every internal link of a built site leads to a page and to an anchor on it.

python check_links.py FOLDER
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag leads to, and what leads to it."""
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def faults(folder: Path) -> list[str]:
    """Return a line for each link that leads nowhere."""
    paths = sorted(path for path in folder.rglob("*.html") if "_static" not in path.parts)
    pages = {path.resolve(): Page(path) for path in paths}
    found = []
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue  # other sites are not asked
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            anchor = unquote(parts.fragment)
            if not target.exists():
                found.append(f"{path.relative_to(folder.resolve())}: {link} does not exist")
            elif target in pages and anchor not in pages[target].anchors:
                found.append(f"{path.relative_to(folder.resolve())}: {link} has no such anchor")
    return found


if __name__ == "__main__":
    lines = faults(Path(sys.argv[1]))
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.exit(bool(lines))
