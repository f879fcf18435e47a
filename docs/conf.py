"""The site of these pages: `make site` writes it to build/site, and fails for a link that leads nowhere."""

project = "sweepscope"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
autodoc_typehints = "description"
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "sweepscope"
html_extra_path = ["llms.txt"]
exclude_patterns = ["notebook.ipynb"]
# SQL with parameters and shells with placeholders are no code that a highlighter knows.
suppress_warnings = ["misc.highlighting_failure"]
