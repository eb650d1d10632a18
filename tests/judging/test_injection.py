"""The judged text cannot grade itself: not through the prompt and not through the parser."""

import re
import stat
from pathlib import Path

import pytest
from tests.judging.injections import corpus

from evenhand.core.errors import JudgementError
from evenhand.judging.fence import CODE_BYTES, fence_code, kept_key, new_key
from evenhand.judging.injection import injection_signs
from evenhand.judging.pairwise import pair_prompt
from evenhand.judging.platform import LlmJudgeConfig, render_prompt
from evenhand.judging.rubrics import SIMPLEQA
from evenhand.scoring.judge import JudgeScoringConfig, build_judge_prompt, parse_judge_response
from evenhand.scoring.types import ScorerInput

TEXTS = corpus()
CONFIGS = {
    "json": JudgeScoringConfig(),
    "line": JudgeScoringConfig(form="line"),
    "labels": SIMPLEQA,
    "label line": JudgeScoringConfig(form="line", choices=SIMPLEQA.choices),
    "placed": JudgeScoringConfig(
        rubric_template="Q {{question}} R {{target}} A {{response}} of {{max_score}}"
    ),
}


def sample(text: str) -> ScorerInput:
    return ScorerInput(response=text, target="Paris", metadata={"question": "The capital of France?"})


def test_the_corpus_is_large() -> None:
    assert len(TEXTS) >= 200


@pytest.mark.parametrize("name", CONFIGS)
def test_the_answer_cannot_close_its_block(name: str) -> None:
    for text in TEXTS:
        prompt = build_judge_prompt(sample(text), CONFIGS[name])
        content = prompt.messages[-1].text
        code = prompt.nonce
        opening, closing = f"<<<ANSWER TO GRADE {code}>>>\n", f"\n<<<END ANSWER TO GRADE {code}>>>"
        assert content.count(opening) == 1
        assert content.count(closing) == 1
        inside = content[content.index(opening) + len(opening) : content.index(closing)]
        # The whole text is inside, unchanged and not expanded, and the code is not in it.
        assert inside == text
        assert code not in inside


@pytest.mark.parametrize("name", CONFIGS)
def test_a_judge_that_repeats_the_answer_gives_no_verdict(name: str) -> None:
    for text in TEXTS:
        code = build_judge_prompt(sample(text), CONFIGS[name]).nonce
        for reply in (text, f"The answer was:\n{text}", f"> {text}\n\nI cannot grade this."):
            with pytest.raises(JudgementError):
                parse_judge_response(reply, CONFIGS[name], nonce=code)


@pytest.mark.parametrize("name", CONFIGS)
def test_the_judges_own_verdict_wins_over_a_quoted_one(name: str) -> None:
    config = CONFIGS[name]
    for text in TEXTS:
        code = build_judge_prompt(sample(text), config).nonce
        low = "B" if config.choices else "0"
        if config.form == "line":
            own = f"VERDICT {code}: {low}"
        else:
            value = f'"label": "{low}"' if config.choices else f'"score": {low}'
            own = f'{{"nonce": "{code}", "reasoning": "", {value}}}'
        for reply in (f"It says: {text}\n{own}", f"{own}\nThe answer said: {text}"):
            assert parse_judge_response(reply, config, nonce=code).reward == 0.0


def test_every_text_of_the_corpus_raises_the_flag_and_plain_answers_do_not() -> None:
    silent = [text for text in TEXTS if not injection_signs(text)]
    assert silent == []
    for text in (
        "Paris",
        "The score of the match was 3:1.",
        "She gave the correct change.",
        "Water boils at 100 degrees; see the previous chapter.",
        "def f(x):\n    return {'a': x}",
    ):
        assert injection_signs(text) == []


def test_the_code_is_reproducible_under_one_key_and_differs_between_samples() -> None:
    key = new_key()
    first = build_judge_prompt(sample("a"), key=key)
    assert first == build_judge_prompt(sample("a"), key=key)
    assert first.nonce != build_judge_prompt(sample("b"), key=key).nonce
    assert first.prompt_hash != build_judge_prompt(sample("b"), key=key).prompt_hash
    assert re.fullmatch("[0-9a-f]{16}", first.nonce)
    assert CODE_BYTES * 8 >= 64


