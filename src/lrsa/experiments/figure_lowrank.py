"""Figure 1, left: the Green's function of 1-D Poisson is of low rank.

-u'' = f in (0, 1), u = 0 at both ends, is solved by u(x) = ∫ κ(x, y) f(y) dy with

    κ(x, y) = min(x, y) (1 - max(x, y)) = Σ_k λ_k φ_k(x) φ_k(y),   λ_k = 1 / (kπ)²,  φ_k = √2 sin(kπx).

At N midpoints with their quadrature weight 1/N it is the matrix K. The best approximation of rank r is its
truncated singular value decomposition, whose error in the Frobenius norm is (Σ_{k>r} σ_k²)^½ (Eckart and
Young 1936). Beside it: U G Vᵀ from r of its own columns at equidistant points (Nyström).
"""

import platform
from dataclasses import asdict, dataclass
from functools import cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from lrsa.experiments.experiment import Experiment
from lrsa.experiments.page import Grid, Page, Plot, Section, Value
from lrsa.experiments.study import Work
from lrsa.report.figures import ACCENT, INK, SOFT, WARM

ALT = "Kernel, rank-4 reconstruction, spectral decay, error"
POINTS = 512
RANKS = 32
"""Ranks and singular values that are shown."""
SHOWN = 4
"""The rank of the reconstruction that is drawn."""


@dataclass(frozen=True)
class Decay:
    """What the figure shows, one number per rank r = 1, 2, ..."""

    points: int
    singular_values: list[float]
    eigenvalues: list[float]
    """Exact: 1 / (kπ)²."""
    truncated: list[float]
    """Relative error ‖K - K_r‖ / ‖K‖ of the truncated decomposition, Frobenius norm, measured."""
    bound: list[float]
    """Of the exact kernel: no operator of rank r comes closer (Eckart and Young)."""
    columns: list[float]
    """Relative error of U G Vᵀ from r columns of K."""


class FigureLowRank(Experiment):
    """Kernel, reconstruction, spectral decay, error."""

    name = "figure-lowrank"
    about = "the Green's function of 1-D Poisson and its low rank (figure 1)"

    def page(self, work: Work) -> Page:
        decay = poisson()
        figure = draw(green(POINTS), decay)
        note = (
            f"N = {decay.points} midpoints, numpy {np.__version__}, Python {platform.python_version()}."
            " Nothing is random. Errors are relative, Frobenius norm."
        )
        return Page(
            self.name,
            "Figure 1, left: the Green's function of 1-D Poisson is of low rank",
            "The kernel that solves the simplest of all boundary value problems, its best approximation of"
            " rank 4, its singular values, and the error of every rank.",
            "lrsa reproduce figure-lowrank",
            self.name,
            "exact",
            [Section(plots=[Plot("", ALT, "", figure)], grids=[table(decay)], notes=[note])],
            asdict(decay),
        )


def green(points: int) -> np.ndarray:
    """K (N, N) = κ(x_i, x_j) / N at the midpoints x_i = (i + ½) / N: K f is the solution u."""
    x = midpoints(points)
    return np.minimum.outer(x, x) * (1 - np.maximum.outer(x, x)) / points


def midpoints(points: int) -> np.ndarray:
    """The centres of N equal cells of (0, 1)."""
    return (np.arange(points) + 0.5) / points


def truncate(kernel: np.ndarray, rank: int) -> np.ndarray:
    """The best approximation of that rank, U_r Σ_r V_rᵀ."""
    u, sigma, vt = np.linalg.svd(kernel)
    return (u[:, :rank] * sigma[:rank]) @ vt[:rank]


def columns(kernel: np.ndarray, rank: int) -> np.ndarray:
    """U G Uᵀ with U = K[:, c] at r equidistant points c, G = K[c, c]⁻¹."""
    chosen = np.round((np.arange(rank) + 1) / (rank + 1) * len(kernel) - 0.5).astype(int)
    some = kernel[:, chosen]
    return some @ np.linalg.solve(kernel[np.ix_(chosen, chosen)], some.T)


