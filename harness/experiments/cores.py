"""How many cores a run's model may use."""

import os


def use_all_cores() -> None:
    """Let the model compute on every core; call before the engine core is forked.

    For runs without deadlines alone: in a replay the other cores release the frames in time.
    """
    import torch

    torch.set_num_threads(len(os.sched_getaffinity(0)))
