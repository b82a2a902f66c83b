"""Recipe of the tiny Mimi: the real one's rate, frames, strides and codebooks; narrow, and shallow.

Without residual blocks, since a tiny frame costs what its operators cost to call: 1.8 ms of a CPU
core instead of 2.6.
Source: transformers' `MimiModel`, 5.19; `kyutai/mimi`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import MimiModel

    from harness.models.moshi.config import MoshiConfig

SEED = 20_240_918
# Root mean square of what the codec says, of 1 at full scale.
_SPEECH_LEVEL = 0.05


def build(directory: Path, moshi: MoshiConfig) -> None:
    """Write a codec with the codebooks that `moshi` speaks in."""
    import torch
    from transformers import MimiConfig, MimiModel

    config = MimiConfig(
        num_filters=4,
        num_residual_layers=0,
        hidden_size=32,
        num_hidden_layers=1,
        intermediate_size=64,
        num_attention_heads=2,
        num_key_value_heads=2,
        codebook_size=moshi.codebook_size,
        codebook_dim=16,
        vector_quantization_hidden_dimension=16,
        num_quantizers=moshi.num_codebooks,
        upsample_groups=32,
    )
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(SEED)
        codec = MimiModel(config)
        _spread_codebooks(codec)
        _turn_down(codec)
    codec.save_pretrained(directory)


def _spread_codebooks(codec: MimiModel) -> None:
    """Fill the codebooks with what the encoder makes of sound, so that all codes come to be used.

    transformers leaves them at zero, which would hear the same code in everything.
    """
    import torch

    num_frames, frame = 8 * codec.config.codebook_size, codec.config.frame_size
    time = torch.arange(num_frames * frame) / codec.config.sampling_rate
    # A tone of another pitch and loudness in each frame, and some noise.
    pitch = 80 * 50 ** torch.rand(num_frames).repeat_interleave(frame)
    loudness = 0.5 * torch.rand(num_frames).square().repeat_interleave(frame)
    sound = loudness * (torch.sin(6.28 * pitch * time) + 0.3 * torch.randn(len(time)))
    heard = codec.encoder(sound[None, None])
    heard = codec.encoder_transformer(heard.transpose(1, 2))[0].transpose(1, 2)
    heard = codec.downsample(heard)
    quantizer = codec.quantizer
    for stage in (
        quantizer.semantic_residual_vector_quantizer,
        quantizer.acoustic_residual_vector_quantizer,
    ):
        residual = stage.input_proj(heard)
        for layer in stage.layers:
            picked = torch.randperm(residual.shape[-1])[: codec.config.codebook_size]
            layer.codebook.embed_sum.copy_(residual[0, :, picked].T)
            residual = residual - layer.decode(layer.encode(residual))


def _turn_down(codec: MimiModel) -> None:
    """Scale what the decoder ends with, so that random codes sound at the level of speech."""
    import torch

    shape = (1, codec.config.num_quantizers, 64)
    speech = codec.decode(torch.randint(codec.config.codebook_size, shape))[0]
    last = codec.decoder.layers[-1].conv
    for parameter in (last.weight, last.bias):
        parameter.mul_(_SPEECH_LEVEL / speech.std())
