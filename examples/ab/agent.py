"""A stand-in for an agent: slow or quick, skilled or not, and honest about what it used.

It mends the one file that the prompt is about. Whether it succeeds, and what it claims to have used, follow from the
task, the arm and the repeat alone, so that two runs of the suite give the same records but for times.
"""

import argparse
import hashlib
import json
import os
import time
from pathlib import Path

SOLUTIONS = {
    "calc.py": "def add(a, b):\n    return a + b\n",
    "greeting.txt": "Hello, world\n",
    "numbers.txt": "1\n2\n3\n5\n8\n",
}


def draw(*words: object) -> float:
    """A number from 0 to 1 that depends on the words only."""
    digest = hashlib.sha256("/".join(map(str, words)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--skill", type=float, required=True, help="how often it succeeds")
    parser.add_argument("--seconds", type=float, required=True, help="how long it takes")
    parser.add_argument("--tokens", type=int, required=True, help="about how many tokens it claims")
    parser.add_argument("prompt_file", type=Path)
    parser.add_argument("usage_file", type=Path)
    options = parser.parse_args()
    run = (os.environ["EVENHAND_TASK_ID"], os.environ["EVENHAND_ARM"], os.environ["EVENHAND_REPEAT"])

    prompt = options.prompt_file.read_text()
    name = next(name for name in SOLUTIONS if name in prompt)
    time.sleep(options.seconds * (0.8 + 0.4 * draw(*run, "pace")))
    if draw(*run, "infrastructure") < 0.03:
        raise SystemExit(86)
    if draw(*run, "skill") < options.skill:
        Path(name).write_text(SOLUTIONS[name])
    tokens = int(options.tokens * (0.8 + 0.4 * draw(*run, "tokens")))
    usage = {
        "cost": round(tokens * 3e-6, 6),
        "tokens": {
            "input": tokens * 4 // 5,
            "output": tokens // 5,
            "cache_read": tokens * 3,
            "cache_write": 0,
        },
        "steps": 2 + int(6 * draw(*run, "steps")),
    }
    options.usage_file.write_text(json.dumps(usage))
    print(f"worked on {name}")


if __name__ == "__main__":
    main()
