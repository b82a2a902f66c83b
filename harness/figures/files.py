"""The files of an artifact's figures."""

from pathlib import Path


def figure_files(results: Path, artifact: str) -> list[Path]:
    """The PNG files that lie there, the figure itself before its companions (`<id>.<part>.png`)."""
    folder = results / "figures"
    main = folder / f"{artifact}.png"
    return [path for path in (main, *sorted(folder.glob(f"{artifact}.*.png"))) if path.exists()]
