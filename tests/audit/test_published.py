"""The authors' format: read as it is, refused with the file and the line when it is not."""

import gzip
import json
from pathlib import Path

import pytest

from harness.audit.names import origin, probe_retention
from harness.audit.published import find_published, read_probe, read_run, read_windows
from harness.core.errors import TelemetryError
from tests.audit.authors_format import log, served, window_table, write_log


def test_a_run_log_is_read_frame_by_frame(tmp_path: Path) -> None:
    path = write_log(tmp_path, "var_van96_r1_n96", log(served(), answered=3))
    run = read_run(path)
    assert (run.num_sessions, run.frame_budget_s, run.duration_s) == (4, 2.0, 300.0)
    assert len(run.latency_ms) == 600
    assert run.first_answers == 3


def test_a_printed_table_is_read_window_by_window(tmp_path: Path) -> None:
    path = tmp_path / "mcpm600_van.out"
    path.write_text(window_table([802, 3, 4, 5]))
    run = read_windows(path)
    assert run.latency_ms.tolist() == [802, 3, 4, 5]
    assert (run.num_sessions, run.frame_budget_s, run.sample_s) == (4, 1.0, 10.0)
    assert run.first_answers is None


@pytest.mark.parametrize(
    ("name", "variant", "batch", "window"),
    [
        ("var_van96_r1_n96", "unbounded", 1, None),
        ("rvar_ineng128_r5_n128", "bounded", 2, 1024),
        ("abl_w512_n128", "bounded", None, 512),
    ],
)
def test_a_name_says_what_ran(
    name: str, variant: str, batch: int | None, window: int | None
) -> None:
    known = origin(name)
    assert known is not None
    assert (known.variant, known.batch, known.window_tokens) == (variant, batch, window)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("lh_swa0", (None, 0)),
        ("lh_swa512", (512, 0)),
        ("lh_tri0", (1024, 0)),
        ("lh_s42ctl", (1024, 42)),
        ("lh_sink32", (1024, 32)),
        ("lh_w2048s32", (2048, 32)),
        ("lh_other", None),
    ],
)
def test_a_probes_name_says_what_was_kept(name: str, kept: tuple[int | None, int] | None) -> None:
    assert probe_retention(name) == kept


def test_a_probe_counts_answers_by_segment(tmp_path: Path) -> None:
    path = write_log(tmp_path, "lh_s16", {"n": 32, "seg_hits": [[20, 22], [11, 22]]})
    assert read_probe(path).segments == ((20, 22), (11, 22))
    path = write_log(tmp_path, "lh_s16", {"n": 32, "seg_hits": [[20, 22], [23, 22]]})
    with pytest.raises(TelemetryError, match=r"segment 1 of seg_hits is \[23, 22\]"):
        read_probe(path)


def test_files_of_other_names_are_left_alone(tmp_path: Path) -> None:
    write_log(tmp_path / "deep" / "er", "var_van96_r1_n96", log(served()))
    (tmp_path / "notes.json").write_text("not even JSON")
    found = find_published(tmp_path)
    assert [run.name for run in found.runs] == ["var_van96_r1_n96"]
    assert not found.ramps
    assert not found.probes


def test_a_missing_or_empty_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(TelemetryError, match=r"nowhere is not a directory"):
        find_published(tmp_path / "nowhere")
    with pytest.raises(TelemetryError, match="holds no published run"):
        find_published(tmp_path)


def test_a_file_that_was_cut_is_named_with_its_line(tmp_path: Path) -> None:
    text = json.dumps(log(served(5)))
    half = tmp_path / "var_van96_r1_n96.json"
    half.write_text(text[: len(text) // 2])
    with pytest.raises(TelemetryError, match=r"r1_n96\.json, line 1, column \d+: .*cut"):
        read_run(half)
    packed = tmp_path / "var_van96_r2_n96.json.gz"
    packed.write_bytes(gzip.compress(text.encode())[:60])
    with pytest.raises(TelemetryError, match=r"r2_n96\.json\.gz: cut or not gzip"):
        read_run(packed)
    plain = tmp_path / "var_van96_r3_n96.json.gz"
    plain.write_text(text)
    with pytest.raises(TelemetryError, match=r"r3_n96\.json\.gz: cut or not gzip"):
        read_run(plain)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ev": [[0.5, 1.0, 0], [0.5, "x", 0]]}, r"entry 1 of ev is \[0\.5, \"x\", 0\]"),
        ({"ev": [[0.5, 1.0]]}, "entry 0 of ev"),
        ({"ev": None}, "ev is a NoneType"),
        ({"total": True}, "total is a bool"),
    ],
)
def test_another_format_is_refused_by_key_and_entry(
    tmp_path: Path, change: dict[str, object], words: str
) -> None:
    path = write_log(tmp_path, "var_van96_r1_n96", log(served(5)) | change)
    with pytest.raises(TelemetryError, match=words):
        read_run(path)


def test_a_key_that_lacks_is_named(tmp_path: Path) -> None:
    content = log(served(5))
    del content["ttfa"]
    with pytest.raises(TelemetryError, match="ttfa is missing"):
        read_run(write_log(tmp_path, "var_van96_r1_n96", content))


def test_a_torn_line_of_a_table_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mcpm600_van.out"
    lines = window_table([3, 4, 5]).splitlines()
    path.write_text("\n".join([*lines[:4], "   10-20s   40    4m", *lines[5:]]))
    with pytest.raises(TelemetryError, match=r"mcpm600_van\.out, line 5: '10-20s   40    4m'"):
        read_windows(path)
    path.write_text("\n".join(lines[:5]))
    with pytest.raises(TelemetryError, match=r"line 5: the table ends without its OVERALL"):
        read_windows(path)
    path.write_text("nothing of the kind\n")
    with pytest.raises(TelemetryError, match="no line '=== SUSTAINED"):
        read_windows(path)
