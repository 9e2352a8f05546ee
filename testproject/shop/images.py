"""Pictures of products: drawn for the demo, and made smaller for the pages."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from django.conf import settings
from PIL import Image, ImageDraw

SIZE: Final = (1600, 1200)
THUMBNAIL: Final = (480, 360)

Draw = ImageDraw.ImageDraw
INK: Final = "#2f3e46"
SHADE: Final = "#00000022"


def draw_product(kind: str, colour: str, background: str) -> Image.Image:
    """A plain picture of a product of this kind."""
    image = Image.new("RGB", SIZE, background)
    draw = ImageDraw.Draw(image, "RGBA")
    draw.rectangle((0, 900, 1600, 1200), fill=SHADE)
    draw.ellipse((420, 900, 1180, 1010), fill=SHADE)
    KINDS[kind](draw, colour)
    return image


def make_thumbnail(source: Path, target: Path) -> None:
    """Write a smaller copy of a picture. Raises PIL.UnidentifiedImageError."""
    with Image.open(source) as image:
        image.thumbnail(THUMBNAIL, Image.Resampling.LANCZOS)
        save(image, target)


def save(image: Image.Image, target: Path) -> None:
    """Write a picture so that nobody sees half of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(f".{os.getpid()}.part")
    image.save(unfinished, format="PNG", compress_level=3)
    unfinished.replace(target)


def in_media(name: str) -> Path:
    """Where a file of this name is kept."""
    return Path(settings.MEDIA_ROOT) / name


def _mug(draw: Draw, colour: str) -> None:
    draw.ellipse((930, 440, 1190, 740), outline=colour, width=60)
    draw.rounded_rectangle((510, 360, 1010, 950), radius=70, fill=colour)
    draw.ellipse((510, 320, 1010, 430), fill=INK)


def _bowl(draw: Draw, colour: str) -> None:
    draw.pieslice((420, 140, 1180, 960), 0, 180, fill=colour)
    draw.ellipse((420, 490, 1180, 620), fill=INK)
    draw.rounded_rectangle((660, 930, 940, 970), radius=20, fill=colour)


def _lamp(draw: Draw, colour: str) -> None:
    draw.polygon([(640, 240), (960, 240), (1120, 580), (480, 580)], fill=colour)
    draw.rectangle((780, 580, 820, 920), fill=INK)
    draw.rounded_rectangle((620, 900, 980, 960), radius=30, fill=INK)


def _vase(draw: Draw, colour: str) -> None:
    for x, top in ((680, 180), (800, 110), (920, 200)):
        draw.line((800, 520, x, top), fill="#52796f", width=16)
        draw.ellipse((x - 55, top - 55, x + 55, top + 55), fill="#e9c46a")
    draw.rectangle((720, 440, 880, 560), fill=colour)
    draw.ellipse((560, 500, 1040, 970), fill=colour)


def _notebook(draw: Draw, colour: str) -> None:
    draw.rounded_rectangle((560, 240, 1080, 960), radius=30, fill="#fdfaf3")
    draw.rounded_rectangle((530, 230, 1050, 950), radius=30, fill=colour)
    draw.rectangle((900, 230, 940, 950), fill=INK)
    draw.rounded_rectangle((610, 340, 830, 450), radius=14, fill="#fdfaf3")


def _candle(draw: Draw, colour: str) -> None:
    draw.rounded_rectangle((640, 480, 960, 960), radius=36, fill=colour)
    draw.ellipse((640, 450, 960, 520), fill="#fdfaf3")
    draw.line((800, 410, 800, 485), fill=INK, width=12)
    draw.ellipse((758, 270, 842, 430), fill="#e9c46a")


def _board(draw: Draw, colour: str) -> None:
    draw.rounded_rectangle((540, 380, 1060, 960), radius=60, fill=colour)
    draw.rounded_rectangle((740, 200, 860, 460), radius=50, fill=colour)
    draw.ellipse((775, 245, 825, 295), fill=INK)
    for x in (640, 760, 880, 970):
        draw.line((x, 470, x - 20, 900), fill=SHADE, width=10)


def _basket(draw: Draw, colour: str) -> None:
    draw.arc((580, 220, 1020, 940), 180, 360, fill=INK, width=34)
    draw.polygon([(440, 560), (1160, 560), (1070, 960), (530, 960)], fill=colour)
    for y in range(620, 940, 70):
        draw.line((460, y, 1140, y), fill=SHADE, width=18)


KINDS: Final[dict[str, Callable[[Draw, str], None]]] = {
    "mug": _mug,
    "bowl": _bowl,
    "lamp": _lamp,
    "vase": _vase,
    "notebook": _notebook,
    "candle": _candle,
    "board": _board,
    "basket": _basket,
}
