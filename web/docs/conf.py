"""Settings of the documentation: Sphinx reads Markdown, and the package for its
reference.

`make docs` runs it on build/docs/source, which `_tools/prepare.py` lays out.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = Path(os.environ["DOCS_ROOT"])  # of the repository: this file is a copy
sys.path[:0] = [str(ROOT / "py"), str(ROOT / "web" / "docs" / "_tools")]
sys.path[:0] = [str(folder) for folder in (ROOT / "packages").glob("*/py")]

from repository import home

import dlpack_web

project = "dlpack-web"
author = "the dlpack-web project"
version = release = dlpack_web.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
extensions += ["blocks", "from_docstrings", "roles", "search_index"]  # of _tools
exclude_patterns = ["CONVENTIONS.md", "_*"]
root_doc = "index"
language = "en"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 6
highlight_language = "none"
default_role = "code"  # `x` in docstrings

nitpicky = True
# Foreign names have no page here, and no requests go to other hosts.
nitpick_ignore_regex = [(r"py:.*", r"(?!dlpack_web\.).*")]
# TypeDoc's member headings are deeper than the levels that get anchors.
suppress_warnings = ["myst.header"]

napoleon_google_docstring = False
napoleon_preprocess_types = True
# Several classes have an attribute of that name.
napoleon_type_aliases = {"dtype": ":class:`dtype <dlpack_web.DType>`"}
autodoc_mock_imports = ["anywidget"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
add_module_names = False

html_theme = "furo"
html_title = "dlpack-web"
html_favicon = "_static/icon.svg"
html_static_path = ["_static"]
templates_path = ["_templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "site-links.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_context = {"source": home()}
html_additional_pages = {"search": "search.html"}
html_css_files = ["docs.css"]
html_js_files = [
    ("run/page.mjs", {"type": "module"}),
    ("search-form.mjs", {"type": "module"}),
    ("copy.mjs", {"type": "module"}),
]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_permalinks_icon = "#"


def colours(
    accent: str, ground: str, raised: str, line: str, text: str
) -> dict[str, str]:
    """Furo's variables with the colours and letters of web/site/style.css."""
    names = ["brand-primary", "brand-content", "brand-visited"]
    return dict.fromkeys((f"color-{name}" for name in names), accent) | {
        "color-background-primary": ground,
        "color-background-secondary": raised,
        "color-background-border": line,
        "color-foreground-primary": text,
        "font-stack": 'system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif',
    }


html_theme_options = {
    "light_css_variables": colours(
        "#0b6e69", "#fbfaf7", "#ffffff", "#dedbd2", "#1d2125"
    ),
    "dark_css_variables": colours(
        "#4cc5bb", "#14171a", "#1c2126", "#323940", "#e7e9ea"
    ),
}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