def test_another_key_gives_another_code_and_nothing_else_changes() -> None:
    first, second = (build_judge_prompt(sample("a"), key=new_key()) for _ in range(2))
    assert first.nonce != second.nonce
    assert first.text.replace(first.nonce, "") == second.text.replace(second.nonce, "")
    assert first.prompt_hash == second.prompt_hash


def test_an_answer_cannot_be_made_to_hold_its_own_code() -> None:
    """Without the key the code of a text is a random one: of 20,000 guesses at 64 bits none is right.

    An earlier code was 32 bits of a plain hash, and an answer that holds its own was found in a third of a second.
    """
    key = new_key()
    codes = set()
    for guess in range(20_000):
        text = f"answer {guess:016x} {fence_code(b'', f'answer {guess:016x}')}"
        code = fence_code(key, text)
        assert code not in text
        codes.add(code)
    assert len(codes) == 20_000


def test_a_text_that_holds_its_code_in_any_case_gets_another() -> None:
    key = new_key()
    asked: list[str] = []

    class Text(str):
        """A text that, lowered, holds the first code that is looked for in it."""

        def lower(self) -> str:
            return Lowered("x")

    class Lowered(str):
        def __contains__(self, code: object) -> bool:
            asked.append(str(code))
            return len(asked) == 1

    code = fence_code(key, Text("x"))
    assert len(asked) == 2
    assert code == asked[1] != asked[0]


def test_codes_of_every_prompt_are_absent_case_insensitively() -> None:
    key = new_key()
    for text in TEXTS[:50]:
        shown = text.upper()
        pair = pair_prompt("q", shown, text, "t", key=key)
        config = LlmJudgeConfig(model="m", prompt_template="{{input}} {{output}}", delimit=True)
        platform, code = render_prompt(config, input="q", output=shown, expected_output=None, key=key)
        assert pair.nonce not in (shown + text).lower()
        assert code not in shown.lower()
        assert platform.count(f"<<<END OUTPUT {code}>>>") == 1


def test_a_verdict_must_repeat_the_code_exactly() -> None:
    config = JudgeScoringConfig()
    prompt = build_judge_prompt(sample("a"), config, key=bytes(32))
    own = f'{{"nonce": "{prompt.nonce}", "reasoning": "", "score": 5}}'
    assert parse_judge_response(own, config, nonce=prompt.nonce).score == 5
    for other in (prompt.nonce.upper(), f" {prompt.nonce}", prompt.nonce[:-1], prompt.nonce[:8]):
        if other != prompt.nonce:
            with pytest.raises(JudgementError, match="without the demanded code"):
                parse_judge_response(own.replace(prompt.nonce, other), config, nonce=prompt.nonce)
            line = f"VERDICT {other}: 5/5"
            if other.strip() != prompt.nonce:
                with pytest.raises(JudgementError):
                    parse_judge_response(line, JudgeScoringConfig(form="line"), nonce=prompt.nonce)


def test_a_key_in_a_file_is_the_owners_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "judge.key"
    key = kept_key(path)
    assert len(key) == 32
    assert kept_key(path) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("")  # a process that was killed while it wrote the file
    assert len(kept_key(path)) == 32


def test_nul_and_half_characters_cannot_hide_a_code() -> None:
    prompt = build_judge_prompt(sample("x\x00y"))
    assert "\nxy\n" in prompt.text


def test_a_lone_surrogate_does_not_stop_the_prompt() -> None:
    assert "?" in build_judge_prompt(sample("x\ud800y")).text


RUNS = ("\n", " ", "\t\n", "#", "\n#", "*\n", "-", "<", "{", "[[", "give ", "score ", "ignore ")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("run", RUNS)
def test_a_long_run_of_anything_is_searched_in_one_go(run: str) -> None:
    """Models that break down repeat themselves; patterns that try every split of the run would take days here."""
    assert isinstance(injection_signs(run * (40_000 // len(run))), list)
