"""From components to HTML: the Jinja2 environment, the stylesheet, and whole report files."""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files

from jinja2 import BaseLoader, ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from evenhand.plots.svg import without_forbidden
from evenhand.reports.components import Column, Section

PACKAGE = "evenhand.reports"
FOOTER = "Made by Evenhand"


def environment(*loaders: BaseLoader) -> Environment:
    """Templates of this package, and of `loaders` before them: every text is escaped, a missing name is an error."""
    made = Environment(
        loader=ChoiceLoader([*loaders, PackageLoader(PACKAGE)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_clean,
    )
    made.filters["picture"] = Markup
    made.filters["kind"] = lambda part: type(part).__name__
    made.filters["columns"] = _columns
    return made


@cache
def stylesheet() -> str:
    """The one stylesheet, for report files and pages."""
    return _static("evenhand.css")


@cache
def _static(name: str) -> str:
    return files(PACKAGE).joinpath("static", name).read_text(encoding="utf-8")


def document(
    title: str,
    sections: Sequence[Section],
    *,
    crumb: str = "",
    facts: Sequence[str] = (),
    footer: str = FOOTER,
) -> str:
    """A report file as one text: see `document_parts`."""
    return "".join(document_parts(title, sections, crumb=crumb, facts=facts, footer=footer))


def document_parts(
    title: str,
    sections: Sequence[Section],
    *,
    crumb: str = "",
    facts: Sequence[str] = (),
    footer: str = FOOTER,
    data: Iterable[str] = (),
    script: str = "",
) -> Iterator[str]:
    """The parts of a self-contained report file, one after the other: it asks for nothing and opens from disk.

    `crumb` says what kind of report it is, `facts` are short words under the title. It runs nothing but `script`, one of
    this package's files; `data` are JSON texts for it, escaped by `samples.in_script`.
    """
    style, program = stylesheet(), _static(script) if script else ""
    values = {
        "title": title,
        "sections": sections,
        "crumb": crumb,
        "facts": facts,
        "footer": footer,
        "style": Markup(style),  # noqa: S704  our own file
        "policy": _policy(style, program),
        "data": data,
        "script": Markup(program),  # noqa: S704  our own file
    }
    return _environment().get_template("document.html").generate(values)


def warm_up() -> None:
    """Compile the templates of a report file ahead of its first use: that takes as long as some hundred answers."""
    for name in ("components.html", "document.html"):
        _environment().get_template(name)


@cache
def _environment() -> Environment:
    return environment()


@cache
def _policy(style: str, program: str) -> str:
    # The digests allow this one <style> element and this one <script>, and nothing else: no `style` attribute, no other
    # script, no request. The script may not turn text into HTML either.
    found = f"default-src 'none'; style-src '{_digest(style)}'; img-src data:; base-uri 'none'; form-action 'none'"
    if not program:
        return found
    return (
        f"{found}; script-src '{_digest(program)}'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _columns(given: Sequence[Column | str]) -> list[Column]:
    return [Column(one) if isinstance(one, str) else one for one in given]


def _clean(value: object) -> object:
    return without_forbidden(value) if type(value) is str else value
