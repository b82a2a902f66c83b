"""Talk to Moshi on plain vLLM: a wav in, a wav out. Shows all that serving it takes.

    python scripts/moshi_call.py caller.wav moshi.wav
    python scripts/moshi_call.py caller.wav moshi.wav --checkpoint kyutai/moshiko-pytorch-bf16

Without --checkpoint a tiny Moshi with random weights answers: what it says is noise.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from harness.composition import compose
from harness.engines.vllm_args import prepare_environment
from harness.models.tiny import ensure_tiny_checkpoint
from harness.vllm_plugin.config import HOST_KEY

FRAMES_PER_SECOND = 12.5
MAX_MODEL_LEN = 4096


async def converse(checkpoint: str, caller: Path, answer: Path) -> None:
    """Send the caller's frames, each once the one before is answered, and decode what is said."""
    import librosa
    from vllm import SamplingParams
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.engine.protocol import StreamingInput
    from vllm.sampling_params import RequestOutputKind
    from vllm.v1.engine.async_llm import AsyncLLM

    from harness.models.front_ends.moshi import MoshiFrontEnd
    from harness.models.moshi.codec import FRAME_SAMPLES, SAMPLE_RATE_HZ, write_speech

    front_end = MoshiFrontEnd(compose(["model=moshi"]).model, Path(checkpoint))
    engine = AsyncLLM.from_engine_args(
        AsyncEngineArgs(
            model=checkpoint,
            block_size=32,
            max_model_len=MAX_MODEL_LEN,
            max_num_batched_tokens=256,
            enable_prefix_caching=False,
            enforce_eager=True,
            additional_config={HOST_KEY: True},
            async_scheduling=False,
            **front_end.engine_args,
        )
    )
    samples, _ = librosa.load(caller, sr=SAMPLE_RATE_HZ, mono=True)
    num_frames = min(len(samples) // FRAME_SAMPLES, MAX_MODEL_LEN - 1)
    call = front_end.open_session(0)

    async def prompts() -> AsyncIterator[Any]:
        for index in range(num_frames):
            frame = samples[index * FRAME_SAMPLES : (index + 1) * FRAME_SAMPLES]
            yield StreamingInput(prompt=await call.prompt(index, frame))

    sampling = SamplingParams(
        temperature=0.0,
        max_tokens=1,
        detokenize=False,
        ignore_eos=True,
        output_kind=RequestOutputKind.DELTA,
        **front_end.sampling_args,
    )
    try:
        async for output in engine.generate(prompts(), sampling, request_id="call"):
            if output.outputs and output.outputs[0].token_ids:
                call.receive(output.outputs[0])
    finally:
        engine.shutdown()
        # Now, since vLLM's destructor fails once the interpreter has begun to end.
        del engine
        gc.collect()
    write_speech(answer, front_end.codec.decode([frame.codes for frame in call.spoken]))
    seconds = len(call.spoken) / FRAMES_PER_SECOND
    print(f"{answer}: {seconds:.1f} s, from {num_frames} frames of {caller}")


def main() -> None:
    """Read the command line and hold the call."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("caller", type=Path, help="what the caller says, any sample rate")
    parser.add_argument("answer", type=Path, help="wav file to write")
    parser.add_argument("--checkpoint", help="directory or hub name (default: the tiny Moshi)")
    parser.add_argument("--cache", type=Path, default=Path(".cache"), help="tiny checkpoints")
    options = parser.parse_args()
    prepare_environment()
    checkpoint = options.checkpoint or str(ensure_tiny_checkpoint("moshi", options.cache))
    asyncio.run(converse(checkpoint, options.caller, options.answer))


if __name__ == "__main__":
    main()
