"""How the site is built: ``./docs/build`` (see docs/develop/documentation.md)."""

import os
import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS / "_extensions"), str(DOCS.parent / "tools")]

import gallery_pages  # noqa: E402
import public_names  # noqa: E402

import maxmargin  # noqa: E402

QUICK = os.environ.get("MAXMARGIN_DOCS_QUICK") == "1"  # run neither examples nor notebooks

project = "maxmargin"
author = "The maxmargin developers"
copyright = author
version = release = maxmargin.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "gallery_pages",
    "mathml",
    "public_names",
]
templates_path = ["_templates"]
exclude_patterns = [
    "_build",
    "_extensions",
    "_templates",
    "gallery/**/*.ipynb",
    "gallery/**/*.py",
    "gallery/**/*.json",
    "gallery/sg_execution_times.rst",
]
root_doc = "index"
pygments_style = "a11y-high-contrast-light"
nitpicky = True

# Pages: Markdown, with formulas between dollars.
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

# Notebooks are run when the site is built; an error in one of them is an error of the build.
nb_execution_mode = "off" if QUICK else "cache"
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_merge_streams = True
suppress_warnings = ["myst-nb.lexer"] if QUICK else []  # the language is known from running

# Reference: a page for each public name.
autosummary_generate = True
autosummary_context = {"members_of": public_names.Members()}
autodoc_typehints = "none"  # docstrings say what is expected
autodoc_inherit_docstrings = True
numpydoc_show_class_members = False  # the template lists them
numpydoc_xref_param_type = False

# The site has no network to look other projects up in, so their names stay unlinked.
nitpick_ignore_regex = [(r"py:.*", r"(sklearn|numpy|scipy|matplotlib|pandas|dask)\..*")]

sphinx_gallery_conf = gallery_pages.configuration(run=not QUICK)

html_title = "maxmargin"
html_logo = html_favicon = "_static/logo.svg"
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_context = {"default_mode": "auto"}  # light or dark as the reader's system is
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # a page that is opened as a file may not read other files
html_theme_options = {
    "logo": {"text": "maxmargin", "alt_text": "maxmargin - Home"},
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "show_nav_level": 1,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "use_edit_page_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": [], "get-started": [], "search": []}
