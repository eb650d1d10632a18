"""A self-contained HTML report: no script, no network, light and dark, narrow and wide."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from evenhand.plots.svg import safe

Tone = Literal["good", "bad", "warn", "plain"]


class Paragraph(Struct, frozen=True):
    """Plain text."""

    text: str


class Badge(Struct, frozen=True):
    """A short verdict in a coloured box; the words carry the meaning, the colour only helps."""

    text: str
    tone: Tone = "plain"


class Table(Struct, frozen=True):
    """Rows of text under a head. Columns named in `numeric` are aligned to the right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: Sequence[str] = ()
    caption: str = ""


class Figure(Struct, frozen=True):
    """A picture made by this package; it is put in as it is."""

    svg: str
    caption: str = ""


class Preformatted(Struct, frozen=True):
    """Text whose line breaks matter: an answer, a reply, a program."""

    text: str
    caption: str = ""


class Details(Struct, frozen=True):
    """Parts behind a line that opens on a click."""

    summary: str
    parts: Sequence["Part"]


class Columns(Struct, frozen=True):
    """Parts side by side; one below the other where the screen is narrow."""

    parts: Sequence["Part"]


Part = Paragraph | Badge | Table | Figure | Preformatted | Details | Columns


class Section(Struct, frozen=True):
    """A heading with its parts."""

    heading: str
    parts: Sequence[Part]


# A report can be opened from disk or served: it asks for nothing and runs nothing.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

STYLE = """
:root{color-scheme:light dark;--ink:#1f2328;--faint:#59636e;--grid:#d8dee4;--back:#fff;--soft:#f6f8fa;
--good:#1a7f37;--bad:#cf222e;--warn:#8a5a00}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--faint:#9198a1;--grid:#3d444d;--back:#0d1117;
--soft:#161b22;--good:#3fb950;--bad:#f85149;--warn:#d29922}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:64rem;padding:1.5rem 1rem 4rem;font:16px/1.5 system-ui,sans-serif;
color:var(--ink);background:var(--back)}
h1{font-size:1.6rem;line-height:1.25;margin:.2rem 0 1rem}
h2{font-size:1.15rem;margin:2rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--grid)}
p{margin:.5rem 0;max-width:46rem}
.wide{overflow-x:auto}
table{border-collapse:collapse;margin:.6rem 0;font-size:.92rem}
caption{text-align:left;color:var(--faint);padding-bottom:.3rem}
th,td{padding:.3rem .7rem;border-bottom:1px solid var(--grid);text-align:left;vertical-align:top;
overflow-wrap:break-word;min-width:4rem}
th{background:var(--soft);font-weight:600}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
figure{margin:1rem 0;overflow-x:auto}
figure svg{max-width:100%;height:auto}
.columns{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,20rem),1fr));gap:0 1rem}
.columns>*{min-width:0}
figcaption{color:var(--faint);font-size:.9rem}
pre{background:var(--soft);padding:.7rem;border-radius:.4rem;white-space:pre-wrap;overflow-wrap:anywhere;
font-size:.85rem;max-height:24rem;overflow:auto}
details{margin:.5rem 0;border:1px solid var(--grid);border-radius:.4rem;padding:.3rem .7rem}
summary{cursor:pointer}
.badge{display:inline-block;font-weight:600;padding:.25rem .8rem;border-radius:.4rem;border:2px solid currentColor;
margin:.2rem 0}
.good{color:var(--good)}.bad{color:var(--bad)}.warn{color:var(--warn)}
footer{margin-top:3rem;color:var(--faint);font-size:.85rem}
"""


def document(title: str, sections: Sequence[Section], *, footer: str = "Made by Evenhand") -> str:
    """The whole page. Every text is escaped; only pictures of this package go in as they are."""
    body = "".join(_section(section) for section in sections)
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>{safe(title)}</title><style>{STYLE}</style></head>\n"
        f"<body><main><h1>{safe(title)}</h1>\n{body}</main><footer>{safe(footer)}</footer></body></html>\n"
    )


def _section(section: Section) -> str:
    heading = f"<h2>{safe(section.heading)}</h2>" if section.heading else ""
    return f"<section>{heading}{''.join(_part(part) for part in section.parts)}</section>\n"


def _part(part: Part) -> str:
    match part:
        case Paragraph(text=text):
            return f"<p>{safe(text)}</p>"
        case Badge(text=text, tone=tone):
            return f"<p><span class='badge {tone}'>{safe(text)}</span></p>"
        case Table():
            return _table(part)
        case Figure(svg=picture, caption=caption):
            words = f"<figcaption>{safe(caption)}</figcaption>" if caption else ""
            return f"<figure tabindex='0'>{picture}{words}</figure>"
        case Preformatted(text=text, caption=caption):
            words = f"<p>{safe(caption)}</p>" if caption else ""
            return f"{words}<pre>{safe(text)}</pre>"
        case Columns(parts=parts):
            columns = "".join(f"<div>{_part(one)}</div>" for one in parts)
            return f"<div class='columns'>{columns}</div>"
        case Details(summary=summary, parts=parts):
            return (
                f"<details><summary>{safe(summary)}</summary>{''.join(_part(one) for one in parts)}</details>"
            )


def _table(table: Table) -> str:
    marks = [" class='number'" if column in table.numeric else "" for column in table.columns]
    head = "".join(
        f"<th scope='col'{mark}>{safe(column)}</th>"
        for mark, column in zip(marks, table.columns, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(f"<td{mark}>{safe(cell)}</td>" for mark, cell in zip(marks, row, strict=True))
        + "</tr>"
        for row in table.rows
    )
    caption = f"<caption>{safe(table.caption)}</caption>" if table.caption else ""
    return f"<div class='wide' tabindex='0'><table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
