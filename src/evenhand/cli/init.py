"""`evenhand init`: a first suite that runs as it is."""

from pathlib import Path

import click

from evenhand.core.errors import OptionError, OutputError
from evenhand.core.terminal import printable

FILES = ("evenhand.yaml", "questions.csv")


@click.command(
    epilog="""\b
Examples:
  evenhand init                      evenhand.yaml and questions.csv in this folder
  evenhand init my-suite             the same in a new folder
  evenhand eval run evenhand.yaml    run it: against a mock model, until you name yours"""
)
@click.argument("folder", required=False, type=click.Path(file_okay=False, path_type=Path), default=Path())
def command(folder: Path) -> None:
    """Write a commented evenhand.yaml and a few questions; existing files are not overwritten."""
    there = [name for name in FILES if (folder / name).exists() or (folder / name).is_symlink()]
    if there:
        raise OptionError(f"{folder / there[0]} already exists; init does not overwrite files")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (("questions.csv", questions()), ("evenhand.yaml", SUITE)):
            with (folder / name).open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written: {error.strerror}") from None
    shown = "" if folder == Path() else printable(f"{folder}/")
    click.echo(f"Wrote {shown}evenhand.yaml and {shown}questions.csv. Run it with:")
    click.echo(f"  evenhand eval run {shown}evenhand.yaml")


def questions() -> str:
    """Rows of sums: enough of them for a verdict."""
    lines = [
        f"What is {a} + {b}?,{a + b},{'easy' if a + b < 10 else 'hard'}"
        for a in range(1, 13)
        for b in range(1, 11)
    ]
    return "\n".join(["question,expected,category", *lines]) + "\n"


SUITE = """\
# A suite: every prompt × every model × every row, measured by every scorer. Run it with
#     evenhand eval run evenhand.yaml
# It runs as it is, against a mock model. Everything it can say: docs/suites.md.

# The rows: a file beside this one (CSV, JSONL, Parquet), or a list:
#   data:
#     - {question: "What is 2 + 2?", expected: 4}
#     - {question: Say hello., scorers: [{contains: {case_sensitive: false}}], expected: hello}
data: questions.csv

# {question} is a column of the rows; write {{ and }} for braces. A prompt may also be a list of messages:
#   chat:
#     - {role: system, content: You are a calculator.}
#     - {role: user, content: "{question}"}
prompts:
  plain: "{question} Answer with the number alone."

# Your models: openai/gpt-4o-mini, anthropic/claude-sonnet-4-5, ollama/llama3, ... or an address:
#   local: {url: "http://127.0.0.1:8000/v1", id: my-model, key: MY_KEY}     (key: the NAME of a variable)
# The mock knows the expected answers and gives them on this share of the rows.
models:
  today: {mock: {right: 0.8}}
  tomorrow: {mock: {right: 0.95}}

# The first one leads. List them: evenhand score --list
scorers: [exact_match]

# A model that judges, with a rubric in words, adds a column:
#   judge: {model: openai/gpt-4o, rubric: "Is the answer polite and right?"}

# Every other variant is held against this one: is a drop of more than the margin ruled out?
baseline: today
margin: 0.05

# Leave out pairs of prompt and model, or add some:
#   matrix:
#     exclude: [{prompt: plain, model: tomorrow}]
#     include: [{name: warm, prompt: plain, model: tomorrow, temperature: 1}]
"""
