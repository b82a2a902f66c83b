"""A probe stands beside the four models, never among them, and is fed text."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from harness.composition import compose, expand
from harness.core.errors import ConfigError
from harness.models.front_ends import load_front_end

SILENCE = np.zeros(0, dtype=np.float32)


def test_no_experiment_on_all_models_picks_up_a_probe() -> None:
    models = {point.model.name: point.model.is_probe for point in expand(["experiment=cliff_all"])}
    assert len(models) == 4
    assert not any(models.values())
    assert compose(["model=smollm2"]).model.is_probe


def test_numbers_of_a_probe_are_evidence_of_their_own() -> None:
    assert compose(["model=smollm2"]).run_config.evidence == "live-smollm2"
    assert compose(["model=smollm2", "engine=sim"]).run_config.evidence == "simulated"
    assert compose(["model=moshi"]).run_config.evidence == "live-tiny"


def test_weights_in_a_package_make_a_probe_and_nothing_else_does() -> None:
    model = compose(["model=smollm2"]).model
    with pytest.raises(ConfigError, match=r"model\.kind=probe of model=smollm2"):
        dataclasses.replace(model, weights=dataclasses.replace(model.weights, packaged=None))


def test_sessions_say_their_texts_in_order_and_no_two_begin_alike(tmp_path: Path) -> None:
    model = compose(["model=smollm2"]).model
    texts = {"a": list(range(2000)), "b": list(range(5000, 7000))}
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    front_end = load_front_end(model, tmp_path)

    def said(session: int, frames: range) -> list[int]:
        call = front_end.open_session(session)
        return [t for k in frames for t in call.prompt(k, SILENCE)["prompt_token_ids"]]

    assert said(0, range(3)) == list(range(3 * model.prompt_tokens_per_frame))
    assert said(1, range(1))[0] == 5000
    assert said(0, range(62, 63)) == [*range(1984, 2000), *range(16)]
    assert len({said(session, range(1))[0] for session in range(8)}) == 8
