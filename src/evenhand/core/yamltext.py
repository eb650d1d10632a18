"""YAML in: plain values only, and no key twice."""

from typing import Any

import yaml

_MERGE = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """Refuses a mapping that names a key twice: PyYAML keeps the last value and says nothing."""

    def compose_mapping_node(self, anchor: Any) -> Any:
        # Looked at here, since merging (`<<`) may later add keys that the mapping itself overrides.
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                continue
            if (key.tag, key.value) in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"duplicate key '{key.value[:100]}'", problem_mark=key.start_mark
                )
            seen.add((key.tag, key.value))
        return node


def load(text: str | bytes) -> Any:
    """The value that `text` stands for; `yaml.YAMLError` with its place when there is none."""
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()
