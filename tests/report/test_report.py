"""The report: one file that opens offline and says what was measured."""

import base64
import json
import re
import tomllib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from small import copy_run, frames, grid_cases, quick, ragged_cases, write

from lrsa.data.store import Schema
from lrsa.data.writing import write_dataset
from lrsa.evaluation.evaluate import evaluate
from lrsa.pointset import Names, PointSet
from lrsa.report.figures import sample_pictures
from lrsa.report.pictures import draw_pictures
from lrsa.report.printing import number
from lrsa.report.report import write_report
from lrsa.training.config import RunConfig

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")
VOID = {"meta", "img", "br", "wbr", "hr", "link", "input", "col"}
CLOSED_BY_OTHERS = {"html", "head", "body", "p", "tr", "td", "th", "li", "thead", "tbody"}


class Page(HTMLParser):
    """The tags, attributes and words of a page; unbalanced tags are errors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.attributes: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not [tag for tag in self.open if tag not in CLOSED_BY_OTHERS]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [value or "" for _, value in attrs]
        if tag == "img":
            self.images.append(dict(attrs))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open[-1] != tag:
            assert self.open.pop() in CLOSED_BY_OTHERS, f"</{tag}> closes nothing"
        assert self.open, f"</{tag}> closes nothing"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def page(trained: Path) -> Page:
    return Page((trained / "report.html").read_text())


def test_nothing_is_loaded_from_elsewhere(trained: Path, page: Page) -> None:
    whole = (trained / "report.html").read_text()
    assert not re.findall(r"https?://|//cdn|@import|<script src|<link", whole)
    assert all(attribute.startswith("data:") or "//" not in attribute for attribute in page.attributes)
    assert all(not source.startswith("http") for source in re.findall(r"url\(([^)]*)\)", whole))


def test_the_pictures_are_inside_and_described(page: Page) -> None:
    assert len(page.images) >= 5
    for image in page.images:
        kind, _, data = (image["src"] or "").partition(",")
        assert kind == "data:image/png;base64"
        assert base64.b64decode(data).startswith(b"\x89PNG")
        assert image["alt"]


def test_the_numbers_are_those_of_the_evaluation(trained: Path, page: Page) -> None:
    kept = json.loads((trained / "evaluation.json").read_text())
    assert number(kept["relative_l2"]) in page.text
    for name, value in kept["nulls"].items():
        assert name in page.text
        assert number(value) in page.text
    for name, metrics in kept["fields"].items():
        assert name in page.text
        for value in metrics.values():
            assert f"{value:.4g}" in page.text
    for case in kept["table"]:
        assert number(case["relative_l2"]) in page.text


def test_it_says_how_it_was_made(trained: Path, page: Page) -> None:
    config = RunConfig.load(trained)
    assert f"{config.model} on {config.schema.name}" in page.text
    assert config.data.path in page.text
    for name in ("epochs", "batch_size", "max_lr", "seed"):
        assert str(getattr(config.train, name)) in page.text
    assert config.versions["torch"] in page.text
    assert "imported" in page.text


def test_the_figures_are_kept_as_files(trained: Path) -> None:
    figures = list((trained / "figures").iterdir())
    assert (trained / "figures" / "training.png") in figures
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in figures if path.suffix == ".png")


@pytest.mark.parametrize(
    "left", ['{"epoch": 4, "lo', '{"epoch": 4, "loss": 0.1, "validation": "\xff', "\0\0\0"]
)
def test_a_half_written_line_of_the_curve_does_not_count(trained: Path, left: str) -> None:
    """As a killed training leaves it: the report is that of the epochs that were finished."""
    run = copy_run(trained, Path("run"))
    with open(run / "metrics.jsonl", "ab") as file:
        file.write(left.encode("latin-1"))
    assert "epochs trained 3 " in Page(write_report(run).read_text()).text


def test_a_run_without_its_curve_is_reported_without_it(trained: Path) -> None:
    run = copy_run(trained, Path("run"))
    (run / "metrics.jsonl").unlink()
    assert "epochs trained" not in Page(write_report(run).read_text()).text


def test_names_of_users_are_text_and_not_markup() -> None:
    """Whatever a data set calls itself or its fields."""
    names = Names(("<q1>", "y"), ("<q2>",), ("<q3>",), units={"<q3>": "<q4>"})
    cases = [PointSet(case.x, case.f, case.u, grid=case.grid, names=names) for case in grid_cases(5)]
    schema = Schema("<q5>&", "<q6>", names=names, provenance={"<q7>": "<img src='http://q8'>"})
    write_dataset("odd.h5", {"train": cases, "test": cases[:2]}, schema)
    quick(Path("odd.h5"), "run", epochs=1)
    whole = write_report(Path("run")).read_text()
    assert not re.findall(r"<q\d|<img src='http", whole)
    said = Page(whole).text
    assert all(f"<q{i}>" in said for i in (2, 3, 5, 6, 7))


def test_all_that_a_page_is_made_of_is_installed() -> None:
    root = Path(__file__).parents[2]
    settings = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]
    installed = {p for pattern in settings["package-data"]["lrsa"] for p in (root / "src/lrsa").glob(pattern)}
    there = {p for p in (root / "src/lrsa").rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    assert {p for p in there if p.suffix != ".py"} == installed


def test_points_without_a_mesh_and_of_different_sizes_are_reported() -> None:
    quick(write(Path("ragged.h5"), ragged_cases(5), ragged_cases(2, 1)), "run", epochs=1, validation=0)
    page = Page(write_report(Path("run")).read_text())
    assert evaluate(Path("run")).points in page.text


@pytest.mark.parametrize(("kind", "count"), [("time-conditioned", 3), ("autoregressive", 12)])
def test_frames_in_time_are_reported(kind: str, count: int) -> None:
    cases = [frames(case, count) for case in grid_cases(4, side=4)]
    quick(write(Path("frames.h5"), cases, cases[:2], kind), "run", epochs=1)
    page = Page(write_report(Path("run")).read_text())
    assert number(evaluate(Path("run")).relative_l2) in page.text
    assert "last frame, truth and prediction" in page.text


def test_points_that_move_are_drawn_where_they_are() -> None:
    x = np.random.default_rng(0).random((12, 2)).astype(np.float32)
    u = np.stack([np.concatenate([x + t, np.full_like(x, t)], axis=1) for t in (0.0, 2.0)])
    still = PointSet(x, u=u, times=np.arange(2.0), names=Names(("x", "y"), (), ("a", "b", "c", "d")))
    moving = replace(still, names=Names(("x", "y"), (), ("x_t", "y_t", "u_x", "u_y")))
    assert np.array_equal(sample_pictures(still)["a, last frame"].case.x, x)
    picture = sample_pictures(moving)["u_y, last frame"]
    assert np.array_equal(picture.case.x, x + 2)
    assert np.array_equal(picture.values, np.full(12, 2.0))


def test_a_body_is_drawn_by_what_varies_on_it_with_its_up_above() -> None:
    """Of points around a square in space only the square has cells; y is up."""
    x = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0.5], [0, 1, 0.5], [5, 6, 7]], np.float32)
    f = np.array([[0, 1], [0, 1], [0, 1], [0, 2], [9, 9]], np.float32)
    u = np.array([[0, 5], [0, 6], [0, 7], [0, 8], [3, 0]], np.float32)
    known = np.array([[True, True]] * 4 + [[True, False]])
    names = Names(("x", "y", "z"), ("sdf", "n"), ("w", "p"), up="y")
    case = PointSet(x, f, u, known, cells=np.array([[0, 1, 2, 3]]), names=names)
    made = sample_pictures(case)
    assert list(made) == ["n", "p"]
    assert (made["p"].low, made["p"].high) == (5, 8)
    lying = [replace(made["p"], case=replace(case, names=replace(names, up=up))) for up in "xy"]
    one, other = draw_pictures(lying)
    assert one.shape != other.shape or not np.array_equal(one, other)


def test_every_unnamed_target_is_reported() -> None:
    cases = [PointSet(c.x, c.f, np.hstack([c.u, 2 * c.u]), grid=c.grid) for c in grid_cases(5)]  # pyright: ignore[reportArgumentType, reportCallIssue, reportOperatorIssue]
    lrsa_data = Path("two.h5")
    write_dataset(lrsa_data, {"train": cases, "test": cases[:2]})
    quick(lrsa_data, "run", epochs=1)
    found = evaluate(Path("run"))
    assert list(found.fields) == ["u0", "u1"]
    page = Page(write_report(Path("run")).read_text())
    for metrics in found.fields.values():
        assert f"{metrics['mse']:.4g}" in page.text


def test_the_report_can_be_of_an_evaluation_at_other_samplings(trained: Path) -> None:
    run = copy_run(trained, Path("run"))
    found = evaluate(run, stride=(1, 2))
    page = Page(write_report(run, found).read_text())
    for sampling in found.samplings:
        assert number(sampling.self_consistency) in page.text
