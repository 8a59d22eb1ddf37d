"""The command and its server: what is refused, and that nobody else's page gets in."""

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from small import refusal

from lrsa.errors import LrsaError
from lrsa.studio import page, routes
from lrsa.studio.asking import FIRST, place_of
from lrsa.studio.routes import add_routes

pytest_plugins = ["small_runs"]


class State(dict[str, Any]):
    """As trame's, without a page."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def __setattr__(self, name: str, value: object) -> None:
        self[name] = value

    points = 7


def answers(scratch: Path, *requests: tuple[str, str, dict[str, Any]]) -> list[tuple[int, str]]:
    """Status and text for each (method, path, options)."""

    async def drop(path: Path) -> None:
        if path.suffix == ".stl":
            raise ValueError(f"nothing was foreseen for\n{path}")
        if path.suffix != ".vtu":
            raise LrsaError(f"{path} is of no known format")

    async def download(kind: str) -> Path:
        raise LrsaError("there is no prediction yet")

    async def ask() -> list[tuple[int, str]]:
        app = web.Application()
        add_routes(app, SimpleNamespace(scratch=scratch, state=State(), drop=drop, download=download))
        async with TestClient(TestServer(app)) as client:
            found = []
            for method, path, options in requests:
                answer = await client.request(method, path, **options)
                found.append((answer.status, await answer.text()))
            return found

    return asyncio.run(ask())


def test_a_file_is_kept_under_its_own_name_and_nowhere_else(tmp_path: Path):
    sent = ("POST", "/upload?name=../../etc/part%20one.vtu", {"data": b"mesh"})
    assert answers(tmp_path, sent) == [(200, '{"points": 7}')]
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.vtu")] == ["0/part_one.vtu"]


def test_what_is_wrong_with_a_file_is_said_without_where_it_was_kept(tmp_path: Path):
    """Whatever went wrong with it, foreseen or not, the answer is 4xx."""
    sent = [("POST", f"/upload?name=a.{suffix}", {"data": b"words"}) for suffix in ("doc", "stl")]
    assert answers(tmp_path, *sent) == [
        (422, '{"problem": "a.doc is of no known format"}'),
        (422, '{"problem": "a.stl makes no case (ValueError: nothing was foreseen for a.stl)"}'),
    ]


def test_a_file_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(routes, "LARGEST", 10)
    ((status, _),) = answers(tmp_path, ("POST", "/upload?name=a.vtu", {"data": b"0" * 11}))
    assert status == 413
    assert not list(tmp_path.rglob("*.vtu"))


@pytest.mark.parametrize("header", [{"Origin": "http://elsewhere.example"}, {"Host": "elsewhere.example"}])
def test_another_page_in_the_same_browser_gets_nothing(tmp_path: Path, header: dict[str, str]):
    sent = {"data": b"mesh", "headers": header}
    assert answers(tmp_path, ("POST", "/upload?name=a.vtu", sent))[0][0] == 403
    assert not list(tmp_path.iterdir())


def test_a_download_before_there_is_a_prediction_says_so(tmp_path: Path):
    asked = [("GET", f"/download/{kind}", {}) for kind in ("vtu", "exe")]
    assert answers(tmp_path, *asked) == [(409, "there is no prediction yet"), (404, "404: Not Found")]


def test_every_name_on_the_page_has_a_first_value():
    """A name that the state does not have would be an error in the browser."""
    import re

    text = (Path(page.__file__).parent / "page.html").read_text()
    bound = re.findall(r'v-(?:model(?:\.lazy)?|bind|if|show|html|else-if)="([^"]*)"', text)
    words = {
        word
        for part in bound
        for word in re.findall(r"(?<![\w.'\"])[a-z_]+(?!\w)", re.sub("'[^']*'", "", part))
    }
    assert words - {"row", "length"} <= set(FIRST)


@pytest.mark.usefixtures("home")
def test_a_folder_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert "nowhere is no folder" in refusal(capsys, "studio", tmp_path / "nowhere")


@pytest.mark.usefixtures("home")
def test_without_the_extra_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for name in [name for name in sys.modules if name.partition(".")[0] == "trame"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "trame", None)
    monkeypatch.delitem(sys.modules, "lrsa.studio.page", raising=False)
    assert "pip install lrsa[studio]" in refusal(capsys, "studio", tmp_path)


@pytest.mark.parametrize(("words", "place"), [("1, 2", [1, 2, 0]), ("1;2;3", [1, 2, 3]), ("5", [5, 0, 0])])
def test_places_are_read_as_they_are_typed(words: str, place: list[float]):
    found = place_of(words)
    assert found is not None
    assert found.tolist() == place


@pytest.mark.parametrize("words", ["", None, "here", "1, nan"])
def test_what_is_no_place_is_none(words: str | None):
    assert place_of(words) is None
