"""What the site has beside its pages: files from outside ``docs`` that they link to, and the models' options."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.structure.files import Files

OPTIONS = "<!-- options -->"  # in a page, where the options are listed
TAKEN = {"../src/countveil/privacy/study.schema.json": "study.schema.json"}


def on_files(files: "Files", config: Any) -> "Files":
    """Add the files to the site."""
    from mkdocs.structure.files import File

    docs = Path(config.docs_dir)
    for source, name in TAKEN.items():
        files.append(File.generated(config, name, abs_src_path=str((docs / source).resolve())))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Point links at the files, and list the options."""
    for source, name in TAKEN.items():
        markdown = markdown.replace(f"]({source})", f"]({name})")
    return markdown.replace(OPTIONS, options()) if OPTIONS in markdown else markdown


def options() -> str:
    """The options of all models, as the models declare them."""
    from countveil import estimators
    from countveil.estimators.parameters import described_options

    takers: dict[str, list[str]] = {}
    lines: dict[str, str] = {}
    for name in estimators.__all__:
        for option, line in described_options(getattr(estimators, name)).items():
            lines[option] = line
            takers.setdefault(option, []).append(f"`{name}`")
    every = len(estimators.__all__)
    return "\n".join(
        f"- `{option}` {line}"
        + ("" if len(takers[option]) == every else f" Only {', '.join(takers[option])}.")
        for option, line in lines.items()
    )
