"""Kyutai's own Moshi, greedy in float32: what it says to given codes.

Run with the project's Python, in a process without vLLM:
    kyutai_reference.py CHECKPOINT < calls.json > said.json
calls.json: {context: the user's codes of each frame of each call}. said.json: {context: {"said",
"spoken"}}, likewise, text id first; "spoken" lacks the first frame.
"""

import json
import os
import sys
from pathlib import Path

# Read when the package is imported; compiling would take a minute.
os.environ["NO_TORCH_COMPILE"] = "1"

import torch
from moshi.models.lm import LMGen, LMModel
from safetensors.torch import load_file

DELAYS = [0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1]


def language_model(checkpoint: Path, context: int) -> LMModel:
    """The checkpoint in Kyutai's model, with the settings of moshiko in its `loaders`."""
    sizes = json.loads((checkpoint / "config.json").read_text())
    model = LMModel(
        delays=DELAYS,
        n_q=16,
        dep_q=8,
        card=sizes["codebook_size"],
        text_card=sizes["text_vocab_size"],
        dim=sizes["hidden_size"],
        num_heads=sizes["num_attention_heads"],
        num_layers=sizes["num_hidden_layers"],
        # The feed-forward is two thirds as wide as is asked for, since it is gated.
        hidden_scale=1.5 * sizes["intermediate_size"] / sizes["hidden_size"],
        norm="rms_norm_f32",
        causal=True,
        layer_scale=None,
        context=context,
        max_period=10_000,
        gating="silu",
        positional_embedding="rope",
        depformer_dim=sizes["depth_hidden_size"],
        depformer_dim_feedforward=3 * sizes["depth_intermediate_size"] // 2,
        depformer_num_heads=sizes["depth_num_heads"],
        depformer_num_layers=sizes["depth_num_layers"],
        depformer_layer_scale=None,
        depformer_multi_linear=True,
        depformer_context=8,
        depformer_max_period=10_000,
        depformer_gating="silu",
        depformer_pos_emb="none",
        depformer_weights_per_step=True,
    )
    model.load_state_dict(load_file(checkpoint / "model.safetensors"), strict=True)
    return model.eval()


def converse(model: LMModel, calls: list[list[list[int]]]) -> dict[str, list[list[list[int]]]]:
    """All calls as one batch."""
    texts: list[torch.Tensor] = []
    codes: list[torch.Tensor] = []
    spoken: list[torch.Tensor] = []
    generator = LMGen(
        model, use_sampling=False, on_text_hook=texts.append, on_audio_hook=codes.append
    )
    with torch.no_grad(), generator.streaming(len(calls)):
        for frame in torch.tensor(calls).unbind(1):
            output = generator.step(frame[:, :, None])
            if output is not None:
                spoken.append(output[:, :, 0])
    said = torch.cat([torch.stack(texts)[..., None], torch.stack(codes)], dim=-1)
    return {
        "said": said.transpose(0, 1).tolist(),
        "spoken": torch.stack(spoken).transpose(0, 1).tolist(),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    found = {
        context: converse(language_model(Path(sys.argv[1]), int(context)), calls)
        for context, calls in json.load(sys.stdin).items()
    }
    json.dump(found, sys.stdout)
