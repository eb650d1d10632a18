"""Models by name, with providers of one's own."""

from pathlib import Path

import pytest

from evenhand.core.errors import InputError, OptionError, UnknownName
from evenhand.core.secret import Secret
from evenhand.evaluation.model_names import locate
from evenhand.models.config import origin
from evenhand.models.providers import PROVIDERS, find_model, read_providers


def test_every_shipped_provider_has_a_usable_address() -> None:
    assert {"openai", "anthropic", "gemini", "mistral", "groq", "together", "openrouter"} <= set(PROVIDERS)
    for name, provider in PROVIDERS.items():
        assert origin(provider.url.replace("{endpoint}", "https://mine.example"))
        # Keys go over TLS; what has no key is on this machine.
        assert provider.url.startswith(("https://", "{endpoint}")) == (provider.key_variable is not None), (
            name
        )


def test_a_name_is_a_provider_and_an_id_that_may_have_slashes() -> None:
    assert find_model("openrouter/meta-llama/llama-3", PROVIDERS).id == "meta-llama/llama-3"
    for bad in ("gpt-4o", "openai/", "/gpt-4o", ""):
        with pytest.raises(OptionError, match="names no model"):
            find_model(bad, PROVIDERS)
    with pytest.raises(UnknownName, match="did you mean openai"):
        find_model("openaj/gpt-4o", PROVIDERS)


def test_ones_own_providers_are_added_and_win(tmp_path: Path) -> None:
    file = tmp_path / "providers.toml"
    assert read_providers(file) == PROVIDERS
    file.write_text(
        '[work]\nurl = "https://models.example.com/v1"\nkey_variable = "WORK_KEY"\n'
        '[ollama]\nurl = "http://gpu-box:11434/v1"\n'
    )
    found = read_providers(file)
    assert found["work"].key_variable == "WORK_KEY"
    assert found["ollama"].url == "http://gpu-box:11434/v1"
    assert found["openai"] == PROVIDERS["openai"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[work", "not TOML"),
        ("[work]\n", "url"),
        ('[work]\nurl = "ftp://x"\n', "not an http or https address"),
        ('[work]\nurl = "https://me:secret@x/v1"\n', "user name or password"),
        ('[work]\nurl = "https://x/v1"\nkey = "sk-1"\n', "key"),
        ('[work]\nurl = "https://x/v1"\ndialect = "cohere"\n', "dialect"),
    ],
)
def test_bad_files_say_what_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "providers.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=words):
        read_providers(file)


def test_keys_go_to_their_own_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "GROQ_API_KEY", "EVENHAND_API_KEY", "AZURE_OPENAI_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("EVENHAND_PROVIDERS", str(tmp_path / "none.toml"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    found = locate("openai/gpt-4o")
    assert (found.url, found.id, found.dialect) == ("https://api.openai.com/v1", "gpt-4o", "openai")
    assert found.api_key is not None
    assert found.api_key.reveal() == "sk-openai"
    with pytest.raises(OptionError, match="set GROQ_API_KEY or EVENHAND_API_KEY"):
        locate("groq/llama")
    given = locate("groq/llama", api_key=Secret("gsk"))
    assert given.api_key is not None
    assert given.api_key.reveal() == "gsk"
    assert locate("ollama/llama3").api_key is None
    with pytest.raises(OptionError, match="set AZURE_OPENAI_ENDPOINT"):
        locate("azure/mine", api_key=Secret("k"))
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com/")
    assert locate("azure/mine", api_key=Secret("k")).url == "https://mine.openai.azure.com/openai/v1"
