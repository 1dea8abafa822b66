"""The site: pages in Markdown, a page for each public object, and examples that run when it is built."""

import inspect
import os
import re
import sys
from pathlib import Path
from typing import Any

import countveil

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

from tests.compiled import KERNELS  # noqa: E402

os.environ.setdefault("NUMBA_CACHE_DIR", str(KERNELS))  # the examples run what the tests compiled

project = "countveil"
author = copyright = "the countveil developers"
version = release = countveil.__version__

extensions = [
    "commands",
    "myst_parser",
    "options",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["examples/README.rst"]
templates_path = ["templates"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
autosummary_ignore_module_all = False
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
napoleon_custom_sections = [("Options", "params_style")]
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

sphinx_gallery_conf = {
    "abort_on_example_error": True,
    "capture_repr": (),
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "min_reported_time": 3600,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "parallel": True,  # as many at once as there are jobs
}

html_theme = "pydata_sphinx_theme"
html_title = f"countveil {release}"
html_static_path = ["static", "figures"]
html_css_files = ["site.css"]
html_sidebars = {"index": []}
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": f"countveil {release}"},
    "header_links_before_dropdown": 6,
    "navbar_persistent": ["search-button"],  # its name is its text, unlike that of the field that shows a key
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}


VERSIONS = os.environ.get("COUNTVEIL_DOCS_VERSIONS")
"""The address of a JSON file that lists the versions that are online: [{"version": .., "url": ..}, ..]."""

if VERSIONS:
    html_theme_options |= {
        "switcher": {"json_url": VERSIONS, "version_match": release},
        "check_switcher": False,  # the list may be put online after the pages
        "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
    }


def to_restructured_text(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep bars and names that end in an underscore as they are: reStructuredText takes them for markup."""
    for i, line in enumerate(lines):
        plain = line.split("``")  # every second one is code
        plain[::2] = [re.sub(r"_(?![\w:])", r"\_", part).replace("|", r"\|") for part in plain[::2]]
        lines[i] = "``".join(plain)


def keep_underscores(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep the last underscore of attributes' names, once sections are read."""
    lines[:] = [re.sub(r"^(:(?:ivar|vartype) \w+)_:", r"\1\_:", line) for line in lines]


def is_inherited_from_elsewhere(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what models inherit from scikit-learn."""
    return True if (getattr(obj, "__module__", None) or "").startswith("sklearn") else None


def show_parameters(app: Any) -> None:
    """Let models show their parameters: what their ``__new__`` accepts is anything, to explain errors."""
    public = (getattr(countveil, name) for name in countveil.__all__)
    classes = {base for each in public if inspect.isclass(each) for base in each.__mro__}
    models = [each for each in classes if "given" in getattr(each.__new__, "__annotations__", {})]
    for each, signature in [(each, inspect.signature(each)) for each in models]:
        each.__signature__ = signature


def setup(app: Any) -> dict[str, bool]:
    """Connect them, the first before sections are read. Pages may be read and written by several processes."""
    app.connect("builder-inited", show_parameters)
    app.connect("autodoc-process-docstring", to_restructured_text, priority=400)
    app.connect("autodoc-process-docstring", keep_underscores, priority=600)
    app.connect("autodoc-skip-member", is_inherited_from_elsewhere)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
