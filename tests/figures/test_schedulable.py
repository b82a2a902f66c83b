"""The words below the figure name what is drawn, over seeds and at a live ramp's single one."""

from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from harness.figures import schedulable

RATES, SEEDS = (2.0, 8.0), (0, 1, 2)


def _tables(rates: tuple[float, ...], seeds: tuple[int, ...]) -> dict[str, pd.DataFrame]:
    ramps = [
        {
            "model": "qwen3_omni",
            "frame_budget_s": 2.0,
            "duration_s": 90.0,
            "evidence": "simulated",
            "arrival_rate_per_s": rate,
            "target_s": 0.6,
            "seed": seed,
            "settled_sessions": 100.0 + 10 * seed + rate,
            "converged_s": 40.0 + seed,
            "missed_after": 0.01 * seed,
            "served": None,
        }
        for rate in rates
        for seed in seeds
    ]
    truth = [
        {"variant": "bounded", "seed": seed, "served_sessions": 200 + seed, "failed_sessions": 210}
        for seed in seeds
    ]
    return {
        "": pd.DataFrame(ramps),
        "truth": pd.DataFrame(truth),
        "bias": pd.DataFrame(
            {"arrival_rate_per_s": rates, "median": [110.0] * len(rates), "is_censored": False}
        ),
        "paper": pd.DataFrame(
            {
                "variant": ["bounded"],
                "arrival_rate_per_s": [8],
                "admitted": [209],
                "offered": [512],
                "shed": [303],
                "evidence": ["paper"],
            }
        ),
    }


@pytest.fixture
def caption(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []

    def keep(_: Figure, text: str, evidence: list[str]) -> None:
        said.extend((text, " ".join(evidence)))

    monkeypatch.setattr(schedulable, "add_caption", keep)
    return said


def test_a_band_above_every_dot_is_inside_the_panel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tops: list[float] = []
    monkeypatch.setattr(
        schedulable, "save", lambda figure, _: tops.append(figure.axes[0].get_ylim()[1]) or []
    )
    schedulable.draw(_tables((1.0,), (0,)), tmp_path / "figure")
    assert tops[0] > 200


def test_ramps_of_several_seeds_have_medians_bands_and_the_authors_stars(
    caption: list[str], tmp_path: Path
) -> None:
    schedulable.draw(_tables(RATES, SEEDS), tmp_path / "figure")
    words, evidence = caption
    assert all(word in words for word in ("medians", "bands", "over seeds", "stars"))
    assert "paper" in evidence


def test_a_single_ramp_names_neither_stars_nor_a_range_over_seeds(
    caption: list[str], tmp_path: Path
) -> None:
    schedulable.draw(_tables((1.0,), (0,)), tmp_path / "figure")
    words, evidence = caption
    assert not [word for word in ("median", "over seeds", "stars") if word in words]
    assert "bands" in words
    assert "paper" not in evidence
    without = _tables((1.0,), (0,))
    schedulable.draw(without | {"truth": without["truth"].iloc[:0]}, tmp_path / "figure")
    assert "bands" not in caption[2]
