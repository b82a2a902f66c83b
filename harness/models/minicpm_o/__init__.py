"""MiniCPM-o-4.5 that only listens, for stock vLLM: no image processor, no code from a checkpoint.

vLLM has the model, but asks the checkpoint's own code for an image processor, also when no image
will ever come. The architecture registered here is vLLM's model with processing that knows audio
alone. A published checkpoint runs on it with `hf_overrides={"architectures": ["MiniCPMOAudio"]}`.

    model          the architecture, and what vLLM asks about its inputs
    configuration  the config class of checkpoints that this project makes
"""

ARCHITECTURE = "MiniCPMOAudio"


def register() -> None:
    """Make the architecture known in this process; calling it again changes nothing."""
    from transformers import AutoConfig
    from vllm import ModelRegistry

    from harness.models.minicpm_o.configuration import MiniCPMOAudioConfig

    AutoConfig.register(MiniCPMOAudioConfig.model_type, MiniCPMOAudioConfig, exist_ok=True)
    ModelRegistry.register_model(ARCHITECTURE, f"{__name__}.model:{ARCHITECTURE}")
