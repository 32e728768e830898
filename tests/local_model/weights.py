"""Weights that make a real server behave like an agent's model: noise with a few features.

- Tools are offered and none has answered: it calls one; the server's grammar completes a valid call.
- A tool has answered, or none is offered: it writes some letters and ends.
- A JSON Schema is requested: its strings are short, because quotes and brackets are likely.

The bytes are the same on every machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import gguf
import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]

WIDTH: Final = 64
HIDDEN: Final = 128
HEADS: Final = 4
PER_HEAD: Final = WIDTH // HEADS
CONTEXT: Final = 32_768

CONSTANT, TOOL_ANSWERED, TOOLS_OFFERED, IS_ANSWER, IS_OFFER, IS_NEWLINE, IS_CALL = range(7)
"""Dimensions of the residual stream with a meaning; all others contain noise."""
WIRED: Final = 7

NEVER: Final = -40.0
NEWLINE: Final = "<0x0A>"
CHARACTERS: Final = {'"': 2.5, "}": 2.5, "]": 2.5, " ": -1.5, "{": -4.0, "[": -4.0, "\\": NEVER}
"""Likelihood of some characters, as a bias of their logit."""

TEMPLATE: Final = """\
{%- if tools %}{{ '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' %}{{ messages[0].content + '\\n\\n' }}{% endif %}
{{- '<tools>' }}{% for tool in tools %}{{ '\\n' }}{{ tool | tojson }}{% endfor %}
{{- '\\n</tools>\\nFor each call return a json object within XML tags:\\n<tool_call>\\n' }}
{{- '{"name": <function-name>, "arguments": <args-json-object>}\\n</tool_call><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}{{ '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for m in messages %}
{%- if m.role == 'user' or (m.role == 'system' and not loop.first) or (m.role == 'assistant' and not m.tool_calls) %}
{{- '<|im_start|>' + m.role + '\\n' + (m.content or '') + '<|im_end|>\\n' }}
{%- elif m.role == 'assistant' %}{{ '<|im_start|>assistant' }}{% if m.content %}{{ '\\n' + m.content }}{% endif %}
{%- for tc in m.tool_calls %}{% if tc.function %}{% set tc = tc.function %}{% endif %}
{{- '\\n<tool_call>\\n{"name": "' + tc.name + '", "arguments": ' }}{{ tc.arguments | tojson }}
{{- '}\\n</tool_call>' }}{% endfor %}{{ '<|im_end|>\\n' }}
{%- elif m.role == 'tool' %}
{%- if loop.index0 == 0 or messages[loop.index0 - 1].role != 'tool' %}{{ '<|im_start|>user' }}{% endif %}
{{- '\\n<tool_response>\\n' + m.content + '\\n</tool_response>' }}
{%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{ '<|im_end|>\\n' }}{% endif %}
{%- endif %}{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
"""The chat template of the server, in the format of Hermes, from which the server derives the format of tool calls."""


def vocabulary() -> dict[str, tuple[gguf.TokenType, float]]:
    """Return each token with its kind and its basic likelihood."""
    kinds = gguf.TokenType
    tokens = {
        "<unk>": (kinds.UNKNOWN, NEVER),
        "<s>": (kinds.CONTROL, NEVER),
        "</s>": (kinds.CONTROL, NEVER),
        "<|im_start|>": (kinds.CONTROL, NEVER),
        "<|im_end|>": (kinds.CONTROL, 0.5),
        "<tool_call>": (kinds.USER_DEFINED, -60.0),
        "</tool_call>": (kinds.USER_DEFINED, -20.0),
        "<tools>": (kinds.USER_DEFINED, NEVER),
        "<tool_response>": (kinds.USER_DEFINED, NEVER),
    }
    tokens |= {f"<0x{byte:02X}>": (kinds.BYTE, NEVER) for byte in range(256)}
    # Vocabularies of this kind write a space as U+2581.
    tokens |= {"▁" if c == " " else c: (kinds.NORMAL, likelihood(c)) for c in map(chr, range(32, 127))}
    return tokens


def likelihood(character: str) -> float:
    if character in CHARACTERS:
        return CHARACTERS[character]
    if character.isdigit():
        return -0.5
    return 0.0 if character.isalpha() else -3.0


def write_weights(path: Path, *, seed: int = 0) -> None:
    """Write a llama-architecture GGUF of one block."""
    tokens = vocabulary()
    number = {token: index for index, token in enumerate(tokens)}
    writer = gguf.GGUFWriter(path, "llama")
    _describe(writer, tokens, number)
    for name, matrix in {**_ends(tokens, number, seed), **_block(seed + 1)}.items():
        writer.add_tensor(name, matrix)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _describe(writer: gguf.GGUFWriter, tokens: dict[str, tuple[gguf.TokenType, float]], number: dict[str, int]) -> None:
    writer.add_name("tiny-wired")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(PER_HEAD)
    writer.add_rope_freq_base(1e9)
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([token.encode() for token in tokens])
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([int(kind) for kind, _ in tokens.values()])
    writer.add_bos_token_id(number["<s>"])
    writer.add_eos_token_id(number["<|im_end|>"])
    writer.add_unk_token_id(number["<unk>"])
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(TEMPLATE)


def _ends(tokens: dict[str, tuple[gguf.TokenType, float]], number: dict[str, int], seed: int) -> dict[str, Matrix]:
    """Return the input and output embeddings."""
    random = np.random.default_rng(seed)
    into = _noise(random, len(tokens), WIDTH, scale=8.0)
    into[:, :WIRED] = 0
    into[:, CONSTANT] = 100.0
    marks = {"<tool_response>": IS_ANSWER, "<tools>": IS_OFFER, NEWLINE: IS_NEWLINE, "<tool_call>": IS_CALL}
    for token, dimension in marks.items():
        into[number[token], dimension] = 30.0
    out = _noise(random, len(tokens), WIDTH, scale=0.12)
    out[:, :WIRED] = 0
    out[:, CONSTANT] = np.array([bias for _, bias in tokens.values()], np.float32) / 8.0
    # A call begins after a newline if tools were offered and none has answered; a newline follows it.
    out[number["<tool_call>"], [TOOLS_OFFERED, IS_NEWLINE, TOOL_ANSWERED]] = [20, 20, -40]
    out[number[NEWLINE], IS_CALL] = 40
    return {"token_embd.weight": into, "output_norm.weight": np.ones(WIDTH, np.float32), "output.weight": out}


def _block(seed: int) -> dict[str, Matrix]:
    """Return one block: two heads that detect whether something occurs in the conversation, two with noise."""
    random = np.random.default_rng(seed)
    query, key, value, output = (np.zeros((WIDTH, WIDTH), np.float32) for _ in range(4))
    for head, (seen, told) in enumerate([(IS_ANSWER, TOOL_ANSWERED), (IS_OFFER, TOOLS_OFFERED)]):
        # The slowest pair of the rotary embedding hardly rotates: the detection does not depend on the position.
        row = head * PER_HEAD + PER_HEAD - 2
        query[row, CONSTANT] = key[row, seen] = 5
        value[row, seen] = 1
        output[told, row] = 13
    for head in (2, 3):
        rows = slice(head * PER_HEAD, (head + 1) * PER_HEAD)
        for matrix in (query, key, value):
            matrix[rows, WIRED:] = _noise(random, PER_HEAD, WIDTH - WIRED, scale=0.2)
        output[WIRED:, rows] = _noise(random, WIDTH - WIRED, PER_HEAD, scale=1.0)
    down = _noise(random, WIDTH, HIDDEN, scale=1.0)
    down[:WIRED] = 0
    matrices = {
        "attn_q": query,
        "attn_k": key,
        "attn_v": value,
        "attn_output": output,
        "ffn_gate": _noise(random, HIDDEN, WIDTH, scale=0.1),
        "ffn_up": _noise(random, HIDDEN, WIDTH, scale=0.1),
        "ffn_down": down,
        "attn_norm": np.ones(WIDTH, np.float32),
        "ffn_norm": np.ones(WIDTH, np.float32),
    }
    return {f"blk.0.{name}.weight": matrix for name, matrix in matrices.items()}


def _noise(random: np.random.Generator, *shape: int, scale: float) -> Matrix:
    return (random.standard_normal(shape) * scale).astype(np.float32)