def measure(kernel: np.ndarray, ranks: int) -> Decay:
    """Singular values and errors for r = 1 ... `ranks`."""
    each = np.arange(1, ranks + 1)
    u, sigma, vt = np.linalg.svd(kernel)
    norm = np.linalg.norm(kernel)
    truncated = [np.linalg.norm(kernel - (u[:, :r] * sigma[:r]) @ vt[:r]) / norm for r in each]
    # ‖κ‖² = Σ (kπ)⁻⁴ = 1/90 over all k: what the first r terms leave.
    tail = 1 / 90 - np.cumsum((each * np.pi) ** -4.0)
    return Decay(
        points=len(kernel),
        singular_values=sigma[:ranks].tolist(),
        eigenvalues=((each * np.pi) ** -2.0).tolist(),
        truncated=[float(error) for error in truncated],
        bound=np.sqrt(np.maximum(tail, 0) * 90).tolist(),
        columns=[float(np.linalg.norm(kernel - columns(kernel, int(r))) / norm) for r in each],
    )


@cache
def poisson() -> Decay:
    """Of the figure, and of the claim about it."""
    return measure(green(POINTS), RANKS)


def draw(kernel: np.ndarray, decay: Decay) -> Figure:
    """Kernel, reconstruction, spectral decay, error."""
    figure = Figure(figsize=(11.6, 2.9), layout="constrained")
    a, b, c, d = figure.subplots(1, 4, width_ratios=(1, 1, 1.05, 1.05))
    image = _kernel(a, kernel, "(a) Green's function κ(x, y)")
    _kernel(b, truncate(kernel, SHOWN), f"(b) rank {SHOWN}: error {decay.truncated[SHOWN - 1]:.1%}")
    bar = figure.colorbar(image, ax=[a, b], shrink=0.75, aspect=18, pad=0.02, ticks=[0, 0.125, 0.25])
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    r = np.arange(1, len(decay.bound) + 1)
    c.loglog(r, decay.eigenvalues, color=WARM, linewidth=1.6, label="exact, 1/(kπ)²")
    c.loglog(r, decay.singular_values, "o", color=ACCENT, markersize=3.6, label=f"matrix, N = {decay.points}")
    c.set(title="(c) singular values", xlabel="k", ylabel="σₖ")
    d.loglog(r, decay.columns, "-", color=SOFT, linewidth=1.3, label="r columns of K")
    d.loglog(r, decay.bound, color=WARM, linewidth=1.6, label="Eckart–Young bound")
    d.loglog(r, decay.truncated, "o", color=ACCENT, markersize=3.6, label="truncated SVD")
    d.set(title="(d) relative error of rank r", xlabel="r", ylabel="‖K − U G Vᵀ‖ / ‖K‖")
    for axes in (c, d):
        axes.set_xticks([1, 2, 4, 8, 16, 32], labels=["1", "2", "4", "8", "16", "32"])
        axes.minorticks_off()
        axes.set_box_aspect(1)
        axes.grid(which="major")
        axes.set_axisbelow(True)
        axes.legend(loc="lower left")
    d.set_ylim(bottom=decay.bound[-1] / 5)
    c.set_ylim(bottom=decay.eigenvalues[-1] / 2)
    return figure


def table(decay: Decay) -> Grid:
    """The numbers at powers of two."""
    rows = zip(
        decay.singular_values, decay.eigenvalues, decay.truncated, decay.bound, decay.columns, strict=True
    )
    head = [
        "r",
        "σ_r of the matrix",
        "exact 1/(rπ)²",
        "truncated SVD",
        "Eckart–Young bound",
        "r columns of K",
    ]
    return Grid(
        head,
        [
            (str(r), [Value(f"{value:.3e}") for value in values])
            for r, values in enumerate(rows, start=1)
            if r & (r - 1) == 0
        ],
    )


def _kernel(axes: Axes, kernel: np.ndarray, title: str) -> AxesImage:
    image = axes.imshow(
        len(kernel) * kernel, cmap="viridis", vmin=0, vmax=0.25, extent=(0, 1, 1, 0), interpolation="bilinear"
    )
    axes.set(xlabel="y", ylabel="x", xticks=[0, 1], yticks=[0, 1])
    axes.set_title(title, color=INK)
    return image
