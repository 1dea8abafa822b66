"""Files from outside ``docs`` that its pages link to, taken into the site."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

TAKEN = {"../src/countveil/privacy/study.schema.json": "study.schema.json"}


def on_files(files: Files, config: Any) -> Files:
    """Add them to the site."""
    docs = Path(config.docs_dir)
    for source, name in TAKEN.items():
        files.append(File.generated(config, name, abs_src_path=str((docs / source).resolve())))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Point links at them."""
    for source, name in TAKEN.items():
        markdown = markdown.replace(f"]({source})", f"]({name})")
    return markdown
