"""Navier-Stokes: the scheme against exact solutions, its own laws and the published scheme."""

import json
from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

from lrsa.errors import LrsaError
from lrsa.numerics.random_fields import fourier_modes
from lrsa.pointset import PointSet
from lrsa.problems.navier_stokes.solver import MODES, NavierStokes, VorticityFlow

NO_FORCE = np.zeros((2, 3), complex)
DOUBLE = torch.float64


def modes(seed: int = 0, gain: float = 1.0) -> np.ndarray:
    return gain * fourier_modes(np.random.default_rng(seed), MODES, 7.0, 2.5)


def grid(n: int) -> tuple[np.ndarray, np.ndarray]:
    t = np.arange(n) / n
    x, y = np.meshgrid(t, t, indexing="ij")
    return x, y


def spectrum_of(flow: VorticityFlow, field: np.ndarray) -> Tensor:
    """The spectrum of values on the grid, by another transform than the solver's."""
    full = np.fft.fft2(field).T / field.size  # rows k_y, columns k_x
    kept = np.abs(np.fft.fftfreq(len(field), 1 / len(field))) <= flow.cut
    return torch.tensor((full * kept)[: flow.cut + 1], dtype=flow.dtype.to_complex())


def tendency(flow: VorticityFlow, w: Tensor) -> Tensor:
    flat = torch.view_as_real(w).flatten(-2)
    out = torch.empty_like(flat)
    flow.tendency(flat, out)
    return torch.view_as_complex(out.unflatten(-1, (-1, 2)))


def distance(a: Tensor | np.ndarray, b: Tensor | np.ndarray) -> float:
    a, b = np.asarray(a), np.asarray(b)
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def frames(case: PointSet) -> np.ndarray:
    assert case.u is not None
    return case.u


@pytest.mark.parametrize("resolution", [16, 33])
def test_the_forced_shear_flow_is_exact(resolution: int) -> None:
    """A function of x + y advects nothing: w = (1 - exp(-λt)) f / λ + exp(-λt) w_0, λ = 8π²ν."""
    solver = NavierStokes(resolution=resolution, dtype="float64")
    flow, (x, y) = solver.flow(), grid(resolution)
    s = 2 * np.pi * (x + y)
    f, start = 0.1 * (np.sin(s) + np.cos(s)), np.cos(2 * s)
    rates = [8 * np.pi**2 * k**2 * solver.viscosity for k in (1, 2)]
    for t, w in zip((1, 7, 20), flow.frames(spectrum_of(flow, start), (1, 7, 20)), strict=True):
        exact = -np.expm1(-rates[0] * t) / rates[0] * f + np.exp(-rates[1] * t) * start
        assert distance(w, exact) < 1e-10


def test_cellular_flows_only_decay() -> None:
    """Taylor and Green: where Δw = -4π²·25 w, the vorticity is constant along streamlines."""
    flow, (x, y) = VorticityFlow(48, 1e-3, NO_FORCE, DOUBLE), grid(48)
    rng = np.random.default_rng(0)
    start = np.zeros_like(x)
    for j, k in ((5, 0), (0, 5), (3, 4), (4, 3), (3, -4), (4, -3)):
        a, b = rng.standard_normal(2)
        start += a * np.cos(2 * np.pi * (j * x + k * y)) + b * np.sin(2 * np.pi * (j * x + k * y))
    (w,) = flow.frames(spectrum_of(flow, start), [1.0])
    assert distance(w, np.exp(-4 * np.pi**2 * 25 * 1e-3) * start) < 1e-10


