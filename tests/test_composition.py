from pathlib import Path

import pytest

from harness.composition import CONFIG_DIR, compose, expand
from harness.config import EngineKind, RunConfig, ScaleName
from harness.core.errors import ConfigError
from harness.kv.retention import Retention
from harness.models.front_ends import check_is_served
from harness.workload.answers import draw_answers

LOOPS = ["agent_scratchpad", "retrieval_cache", "video_assistant"]
MODELS = sorted({path.stem for path in (CONFIG_DIR / "model").glob("*.yaml")} - set(LOOPS))
EXPERIMENTS = sorted(path.stem for path in (CONFIG_DIR / "experiment").glob("*.yaml"))


@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize("model", MODELS)
def test_every_experiment_composes_with_every_model(experiment: str, model: str) -> None:
    point = compose([f"experiment={experiment}", f"model={model}"])
    assert experiment in (point.experiment, point.report, point.artifact)
    assert point.model.name == model


@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_without_audio_composes_and_is_not_served_live(loop: str) -> None:
    run = compose(["experiment=beyond_voice", f"model={loop}"]).run_config
    assert run.model.sample_rate_hz is None
    # The published context of all three text models.
    assert run.final_session_tokens < 32_768
    with pytest.raises(ConfigError, match=r"has no front end"):
        check_is_served(run.model)
    with pytest.raises(ConfigError, match=r"hears nothing: it is simulated"):
        _ = run.model.frame_samples


@pytest.mark.parametrize(
    ("model", "bytes_per_token"),
    [
        ("moshi", 524_288),
        ("minicpm_o", 147_456),
        ("qwen2_5_omni", 57_344),
        ("qwen3_omni", 98_304),
    ],
)
def test_kv_geometry_is_the_papers(model: str, bytes_per_token: int) -> None:
    assert compose([f"model={model}"]).model.kv.bytes_per_token == bytes_per_token


def test_a_grid_varies_what_the_user_did_not_choose() -> None:
    kinds = [point.retention.kind.name for point in expand([])]
    assert kinds == ["unbounded", "sink_window"]
    assert [p.retention.kind.name for p in expand(["retention=window"])] == ["window"]


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("free_running retention=unbounded", ["unbounded"]),
        ("free_running retention.window_tokens=128", ["128+0", "128+32", "128+64", "128+96"]),
        ("free_running retention=sink_window retention.window_tokens=256", ["256+32"]),
        ("sinks retention.sink_tokens=64", ["256+64"]),
        ("sinks engine=reference", ["unbounded", *(f"256+{s}" for s in (0, 1, 4, 16, 32))]),
        ("long_life engine.host_bound=true", ["128+32"]),
        ("fidelity case=boundary", ["unbounded"] * 4 + ["128+32"]),
        # No point has it, so it takes the place of what is swept, and equal points are one.
        ("window_size retention.window_tokens=300", ["300+0"]),
        ("fidelity case=crowd seed=3", ["unbounded"] * 8),
    ],
)
def test_what_is_named_selects_the_points_of_the_grid_that_have_it(
    words: str, kept: list[str]
) -> None:
    points = expand([f"experiment={words.split()[0]}", *words.split()[1:]])
    found = [point.retention for point in points]
    assert [
        f"{each.window_tokens}+{each.sink_tokens}" if each.is_bounded else "unbounded"
        for each in found
    ] == kept
    if "engine=reference" in words:
        whole = expand(["experiment=sinks"])
        assert [p for p in whole if p.engine.kind is EngineKind.reference] == points
    if "seed=3" in words:
        assert {point.seed for point in points} == {3}


def test_a_models_own_context_is_the_catalogs() -> None:
    moshi = ["model=moshi", "scale=full", "retention=native"]
    assert compose(moshi).retention == Retention(window_tokens=3000, native=True)
    shorter = compose([*moshi, "model.native_context_tokens=500"])
    assert shorter.retention.window_tokens == 500


@pytest.mark.parametrize(
    ("experiment", "named"),
    [("wall_matrix", "seed=9"), ("wall_matrix_live", "repetition=19")],
)
def test_a_point_of_a_grid_is_what_its_own_overrides_compose(experiment: str, named: str) -> None:
    points = expand([f"experiment={experiment}", named])
    assert len({point.run_config.digest for point in points}) == len(points) == 4
    last = points[-1]
    choices = [f"{key}={values[-1]}" for key, values in last.grid.items()]
    assert compose([f"experiment={experiment}", *choices]) == last


