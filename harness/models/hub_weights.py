"""Real weights: a snapshot of their repository at its pinned commit, on this machine."""

from __future__ import annotations

from pathlib import Path

from harness.core.errors import ConfigError
from harness.models.catalog import Weights


def hub_snapshot(weights: Weights) -> Path:
    """Directory of the weights; what is not in the hub's local cache yet is fetched.

    Raises: ConfigError if they can neither be found nor fetched.
    """
    # Reads HF_HUB_OFFLINE and HF_ENDPOINT when it is imported.
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(weights.repo, revision=weights.revision))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".:")
        raise ConfigError(
            f"weights {weights.repo} at {weights.revision}: cannot be fetched ({reason}): check "
            f"the network, HF_ENDPOINT and HF_HUB_OFFLINE, or bring them with `hf download "
            f"{weights.repo} --revision {weights.revision}`"
        ) from error