def test_the_tendency_is_the_advection_of_the_vorticity_by_its_own_velocity() -> None:
    """-(u w_x + v w_y), w = v_x - u_y, by plain complex transforms."""
    n = 32
    flow = VorticityFlow(n, 0.0, NO_FORCE, DOUBLE)
    w = flow.spectrum(modes())
    full = np.fft.fft2(flow.field(w).numpy())
    kx, ky = (2j * np.pi * k for k in np.meshgrid(*[np.fft.fftfreq(n, 1 / n)] * 2, indexing="ij"))
    stream = -full / np.where((kx == 0) & (ky == 0), 1, kx**2 + ky**2)
    u, v, w_x, w_y = (np.fft.ifft2(a).real for a in (ky * stream, -kx * stream, kx * full, ky * full))
    assert distance(np.fft.ifft2(kx * np.fft.fft2(v) - ky * np.fft.fft2(u)).real, flow.field(w)) < 1e-12
    assert distance(tendency(flow, w), spectrum_of(flow, -(u * w_x + v * w_y))) < 1e-12


@pytest.mark.parametrize("n", [31, 32, 33, 34, 48])
def test_products_do_not_alias(n: int) -> None:
    """2/3 rule: the modes that are kept get from each other what they get on a grid twice as fine."""
    coarse, fine = (VorticityFlow(size, 0.0, NO_FORCE, DOUBLE) for size in (n, 2 * n))
    k = coarse.cut
    assert 3 * k < n <= 3 * (k + 1)
    band = np.concatenate([modes()[: k + 1, : k + 1], modes()[: k + 1, -k:]], axis=1)
    ours, theirs = (tendency(flow, flow.spectrum(band)) for flow in (coarse, fine))
    assert not ours[:, k + 1 : n - k].any()
    for part in (slice(k + 1), slice(-k, None)):
        assert distance(ours[:, part], theirs[: k + 1, part]) < 1e-12
    assert theirs[k + 1 :].abs().max() > 1e-3 * theirs.abs().max()


def test_advection_makes_neither_energy_nor_enstrophy() -> None:
    n = 32
    flow = VorticityFlow(n, 0.0, NO_FORCE, DOUBLE)
    w = flow.spectrum(modes())
    field, change = flow.field(w), flow.field(tendency(flow, w))
    kx, ky = np.fft.fftfreq(n, 1 / n), np.arange(flow.cut + 1)[:, None]
    stream = flow.field(w / torch.tensor(4 * np.pi**2 * np.maximum(kx**2 + ky**2, 1)))
    for weight in (field, stream):
        assert abs(float((weight * change).mean())) < 1e-13 * float(weight.norm() * change.norm()) / n**2 * n


def test_enstrophy_changes_by_what_the_force_adds_and_the_viscosity_takes() -> None:
    """d/dt ½⟨w²⟩ = ⟨f w⟩ - ν⟨|∇w|²⟩, its integral by Simpson's rule (whose error is the 3e-8)."""
    n, viscosity = 32, 1e-3
    flow = NavierStokes(resolution=n, viscosity=viscosity, dtype="float64").flow()
    x, y = grid(n)
    f = 0.1 * (np.sin(2 * np.pi * (x + y)) + np.cos(2 * np.pi * (x + y)))
    k = 2j * np.pi * np.fft.fftfreq(n, 1 / n)
    times = np.linspace(0, 2, 161)
    start = flow.spectrum(modes(gain=3))
    fields = [
        flow.field(start).numpy(),
        *(w.numpy() for w in flow.frames(start, times[1:].tolist(), longest=0.0125)),
    ]
    rates = []
    for w in fields:
        full = np.fft.fft2(w)
        gradient = [np.fft.ifft2(a).real for a in (k[:, None] * full, k * full)]
        rates.append((f * w).mean() - viscosity * sum((g**2).mean() for g in gradient))
    simpson = np.r_[1, np.tile([4, 2], 80)[:-1], 1] * (times[1] / 3)
    gained = 0.5 * (fields[-1] ** 2).mean() - 0.5 * (fields[0] ** 2).mean()
    assert abs(gained - simpson @ rates) < 1e-7 * abs(gained)


def test_the_steps_are_of_fourth_order() -> None:
    flow = NavierStokes(resolution=32, viscosity=1e-3, dtype="float64").flow()
    start = flow.spectrum(modes(gain=10))

    def solve(step: float) -> Tensor:
        return flow.advance(start, 0.8, courant=float("inf"), longest=step)

    exact = solve(0.0025)
    errors = [distance(solve(step), exact) for step in (0.04, 0.02, 0.01)]
    assert all(3.8 < np.log2(a / b) < 4.2 for a, b in pairwise(errors)), errors
    assert errors[-1] < 1e-6