def test_a_swept_key_with_a_dot_is_named_itself_and_the_error_says_how() -> None:
    with pytest.raises(ConfigError) as caught:
        expand(["experiment=long_life", 'grid.engine.host_bound=["true"]'])
    assert "engine.host_bound=VALUE, and only that is run" in str(caught.value)
    points = expand(["experiment=long_life", "engine.host_bound=true"])
    assert {point.engine.host_bound for point in points} == {True}
    swept = expand(["experiment=long_life", "grid={engine.host_bound:[true]}", "more_grids=[]"])
    assert {point.engine.host_bound for point in swept} == {True}


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("~grid", "grid cannot be taken away or replaced: name the swept key itself, KEY=VALUE"),
        ("~more_grids", "a key cannot be taken away with ~, only set to another value"),
        ("~workload", "~workload: a key cannot be taken away with ~, only set to another value"),
        ("~workload.num_sessions", "a key cannot be taken away with ~, only set to another value"),
        ("~retention", "~retention: a group cannot be taken away, only chosen: native or recycle"),
        ("~model=moshi", "~model=moshi: a group cannot be taken away, only chosen: agent_"),
    ],
)
def test_what_is_taken_away_is_not_suggested_to_be_meant(override: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        expand([override])
    assert words in str(caught.value)
    assert "did you mean" not in str(caught.value)


def test_a_section_is_merged_and_a_model_may_go_without_a_size_of_its_own() -> None:
    assert compose(["workload={num_sessions: 3}"]).workload.num_sessions == 3
    assert compose(["++workload.num_sessions=3"]).workload.num_sessions == 3
    assert compose(["~size"]).engine.kv_pool_blocks != compose([]).engine.kv_pool_blocks


@pytest.mark.parametrize(
    "swept", ["grid={seed:[1,2]}", "grid.seed=[1,2]", "more_grids=[{seed:[1,2]}]"]
)
def test_a_further_key_is_swept_with_the_values_as_they_are_written(swept: str) -> None:
    points = expand(["retention=unbounded", swept])
    assert [point.seed for point in points if point.seed] == [1, 2]


def test_a_bad_choice_of_a_grid_is_one_line_that_names_what_to_change() -> None:
    with pytest.raises(ConfigError, match=r"did you mean workload\.num_sessions"):
        expand(["+grid={workload.num_session:['3']}"])


def test_the_order_of_a_grid_is_shuffled_by_its_seed_and_nothing_else() -> None:
    ten = ["experiment=wall_matrix", "retention=unbounded", "workload.num_sessions=96"]
    listed, one, again, two = (
        [point.seed for point in expand([*ten, *order])]
        for order in ([], ["order_seed=1"], ["order_seed=1"], ["order_seed=2"])
    )
    assert one == again
    assert len({tuple(listed), tuple(one), tuple(two)}) == 3
    assert listed == sorted(one) == sorted(two)


def test_a_repetition_has_its_own_digest_and_the_same_offer() -> None:
    first, second = (
        compose(["experiment=wall_matrix_live", "repeats=same_offer", f"repetition={n}"]).run_config
        for n in (0, 1)
    )
    assert first.digest != second.digest
    assert (draw_answers(first) == draw_answers(second)).all()
    other = compose(["experiment=wall_matrix_live", "repetition=1"]).run_config
    assert other.seed == 1


def test_variants_of_a_grid_differ_in_digest_and_in_nothing_else() -> None:
    unbounded, bounded = expand(["seed=3"])
    assert unbounded.run_config.digest != bounded.run_config.digest
    assert unbounded.workload == bounded.workload
    assert unbounded.seed == bounded.seed == 3


def test_the_same_overrides_give_the_same_digest_wherever_results_go(tmp_path: Path) -> None:
    here = compose([]).run_config
    there = compose([f"paths.results_dir={tmp_path}"]).run_config
    assert here.digest == there.digest


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("model=gpt", "model=gpt is unknown: choose "),
        ("experiment=clif", "experiment=clif is unknown: choose "),
        ("workload.num_session=3", "did you mean workload.num_sessions?"),
        ("+foo=1", "foo is no key: see harness/config/ for every key"),
        ("+workload.num_sessions=3", "workload.num_sessions is named as if it were new: leave out"),
        ("+model=moshi", "model is named as if it were new: leave out the +"),
        ("seed=1,2", "seed=1,2 names several values: add -m, which runs one job for each"),
        ("model=null", "model=null is no choice: choose agent_scratchpad or minicpm_o"),
        ("model=[moshi,qwen3_omni]", "model=[moshi,qwen3_omni] is no choice: choose agent_"),
        ("model=", "model= is unknown: choose "),
        ("experiment=", "experiment= is unknown: choose "),
        ("workload=5", "workload is a section, so set a key of it, as in workload.regime=VALUE"),
        ("workload=null", "workload=null cannot be: workload is a section"),
        ("artifact=a/b", "artifact=a/b names files, so it must be letters, digits, _ and -"),
        ("artifact=", "artifact= names files"),
        ("seed=x", "Value 'x' of type 'str' could not be converted to Integer"),
        ("workload.num_sessions=0", "workload.num_sessions=0 must be at least 1"),
        ("workload.duration_s=2", "so make the run longer"),
        ("retention.sink_tokens=4", "needs retention.window_tokens"),
        ("retention=native", "model=qwen2_5_omni has model.native_context_tokens=null"),
        ("diagnosis.miss_tolerance=3", "diagnosis.miss_tolerance=3.0 must lie in 0..1"),
        ("model.frame_budget_s=0", "model.frame_budget_s=0.0 must be above 0"),
        ("workload.corpora=[]", "name at least one of audio_corpora/"),
        ("model.sample_rate_hz=null", "model.audio_tokens_per_s=25.0 needs model.sample_rate_hz"),
        ("seed=x", "seed=x: Value"),
        ("a==b", "write key=value"),
        ("grid.seed=1", "seed=VALUE, and only that is run; 'grid={seed:[VALUE,VALUE]}' varies"),
        ("grid.retention=unbounded", "grid.retention cannot be set so: name the swept key itself"),
        ("grid=null", "grid cannot be taken away or replaced"),
    ],
)
def test_a_bad_override_is_one_line_that_names_what_to_change(override: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        compose([override])
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_configurations_are_frozen() -> None:
    with pytest.raises(AttributeError):
        compose([]).run_config.seed = 1  # type: ignore[misc]
    assert compose([]).scale is ScaleName.tiny


def test_public_keys_change_only_on_purpose() -> None:
    assert _keys(compose([]).run_config) == Path(__file__).with_name("public_keys.txt").read_text()


def _keys(run: RunConfig, prefix: str = "") -> str:
    lines = []
    for name, value in vars(run).items():
        if hasattr(value, "__dataclass_fields__"):
            lines.append(_keys(value, f"{prefix}{name}."))
        else:
            lines.append(f"{prefix}{name}\n")
    return "".join(lines)
