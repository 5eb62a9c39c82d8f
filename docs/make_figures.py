"""Draws docs/figures/*.svg from the texts beside them: `make docs`.

A text has a line for each thing. Places and sizes are x, y, width and height, in cells of 10 pixels.

    title A commit
    says Tasks write files, and the driver commits them.
    frame root 30 3 28 20 | _partlog/orders/
    box tasks programs 2 4 15 6 | tasks of Spark | rows → batches
    link tasks files | batches
    text 1 30 | words
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

FIGURES = Path(__file__).parent / "figures"
_CELL, _LINE, _LETTER = 10, 18, 8.2
"""Pixels: of a cell, between two lines of text, and of a letter in a wide font, such as DejaVu Sans."""
_KINDS = ("program", "programs", "disk", "new", "absent")
_LINKS = {"link": 'marker-end="url(#tip)"', "both": 'marker-start="url(#tip)" marker-end="url(#tip)"'}
_STYLE = """\
<style>
text { font: 14px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2937; text-anchor: middle }
.left { text-anchor: start }
.first { font-weight: 600 }
.label { fill: #4b5563 }
rect { stroke-width: 1.5; stroke: #64748b; fill: #ffffff }
.card { stroke: #d1d5db }
.frame { stroke-dasharray: 4 4; fill: #f8fafc }
.program { stroke: #2563eb; fill: #dbeafe }
.disk { stroke: #b45309; fill: #fef3c7 }
.new { stroke: #15803d; fill: #dcfce7 }
.absent { stroke-dasharray: 4 4; fill: none }
path { stroke: #475569; stroke-width: 1.5; fill: none }
marker path { stroke: none; fill: #475569 }
@media (prefers-color-scheme: dark) {
  text { fill: #e5e7eb }
  .label { fill: #b6c2d1 }
  rect { stroke: #94a3b8; fill: #171b24 }
  .card { stroke: #3b4252 }
  .frame { fill: #1e2430 }
  .program { stroke: #60a5fa; fill: #1e3a5f }
  .disk { stroke: #f0b34a; fill: #4a3410 }
  .new { stroke: #4ade80; fill: #14432a }
  path { stroke: #a3b1c4 }
  marker path { fill: #a3b1c4 }
}
</style>
<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse">
<path d="M0 0L8 4L0 8z"/></marker>"""


class Area(NamedTuple):
    x: float
    y: float
    width: float
    height: float

    def meets(self, other: Area) -> bool:
        return _overlap(self.x, self.width, other.x, other.width) > 0 and _overlap(self.y, self.height, other.y, other.height) > 0

    def lies_in(self, other: Area) -> bool:
        return all(0 <= self[side] - other[side] <= other[side + 2] - self[side + 2] for side in (0, 1))


def figures() -> dict[str, str]:
    """The figures, by the names of their files."""
    return {f"{source.stem}.svg": drawn(source.read_text(encoding="utf-8")) for source in sorted(FIGURES.glob("*.txt"))}


def drawn(source: str) -> str:
    """The figure of a text. ValueError if a text is wider than its box, or meets a text, a box or the border of a frame."""
    words: dict[str, str] = {}
    areas: dict[str, Area] = {}
    solid: list[Area] = []  # boxes and texts, which keep apart
    frames: list[Area] = []
    shapes: list[str] = []
    for line in filter(None, source.splitlines()):
        head, *texts = (part.strip() for part in line.split("|"))
        verb, *given = head.split()
        if verb in ("title", "says"):
            words[verb] = head.partition(" ")[2]
        elif verb in ("frame", "box"):
            name, kind, *numbers = given if verb == "box" else (given[0], verb, *given[1:])
            if kind not in (*_KINDS, "frame"):
                raise ValueError(f"no kind of a box: {line}")
            area = areas[name] = Area(*(_CELL * float(number) for number in numbers))
            shapes += _rects(kind, area)
            if kind == "programs":
                areas[name] = Area(area.x, area.y, area.width + 8, area.height + 8)
            top = area.y - 6 if kind == "frame" else area.y + area.height / 2 - _LINE * (len(texts) - 1) / 2 + 5
            for number, text in enumerate(texts):
                style = "first" if number == 0 and kind not in ("disk", "absent") else ""
                around = _text(shapes, area.x + area.width / 2, top + _LINE * number, text, style)
                if around.width > area.width:
                    raise ValueError(f"wider than its box: {text}")
                solid += [around] if kind == "frame" else []
            (frames if kind == "frame" else solid).append(areas[name])
        elif verb == "text":
            solid.append(_text(shapes, _CELL * float(given[0]), _CELL * float(given[1]), texts[0], "left label"))
        else:
            (x, y), (to_x, to_y) = _ends(areas[given[0]], areas[given[1]])
            shapes.append(f'<path d="M{x:g} {y:g}L{to_x:g} {to_y:g}" {_LINKS[verb]}/>')
            for text in texts:
                place = ((x + to_x) / 2, y - 7, "label") if y == to_y else (x + 8, (y + to_y) / 2 + 5, "left label")
                solid.append(_text(shapes, *place[:2], text, place[2]))
    crossed = [(area, frame) for area in solid for frame in frames if area.meets(frame) and not area.lies_in(frame)]
    if met := [pair for pair in combinations(solid, 2) if pair[0].meets(pair[1])] + crossed:
        raise ValueError(f"texts, boxes or frames meet: {met}")
    width, height = (max(area[side] + area[side + 2] for area in (*areas.values(), *solid)) + _CELL for side in (0, 1))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img">',
            f"<title>{escape(words['title'])}</title>",
            f"<desc>{escape(words['says'])}</desc>",
            _STYLE,
            f'<rect class="card" x="1" y="1" width="{width - 2:g}" height="{height - 2:g}" rx="8"/>',
            *shapes,
            "</svg>\n",
        ]
    )


def _rects(kind: str, area: Area) -> list[str]:
    """A box; three that lie on each other for several programs."""
    shifts = (8, 4, 0) if kind == "programs" else (0,)
    style = kind.replace("programs", "program")
    size = f'width="{area.width:g}" height="{area.height:g}" rx="5"'
    return [f'<rect class="{style}" x="{area.x + shift:g}" y="{area.y + shift:g}" {size}/>' for shift in shifts]


def _text(shapes: list[str], x: float, y: float, text: str, style: str) -> Area:
    """Adds a text, of which y is the base line; returns the area that it takes in a wide font."""
    shapes.append(
        f'<text x="{x:g}" y="{y:g}"{f" class={style!r}" if style else ""}>{escape(text)}</text>'.replace("'", '"', 2 * bool(style))
    )
    width = _LETTER * len(text)
    return Area(x if "left" in style else x - width / 2, y - 12, width, 16)


def _ends(begin: Area, end: Area) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where a straight line leaves an area and reaches another: in the middle of the sides that face each other."""
    if _overlap(begin.y, begin.height, end.y, end.height) > 0:
        y = (max(begin.y, end.y) + min(begin.y + begin.height, end.y + end.height)) / 2
        xs = (begin.x + begin.width, end.x) if begin.x < end.x else (begin.x, end.x + end.width)
        return (xs[0], y), (xs[1], y)
    x = (max(begin.x, end.x) + min(begin.x + begin.width, end.x + end.width)) / 2
    ys = (begin.y + begin.height, end.y) if begin.y < end.y else (begin.y, end.y + end.height)
    return (x, ys[0]), (x, ys[1])


def _overlap(begin: float, length: float, other: float, its_length: float) -> float:
    return min(begin + length, other + its_length) - max(begin, other)


if __name__ == "__main__":
    for name, figure in figures().items():
        (FIGURES / name).write_text(figure, encoding="utf-8")