def test_turned_and_shifted_starts_give_turned_and_shifted_flows() -> None:
    """Without force; a mirror turns the vorticity round."""
    flow = VorticityFlow(32, 1e-4, NO_FORCE, DOUBLE)
    start = flow.field(flow.spectrum(modes(gain=3))).numpy()
    (end,) = flow.frames(spectrum_of(flow, start), [1.0])
    assert distance(end, start) > 0.1

    def mirror(w: np.ndarray) -> np.ndarray:
        return -w.T

    def quarter(w: np.ndarray) -> np.ndarray:
        return np.roll(np.rot90(w), 1, axis=0)  # about the first grid point

    def shift(w: np.ndarray) -> np.ndarray:
        return np.roll(w, (3, 7), (0, 1))

    for turn in (mirror, quarter, shift):
        (other,) = flow.frames(spectrum_of(flow, turn(start)), [1.0])
        assert distance(other, turn(end.numpy())) < 1e-10, turn.__name__


def test_frames_are_recorded_at_their_times_whatever_the_steps() -> None:
    """0.3 and 1 are no multiples of the steps that the velocity asks for."""
    flow = NavierStokes(resolution=32, dtype="float64").flow()
    start = flow.spectrum(modes())
    some = list(flow.frames(start, (1, 2, 3)))
    more = list(flow.frames(start, (0.3, 1, 1.01, 2, 3)))
    for ours, theirs in zip(some, (more[1], more[3], more[4]), strict=True):
        assert distance(ours, theirs) < 1e-5
    assert distance(more[2], more[1]) > 1e-3


def test_a_case_has_the_frames_from_time_one_on_at_every_other_point() -> None:
    solver = NavierStokes(resolution=32, stride=2, frames=3)
    case, flow = solver.sample(np.random.default_rng(5)), NavierStokes(resolution=32, dtype="float64").flow()
    exact = flow.frames(flow.spectrum(modes(5)), (1, 2, 3), courant=1, longest=0.01)
    assert distance(frames(case), np.stack([w[::2, ::2].reshape(-1, 1) for w in exact])) < 1e-4
    assert case.f is None
    assert case.grid == (16, 16)
    assert case.names == NavierStokes.names
    assert case.times is not None
    assert case.times.tolist() == [1, 2, 3]
    assert case.weights is not None
    assert np.isclose(case.weights.sum(), 1)
    x, y = grid(16)
    assert np.allclose(case.x, np.stack([x.ravel(), y.ravel()], axis=1))
    assert all(array.dtype == np.float32 for array in case.arrays().values())


def test_the_same_seed_gives_the_same_bits_and_another_seed_another_case() -> None:
    solver = NavierStokes(resolution=48, stride=3, frames=2)
    one, same, other = (solver.sample(np.random.default_rng(seed)) for seed in (7, 7, 8))
    for name, array in one.arrays().items():
        assert array.tobytes() == same.arrays()[name].tobytes()
    assert not np.array_equal(frames(one), frames(other))


