"""Films of a figure: a GIF, or a page that holds all frames and needs no network.

matplotlib's own page fetches its icons from elsewhere, so this one has words on its buttons.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Perceptron, frame by frame</title>
<style>
  body {{ font: 15px sans-serif; max-width: 46rem; margin: 1rem auto; padding: 0 1rem;
         color-scheme: light dark }}
  img {{ width: 100% }} input {{ width: 100% }} button {{ font: inherit; padding: .3em 1em }}
</style>
<img id="picture" alt="The line at this moment of the run" src="{first}">
<input id="moment" type="range" min="0" max="{last}" value="0" aria-label="Frame">
<button id="play" type="button">Play</button>
<script>
  const frames = [{frames}];
  const [picture, moment, play] =
    ["picture", "moment", "play"].map(name => document.getElementById(name));
  let timer = null;
  const show = () => {{ picture.src = frames[moment.value]; }};
  const stop = () => {{ clearInterval(timer); timer = null; play.textContent = "Play"; }};
  const next = () => {{
    if (+moment.value === frames.length - 1) return stop();
    moment.value = +moment.value + 1; show();
  }};
  moment.oninput = () => {{ stop(); show(); }};
  play.onclick = () => {{
    if (timer) return stop();
    if (+moment.value === frames.length - 1) {{ moment.value = 0; show(); }}
    play.textContent = "Pause"; timer = setInterval(next, {pause});
  }};
</script>
</html>
"""


def write_movie(
    figure: Any,
    draw: Callable[[int], object],
    n_frames: int,
    path: str | Path,
    *,
    fps: float = 4.0,
    dpi: float = 100.0,
) -> Path:
    """Draw n frames of a figure, write them to a .gif or .html file, and return its path."""
    path = Path(path)
    if not fps > 0:
        raise ValueError(f"fps must be above 0, got {fps!r}")
    ending = path.suffix.lower()
    if ending not in (".gif", ".html"):
        raise ValueError(f"path must end in .gif or .html, got {str(path)!r}")
    frames = _frames(figure, draw, n_frames, dpi)
    if ending == ".html":
        path.write_text(_page(list(frames), 1000.0 / fps), encoding="utf-8")
    else:
        _write_gif(frames, n_frames, path, 1000.0 / fps)
    return path


def _frames(figure: Any, draw: Callable[[int], object], n: int, dpi: float) -> Iterator[bytes]:
    for k in range(n):
        draw(k)
        picture = BytesIO()
        figure.savefig(picture, format="png", dpi=dpi)
        # Laid out once: axes that move from frame to frame would look like a change of the data.
        figure.set_layout_engine("none")
        yield picture.getvalue()


def _page(frames: list[bytes], pause: float) -> str:
    inside = [f"data:image/png;base64,{b64encode(frame).decode()}" for frame in frames]
    return _PAGE.format(
        first=inside[0],
        last=len(frames) - 1,
        frames=",".join(f'"{frame}"' for frame in inside),
        pause=round(pause),
    )


def _write_gif(frames: Iterator[bytes], n: int, path: Path, pause: float) -> None:
    from PIL import Image

    images = (Image.open(BytesIO(frame)).convert("RGB").quantize() for frame in frames)
    # The last frame stays longer: a loop has no other end.
    durations = [pause] * (n - 1) + [max(pause, 2000.0)]
    next(images).save(path, save_all=True, append_images=images, duration=durations, loop=0)
