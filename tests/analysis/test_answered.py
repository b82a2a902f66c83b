import pandas as pd

from harness.analysis.answered import answered_shares


def test_frames_count_in_the_period_of_their_release() -> None:
    frames = pd.DataFrame(
        {"release_s": [0.0, 1.0, 2.0, 3.0, 4.0], "missed": [False, False, False, True, True]}
    )
    shares = answered_shares(frames, 2.0)
    assert shares["release_s"].tolist() == [0.0, 2.0, 4.0]
    assert shares["answered"].tolist() == [1.0, 0.5, 0.0]


def test_a_release_on_a_border_belongs_to_the_period_it_opens() -> None:
    # 3 * 0.1 is above 0.3, and 0.3 / 0.1 below 3.
    frames = pd.DataFrame({"release_s": [0.3], "missed": [False]})
    assert round(float(answered_shares(frames, 0.1)["release_s"].iloc[0]), 9) == 0.3