def test_every_resolution_solves_the_same_case() -> None:
    coarse, fine = (NavierStokes(resolution=n, stride=n // 16, frames=1) for n in (64, 96))
    ours, theirs = (frames(solver.sample(np.random.default_rng(1))) for solver in (coarse, fine))
    assert distance(ours, theirs) < 0.03


def test_the_start_has_the_published_spectrum() -> None:
    """E|ŵ_k|² = 2·7³ (4π²|k|² + 49)^-2.5 and zero mean; the field is real and of deviation 0.26."""
    rng = np.random.default_rng(0)
    draws = np.stack([fourier_modes(rng, MODES, 7.0, 2.5) for _ in range(300)])
    kx, ky = np.fft.fftfreq(2 * MODES + 1, 1 / (2 * MODES + 1)), np.arange(MODES + 1)[:, None]
    expected = 2 * 343 * (4 * np.pi**2 * (kx**2 + ky**2) + 49) ** -2.5
    assert not draws[:, 0, 0].any()
    ratios = (np.abs(draws) ** 2).mean(0) / expected
    ratios[0, 0] = 1.0
    assert np.abs(ratios - 1).max() < 0.35  # five deviations
    assert np.abs(ratios.mean() - 1) < 2e-3
    assert np.abs((draws**2).mean(0) / expected)[:, 1:].max() < 0.35  # no preferred phase
    assert np.array_equal(draws[:, 0, 1:], draws[:, 0, :0:-1].conj())
    flow = VorticityFlow(256, 0.0, NO_FORCE)
    variance = np.mean([float(flow.field(flow.spectrum(draw)).var()) for draw in draws[:100]])
    whole = expected.sum() * 2 - expected[0].sum() - expected[0, 0]
    assert np.isclose(variance, whole, rtol=0.1)
    assert np.isclose(np.sqrt(whole), 0.26, atol=0.01)


def test_the_parameters_survive_json() -> None:
    solver = NavierStokes(resolution=64, dtype="float64")
    assert NavierStokes(**json.loads(json.dumps(asdict(solver)))) == solver


def test_steps_that_are_too_long_are_refused_in_one_line() -> None:
    flow = VorticityFlow(32, 0.0, NO_FORCE)
    with pytest.raises(LrsaError, match="diverged"):
        flow.advance(flow.spectrum(modes(gain=100)), 50.0, courant=100, longest=10)


def test_an_unknown_arithmetic_and_a_grid_of_no_modes_are_refused() -> None:
    with pytest.raises(LrsaError, match="float32, float64"):
        NavierStokes(dtype="float16").flow()
    with pytest.raises(LrsaError, match="too coarse"):
        NavierStokes(resolution=3).flow()


def crank_nicolson(flow: VorticityFlow, w: Tensor, viscosity: float, duration: float, step: float) -> Tensor:
    """The published scheme: Crank-Nicolson for the viscous term, explicit Euler for the rest."""
    n = flow.resolution
    kx, ky = np.fft.fftfreq(n, 1 / n), np.arange(flow.cut + 1)[:, None]
    half = torch.tensor(0.5 * step * viscosity * 4 * np.pi**2 * (kx**2 + ky**2))
    for _ in range(round(duration / step)):
        w = ((1 - half) * w + step * tendency(flow, w)) / (1 + half)
    return w


@pytest.mark.slow
def test_the_published_scheme_converges_to_ours_at_first_order() -> None:
    solver = NavierStokes(resolution=64, dtype="float64")
    flow = solver.flow()
    start = flow.spectrum(modes())
    ours = flow.advance(start, 1.0)
    errors = [
        distance(crank_nicolson(flow, start, solver.viscosity, 1.0, h), ours) for h in (1e-2, 1e-3, 1e-4)
    ]
    assert 8 < errors[0] / errors[1] < 12, errors
    assert errors[2] < 5e-5, errors


@pytest.mark.slow
def test_single_precision_and_long_steps_are_below_a_thousandth_at_the_last_frame() -> None:
    exact_flow = NavierStokes(resolution=128, dtype="float64").flow()
    exact = list(exact_flow.frames(exact_flow.spectrum(modes()), (10, 20), courant=1, longest=0.02))
    flow = NavierStokes(resolution=128).flow()
    single = flow.frames(flow.spectrum(modes()), (10, 20))
    for ours, theirs in zip(single, exact, strict=True):
        assert distance(ours, theirs) < 1e-3


@pytest.mark.slow
def test_the_fast_fidelity_is_close_to_the_default() -> None:
    """Relative L2 at t = 10, 15, 20; the flow is chaotic, so that differences grow."""
    fast, default = (
        frames(NavierStokes(resolution=n, stride=n // 64).sample(np.random.default_rng(0)))
        for n in (128, 256)
    )
    for t, bound in ((10, 0.01), (15, 0.03), (20, 0.1)):
        assert distance(fast[t - 1], default[t - 1]) < bound
