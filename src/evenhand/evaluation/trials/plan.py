"""Which trials there are, and in which order they run."""

import hashlib
import random
import re
from collections.abc import Container

from msgspec import Struct

from evenhand.evaluation.trials.suite import Arm, Choice, Task


class Key(Struct, frozen=True, order=True):
    """What identifies a trial."""

    task: str
    arm: str
    repeat: int

    @property
    def folder(self) -> str:
        """A relative path of its own: readable, and different for different trials."""
        return f"{_folder_name(self.task)}/{_folder_name(self.arm)}/{self.repeat}"


class Trial(Struct, frozen=True, kw_only=True):
    """One run to make."""

    key: Key
    task: Task
    arm: Arm


def planned(choice: Choice, *, seed: int, finished: Container[Key] = ()) -> list[Trial]:
    """The trials that are still to run, in random blocks.

    A block is one repeat of one task, tried by every arm one after the other in random order: whatever changes with the
    time of day hits all arms alike, and a pair that is compared ran close together.
    """
    rng = random.Random(seed)
    blocks = [(task, repeat) for task in choice.tasks for repeat in range(1, choice.repeats + 1)]
    rng.shuffle(blocks)
    trials = []
    for task, repeat in blocks:
        arms = list(choice.arms)
        rng.shuffle(arms)
        for arm in arms:
            key = Key(task.id, arm.name, repeat)
            if key not in finished:
                trials.append(Trial(key=key, task=task, arm=arm))
    return trials


def _folder_name(name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:60]
    if plain == name:
        return name
    return f"{plain or 'x'}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
