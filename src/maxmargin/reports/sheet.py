"""How a report looks: on a screen of any width, light or dark, and on paper."""

SHEET = """
:root { --paper: #ffffff; --ink: #1c1f23; --soft: #5a6169; --line: #d5dae0; --shade: #f4f6f8;
  --link: #0060a0; --good: #00694c; --open: #a34700; }
DARK
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; padding: 1rem; max-width: 60rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0.5rem 0; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 0.5rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.2rem 0 0.3rem; }
a { color: var(--link); }
nav ol { columns: 2; padding-left: 1.5rem; margin: 0.5rem 0; }
.scroll { overflow-x: auto; max-width: 100%; margin: 0.8rem 0; }
.scroll:focus-visible { outline: 2px solid var(--link); }
table { border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding: 0.2rem 0; max-width: calc(100vw - 2rem);
  position: sticky; left: 0; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.7rem 0.25rem 0;
  border-bottom: 1px solid var(--line); unicode-bidi: isolate; min-width: 3.5rem;
  max-width: 24rem; }
pre { background: var(--shade); padding: 0.7rem; margin: 0; font-size: 0.85rem; }
pre code { white-space: pre-wrap; }
figure { margin: 1rem 0; min-width: 0; }
img { max-width: 100%; height: auto; }
.wide picture { display: block; overflow-x: auto; }
.wide img { min-width: 36rem; }
figcaption, .missing, footer { color: var(--soft); font-size: 0.9rem; }
.missing { border-left: 3px solid var(--open); padding-left: 0.7rem; }
.verdict { font-size: 1.1rem; border-left: 4px solid var(--open); padding: 0.3rem 0 0.3rem 0.8rem;
  background: var(--shade); }
.proved { border-color: var(--good); }
#pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr));
  gap: 0 1.5rem; align-items: start; }
#pictures h2, #pictures .wide { grid-column: 1 / -1; }
@media (max-width: 30rem) { nav ol { columns: 1; } body { padding: 0.7rem; } }
@media print {
  :root { --paper: #ffffff; --ink: #000000; --soft: #333333; --line: #999999; --shade: #ffffff; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; }
  .scroll, .wide picture { overflow: visible; }
  .wide img { min-width: 0; }
  td, th { max-width: none; }
  figure, tr, .verdict { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
}
"""

_DARK = """:root { --paper: #15181c; --ink: #e8e8e8; --soft: #a9b0b7; --line: #3a4046;
  --shade: #1e2227; --link: #7cc4f5; --good: #3fcf9f; --open: #f0a060; }"""


def sheet(theme: str) -> str:
    """Return the style sheet for "light", "dark", or "auto": as the reader's system has it."""
    dark = {
        "light": ":root { color-scheme: light; }",
        "dark": f":root {{ color-scheme: dark; }} {_DARK}",
        "auto": f":root {{ color-scheme: light dark; }}\n"
        f"@media (prefers-color-scheme: dark) {{ {_DARK} }}",
    }
    return SHEET.replace("DARK", dark[theme])
