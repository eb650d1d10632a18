"""`NAME[:option=value[,option=value]]` on the command line, and `FILE.py:FUNCTION` for scorers of one's own."""

import re
from pathlib import Path

from evenhand.cli.user_code import load_name
from evenhand.core.errors import InputError, MissingFile, OptionError
from evenhand.scoring.apply import check_options
from evenhand.scoring.definition import Scorer
from evenhand.scoring.functions import make_scorer
from evenhand.scoring.registry import get_scorer

MAX_FILE = 1_000_000
"""How large a file given as `option=@file` may be."""


def parse_scorer(text: str) -> Scorer:
    """The configured scorer; `OptionError` with a sentence for everything that is wrong with it."""
    name, _, rest = text.partition(":")
    if name.endswith(".py"):
        function, _, rest = rest.partition(":")
        found = _from_file(Path(name), function)
    else:
        found = get_scorer(name)
    configured = found.configure_from_text(_options(found, rest)) if rest else found
    if configured.missing:
        needed = ", ".join(f"{option}=..." for option in configured.missing)
        raise OptionError(f"scorer '{found.name}' needs an option: --scorer {name}:{needed}")
    check_options(configured)
    return configured


def _options(scorer: Scorer, text: str) -> dict[str, str]:
    # A comma ends a value only where the next option begins, so that patterns and JSON can have commas.
    known = "|".join(map(re.escape, scorer.options)) or r"\w+"
    values: dict[str, str] = {}
    for part in re.split(rf",(?=(?:{known})=)", text):
        option, equals, value = part.partition("=")
        if not equals:
            raise OptionError(f"scorer '{scorer.name}': expected option=value, found '{part}'")
        if option in values:
            raise OptionError(f"scorer '{scorer.name}': option '{option}' is given twice")
        values[option] = _value(value)
    return values


def _value(text: str) -> str:
    """`@FILE` is what the file holds, `@@...` a text that begins with an @."""
    if text.startswith("@@"):
        return text[1:]
    return _read(Path(text[1:])) if text.startswith("@") else text


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_FILE:
            raise InputError(f"the file is larger than {MAX_FILE:,} bytes", path=path)
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise MissingFile(error.strerror or str(error), path=path) from None
    except UnicodeDecodeError:
        raise InputError("the file is not UTF-8 text", path=path) from None


def _from_file(path: Path, function: str) -> Scorer:
    if not function:
        raise OptionError(f"say which scorer of the file: --scorer {path}:NAME")
    found = load_name(f"{path}:{function}", "--scorer")
    # A benchmark is asked for its scorer; a plain function is given input, output, expected, metadata by name.
    return make_scorer(found, name=None if isinstance(getattr(found, "scorer", found), Scorer) else function)
