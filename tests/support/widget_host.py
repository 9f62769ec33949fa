"""A page that shows a widget as Jupyter would, for tests in a browser without a notebook.

It implements what the widget's module uses of the AFM protocol: ``model.get``, ``on``, ``off`` and
``send``. What the page sends waits in ``window.sent`` for ``Comm.pump``, and ``window.deliver``
takes replies.
"""

import json
import threading
from collections.abc import Callable
from typing import Any

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>A widget</title>
<style>{css}</style>
<div id="cell"></div>
<script type="module">
const state = {state};
const listeners = new Set();
const model = {{
  get: (name) => structuredClone(state[name]),
  set: (name, value) => {{ state[name] = value; }},
  save_changes: () => {{}},
  on: (name, listener) => name === "msg:custom" && listeners.add(listener),
  off: (name, listener) => listeners.delete(listener),
  send: (content) => window.sent.push(structuredClone(content)),
}};
window.sent = [];
window.deliver = (reply) => listeners.forEach((listener) => listener(reply, []));
const url = URL.createObjectURL(new Blob([{module}], {{ type: "text/javascript" }}));
const {{ default: widget }} = await import(url);
const context = {{ model, el: document.getElementById("cell") }};
await widget.initialize?.(context);
window.leave = await widget.render(context);
</script>
</html>
"""


def host_page(widget: Any) -> str:
    """Return a page that shows a widget: ``mm.Studio(X, y).widget``."""
    return _PAGE.format(
        css=widget._css,
        state=_in_script({"state": widget.state}),
        module=_in_script(widget._esm),
    )


def _in_script(value: Any) -> str:
    return json.dumps(value).replace("</", "<\\/")


class Comm:
    """Carries messages between a widget in Python and its page.

    Parameters
    ----------
    widget : anywidget.AnyWidget
        Its ``send`` is replaced.
    evaluate : callable
        Returns what an expression is in the page.
    """

    def __init__(self, widget: Any, evaluate: Callable[[str], Any]) -> None:
        self._widget, self._evaluate = widget, evaluate
        self._replies: list[Any] = []
        self._lock = threading.Lock()
        widget.send = self._keep

    def _keep(self, reply: Any, buffers: Any = None) -> None:
        with self._lock:
            self._replies.append(reply)

    def pump(self) -> None:
        """Give the page's messages to the widget, and the replies that are there to the page."""
        for content in self._evaluate("window.sent?.splice(0) ?? []"):
            self._widget._handle_custom_msg(content, [])
        with self._lock:
            replies, self._replies = self._replies, []
        for reply in replies:
            self._evaluate(f"window.deliver({json.dumps(reply, allow_nan=False)}); 0")
