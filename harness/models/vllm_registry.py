"""Tells vLLM about this package's models; entry point of the group `vllm.general_plugins`.

vLLM calls it in each of its processes. Only configurations are imported here; a model's module is
imported where the model is built.
"""


def register() -> None:
    """Register every model that is not vLLM's own; calling it again changes nothing."""
    from harness.models import minicpm_o, moshi

    for family in (minicpm_o, moshi):
        family.register()
