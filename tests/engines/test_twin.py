"""The twins against equations by hand. Pictures are 9×9, the optical axis meets the middle pixel in its centre."""

from dataclasses import replace

import numpy as np
import pytest

from hushsplat.engines.torch import renderers as twin
from hushsplat.types.camera import Camera
from hushsplat.types.errors import RenderError, SceneError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.harmonics import SH_C0
from hushsplat.types.rotations import matrix_from_quaternion

MIDDLE = (4, 4)
FOCAL = 100.0
RED, GREEN, BLUE = (0.9, 0.1, 0.2), (0.2, 0.8, 0.1), (0.1, 0.3, 0.7)


def camera(width=9, height=9, fx=FOCAL, fy=FOCAL, cx=4.5, cy=4.5, pose=None) -> Camera:
    return Camera(width, height, fx, fy, cx, cy, np.eye(4) if pose is None else pose)


def scene(*gaussians: dict, columns: int = 2) -> Gaussians:
    """Gaussians of one colour each, facing the camera unless told."""

    def column(name, default):
        return np.array([gaussian.get(name, default) for gaussian in gaussians], dtype=np.float32)

    return Gaussians(
        means=column("mean", (0, 0, 2)),
        scales=column("scales", (0.1,) * columns),
        rotations=column("rotation", (1, 0, 0, 0)),
        opacities=column("opacity", 1.0),
        sh=((column("color", RED) - 0.5) / SH_C0)[:, None, :],
    )


def turn(axis, angle_deg: float) -> tuple[float, ...]:
    """The quaternion wxyz of a turn about an axis."""
    half = np.radians(angle_deg) / 2
    axis = np.asarray(axis, dtype=np.float64) / np.linalg.norm(axis)
    return (float(np.cos(half)), *(np.sin(half) * axis).tolist())


def pixels(view: Camera):
    """((row, column), ray) of every pixel."""
    for row, column in np.ndindex(view.height, view.width):
        yield (row, column), np.array([(column + 0.5 - view.cx) / view.fx, (row + 0.5 - view.cy) / view.fy, 1.0])


@pytest.mark.parametrize("render", [twin.reference, twin.exact])
@pytest.mark.parametrize("columns", [2, 3])
def test_an_opaque_gaussian_shows_its_colour(render, columns):
    picture = render(scene({}, columns=columns), camera(), background=(0.0, 0.0, 1.0))
    np.testing.assert_allclose(picture.color[MIDDLE], RED, atol=1e-6)
    assert picture.alpha[MIDDLE] == 1
    assert picture.depth[MIDDLE] == pytest.approx(2, rel=1e-6)


def test_alpha_one_sigma_from_the_centre_of_a_surfel():
    sigma_px = (3, 2)
    surfel = {"scales": [px * 2 / FOCAL for px in sigma_px], "opacity": 0.8}
    alpha = twin.exact(scene(surfel), camera()).alpha
    assert alpha[MIDDLE] == pytest.approx(0.8)
    assert alpha[4, 4 + 3] == alpha[4, 4 - 3] == pytest.approx(0.8 * np.exp(-0.5), rel=1e-5)
    assert alpha[4 + 2, 4] == alpha[4 - 2, 4] == pytest.approx(0.8 * np.exp(-0.5), rel=1e-5)


def test_a_tilted_surfel_is_where_the_ray_meets_its_plane():
    view = camera(fx=20.0, fy=25.0, cx=3.2, cy=5.1)
    surfel = {"mean": (0.1, -0.2, 2.0), "scales": (0.3, 0.05), "rotation": turn((1, 2, 0.5), 50)}
    surfels = scene(surfel)
    fragments = twin.fragments_of(surfels, view)
    axes = matrix_from_quaternion(surfels.rotations[0].astype(np.float64))[:, :2] * surfels.scales[0]
    center = surfels.means[0].astype(np.float64)
    center_px = np.array([20 * center[0] / center[2] + 3.2, 25 * center[1] / center[2] + 5.1])
    by_plane = 0
    for (row, column), ray in pixels(view):
        u, v, z = np.linalg.solve(np.column_stack([axes, -ray]), -center)
        low_pass = 2 * np.sum((np.array([column + 0.5, row + 0.5]) - center_px) ** 2)
        plane_decides = z > twin.NEAR and u * u + v * v <= low_pass
        by_plane += plane_decides
        expected = (u * u + v * v, z) if plane_decides else (low_pass, center[2])
        found = fragments.distance2[0, row, column], fragments.depth[0, row, column]
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert 10 < by_plane < 81  # both branches were seen


def test_an_edge_on_surfel_is_drawn_by_the_low_pass_at_its_centre_depth():
    edge_on = scene({"scales": (0.5, 0.5), "rotation": turn((0, 1, 0), 90), "mean": (0.0, 0.0, 2.0)})
    fragments = twin.fragments_of(edge_on, camera())
    for (row, column), _ in pixels(camera()):
        if column == 4:  # these rays lie in the plane up to rounding, and any depth would be as good as another
            continue
        assert fragments.distance2[0, row, column] == pytest.approx(2 * ((row - 4) ** 2 + (column - 4) ** 2))
        assert fragments.depth[0, row, column] == 2
    picture = twin.reference(edge_on, camera())
    assert picture.alpha[4, 5] == pytest.approx(np.exp(-1))


def test_a_ray_parallel_to_the_plane_has_only_the_low_pass():
    exactly_parallel = scene({"rotation": (0.5, 0.5, 0.5, 0.5), "mean": (0.01, 0.0, 2.0)})  # its normal is along x
    fragments = twin.fragments_of(exactly_parallel, camera())
    assert fragments.depth[0, 4, 4] == 2
    assert fragments.distance2[0, 4, 4] == pytest.approx(2 * 0.5**2)


def test_a_plane_met_nearer_than_the_near_plane_does_not_count():
    steep = {"mean": (0.0, 0.0, 1.0), "scales": (5.0, 5.0), "rotation": turn((0, 1, 0), 85)}
    view = camera(fx=4.0, fy=4.0)
    plane_depth = twin.fragments_of(scene(steep), view, near=1e-9).depth[0]
    lost = plane_depth <= 0.2
    assert lost.any() and ((plane_depth > 0.2) & (plane_depth < 0.3)).any()
    fragments = twin.fragments_of(scene(steep), view, near=0.2)
    assert (fragments.depth[0][lost] == 1).all()
    np.testing.assert_array_equal(fragments.depth[0][~lost], plane_depth[~lost])


@pytest.mark.parametrize("columns", [2, 3])
def test_a_centre_nearer_than_the_near_plane_is_not_drawn(columns):
    gaussians = scene({"mean": (0, 0, 0.2)}, {"mean": (0, 0, -1)}, {"mean": (0, 0, 0)}, columns=columns)
    assert twin.exact(gaussians, camera(), near=0.21).alpha.max() == 0
    assert twin.reference(gaussians, camera(), near=0.21).alpha.max() == 0
    assert twin.raw(gaussians, camera(), near=0.21).primitive_id.max() == -1
    assert twin.exact(gaussians, camera(), near=0.19).alpha[MIDDLE] == 1


def test_a_fragment_of_an_ellipsoid_nearer_than_the_near_plane_does_not_count():
    leaning = scene({"mean": (0, 0, 1), "scales": (0.01, 0.5, 3), "rotation": turn((0, 1, 0), 30)}, columns=3)
    view = camera(fx=4.0, fy=4.0)
    everywhere = twin.fragments_of(leaning, view, near=1e-9).depth[0]
    fragments = twin.fragments_of(leaning, view, near=0.5)
    lost = everywhere <= 0.5
    assert lost.any() and not lost.all()
    assert np.isinf(fragments.depth[0][lost]).all() and (fragments.alpha[0][lost] == 0).all()
    np.testing.assert_array_equal(fragments.depth[0][~lost], everywhere[~lost])


def test_an_ellipsoid_is_where_its_ray_has_the_largest_response():
    view = camera(fx=20.0, fy=25.0, cx=3.2, cy=5.1)
    ellipsoid = {"mean": (0.1, -0.2, 2.0), "scales": (0.3, 0.1, 0.2), "rotation": turn((1, 2, 0.5), 50)}
    ellipsoids = scene(ellipsoid, columns=3)
    fragments = twin.fragments_of(ellipsoids, view)
    rotation = matrix_from_quaternion(ellipsoids.rotations[0].astype(np.float64))
    center = ellipsoids.means[0].astype(np.float64)
    covariance = rotation @ np.diag(ellipsoids.scales[0].astype(np.float64) ** 2) @ rotation.T
    covariance += 0.3 * np.diag([(2 / 20) ** 2, (2 / 25) ** 2, 0])
    along = np.linspace(1, 4, 30001)
    for pixel, ray in pixels(view):
        offsets = along[:, None] * ray - center
        responses = np.einsum("ni,in->n", offsets, np.linalg.solve(covariance, offsets.T))
        assert fragments.distance2[0][pixel] == pytest.approx(responses.min(), abs=1e-5)
        assert fragments.depth[0][pixel] == pytest.approx(along[responses.argmin()], abs=1e-4)


def test_a_small_distant_ellipsoid_looks_as_3dgs_projects_it():
    fx, fy, x, y, z = 3600.0, 4000.0, 60.0, -40.0, 120.0  # far off the axis, where the projection also shears
    center_px = np.array([12.3, 9.8])
    view = camera(21, 21, fx, fy, cx=center_px[0] - fx * x / z, cy=center_px[1] - fy * y / z)
    ellipsoid = {"mean": (x, y, z), "scales": (0.1, 0.03, 0.06), "rotation": turn((1, -2, 1), 40), "opacity": 0.9}
    ellipsoids = scene(ellipsoid, columns=3)
    rotation = matrix_from_quaternion(ellipsoids.rotations[0].astype(np.float64))
    covariance = rotation @ np.diag(np.square([0.1, 0.03, 0.06])) @ rotation.T
    jacobian = np.array([[fx / z, 0, -fx * x / z**2], [0, fy / z, -fy * y / z**2]])
    projected = jacobian @ covariance @ jacobian.T + 0.3 * np.eye(2)
    alpha = twin.exact(ellipsoids, view).alpha
    for (row, column), _ in pixels(view):
        offset = np.array([column + 0.5, row + 0.5]) - center_px
        expected = 0.9 * np.exp(-0.5 * offset @ np.linalg.solve(projected, offset))
        assert alpha[row, column] == pytest.approx(expected if expected >= 1 / 255 else 0, abs=1e-3)


def test_an_antialiased_ellipsoid_keeps_its_mass_in_the_picture():
    """As Mip-Splatting: opacity falls by √(det Σ / det Σ'), so that opacity times area does not change."""
    fx, z, sigma = 100.0, 50.0, 0.2  # 0.4 px
    ball = replace(scene({"mean": (0, 0, z), "scales": (sigma,) * 3, "opacity": 1.0}, columns=3), antialiased=True)
    alpha = twin.exact(ball, camera(9, 9, fx, fx)).alpha
    variance = (fx * sigma / z) ** 2
    expected = variance / (variance + 0.3)
    assert alpha[4, 4] == pytest.approx(expected, rel=1e-3)
    with pytest.raises(SceneError, match="surfels have a low-pass of their own"):
        replace(scene({}, columns=2), antialiased=True)


def test_a_point_covers_what_it_is_dilated_to():
    alpha = twin.exact(scene({"scales": (1e-5,) * 3}, columns=3), camera(fx=100.0, fy=60.0)).alpha
    for (row, column), _ in pixels(camera()):
        expected = np.exp(-((row - 4) ** 2 + (column - 4) ** 2) / (2 * 0.3))
        assert alpha[row, column] == pytest.approx(expected if expected >= 1 / 255 else 0, rel=1e-3)


@pytest.mark.parametrize("columns", [2, 3])
def test_fragments_below_1_in_255_are_nothing(columns):
    gaussians = scene({"opacity": 0.0039}, {"opacity": 0.0040}, columns=columns)
    fragments = twin.fragments_of(gaussians, camera())
    assert fragments.alpha[0][MIDDLE] == 0
    assert fragments.alpha[1][MIDDLE] == np.float32(0.0040)
    winners = twin.raw(gaussians, camera(), samples=1000).primitive_id
    assert set(np.unique(winners)) == {-1, 1}


def test_an_opacity_of_zero_is_never_drawn():
    gaussians = scene({"opacity": 0.0})
    assert twin.exact(gaussians, camera()).alpha.max() == 0
    assert twin.raw(gaussians, camera(), samples=50).primitive_id.max() == -1


@pytest.mark.parametrize("render", [twin.reference, twin.exact])
def test_two_layers_by_hand(render):
    layers = scene(
        {"mean": (0, 0, 3), "color": GREEN, "opacity": 0.5},
        {"mean": (0, 0, 2), "color": RED, "opacity": 0.25},
    )
    picture = render(layers, camera(), background=BLUE)
    red, green, blue = (np.array(color) for color in (RED, GREEN, BLUE))
    mean = 0.25 * red + 0.75 * 0.5 * green + 0.375 * blue
    np.testing.assert_allclose(picture.color[MIDDLE], mean, atol=1e-6)
    assert picture.alpha[MIDDLE] == pytest.approx(0.625)
    assert picture.depth[MIDDLE] == pytest.approx((0.25 * 2 + 0.375 * 3) / 0.625)
    if render is twin.exact:
        variance = 0.25 * red**2 + 0.375 * green**2 + 0.375 * blue**2 - mean**2
        np.testing.assert_allclose(picture.variance[MIDDLE], variance, atol=1e-6)
    else:
        assert picture.variance is None


def test_crossing_surfels_are_ordered_by_centre_or_by_pixel():
    view = camera(fx=20.0, fy=20.0)
    crossing = scene(
        {"mean": (0, 0, 2.01), "color": RED, "rotation": turn((0, 1, 0), 30), "scales": (3, 3)},  # right side far
        {"mean": (0, 0, 2.00), "color": GREEN, "rotation": turn((0, 1, 0), -30), "scales": (3, 3)},  # right side near
    )
    right_is_near = twin.fragments_of(crossing, view).depth[:, 4, 8].argmin()
    left_is_near = 1 - right_is_near
    by_pixel, by_centre = twin.exact(crossing, view).color, twin.reference(crossing, view).color
    colors = np.array([RED, GREEN])
    np.testing.assert_allclose(by_pixel[4, 8], colors[right_is_near], atol=0.1)
    np.testing.assert_allclose(by_pixel[4, 0], colors[left_is_near], atol=0.1)
    np.testing.assert_allclose(by_centre[4, 8], GREEN, atol=0.1)
    np.testing.assert_allclose(by_centre[4, 0], GREEN, atol=0.1)


def test_blending_stops_after_the_fragment_that_makes_a_pixel_opaque():
    opacities = np.float32([0.99, 0.995, 0.9])
    layers = scene(*({"mean": (0, 0, 2 + i), "opacity": float(o)} for i, o in enumerate(opacities)))
    opacities = opacities.astype(np.float64)
    assert (1 - opacities[:2]).prod() < 1e-4
    assert 1 - twin.reference(layers, camera()).alpha[MIDDLE] == pytest.approx((1 - opacities[:2]).prod(), rel=1e-2)
    assert 1 - twin.exact(layers, camera()).alpha[MIDDLE] == pytest.approx((1 - opacities).prod(), rel=1e-2)


def test_equal_depths_keep_the_order_of_the_scene():
    twins = scene({"color": GREEN}, {"color": RED})
    for render in (twin.reference, twin.exact):
        np.testing.assert_allclose(render(twins, camera()).color[MIDDLE], GREEN, atol=1e-6)
    assert (twin.raw(twins, camera(), samples=20).primitive_id[:, 4, 4] == 0).all()


@pytest.mark.parametrize("columns", [2, 3])
def test_an_empty_scene_is_its_background(columns):
    nothing = scene({}, columns=columns).take(np.arange(0))
    for render in (twin.reference, twin.exact):
        picture = render(nothing, camera(), background=BLUE)
        np.testing.assert_allclose(picture.color, np.broadcast_to(BLUE, (9, 9, 3)), atol=1e-7)
        assert picture.alpha.max() == picture.depth.max() == 0
    sample = twin.raw(nothing, camera(width=1, height=1), samples=3)
    assert sample.primitive_id.tolist() == [[[-1]]] * 3 and sample.depth.tolist() == [[[0]]] * 3


@pytest.mark.parametrize("columns", [2, 3])
def test_moving_camera_and_scene_together_changes_nothing(columns):
    # Dyadic numbers, so that the moved scene is exactly representable: a quarter turn and a shift.
    pose = np.array([[0.0, 0, 1, 4], [0, 1, 0, -8], [-1, 0, 0, 2], [0, 0, 0, 1]])
    quarter = turn((0, 1, 0), 90)
    placed = {"scales": (0.25, 0.125, 0.5)[:columns], "opacity": 0.5}
    here = scene({**placed, "mean": (0.125, 0.0625, 2.0)}, columns=columns)
    there = scene({**placed, "mean": (6.0, -7.9375, 1.875), "rotation": quarter}, columns=columns)
    first, second = twin.exact(here, camera()), twin.exact(there, camera(pose=pose))
    np.testing.assert_allclose(first.color, second.color, atol=1e-6)
    np.testing.assert_allclose(first.depth, second.depth, rtol=1e-6)


@pytest.mark.parametrize(("eye_z", "sign"), [(0.0, 1), (4.0, -1)])
def test_colour_follows_the_view_direction(eye_z, sign):
    sh = np.zeros((1, 4, 3), dtype=np.float32)
    sh[0, 2] = 0.4, 0.2, 0.0  # the band along z
    shiny = replace(scene({}), sh=sh)
    pose = np.diag([sign, 1.0, sign, 1.0])  # from behind, turned about y, it looks back
    pose[2, 3] = eye_z
    expected = 0.5 + sign * 0.4886025 * np.array([0.4, 0.2, 0.0])
    np.testing.assert_allclose(twin.exact(shiny, camera(pose=pose)).color[MIDDLE], expected, atol=1e-6)


def test_raw_is_a_function_of_seed_and_sequence_index():
    gaussians = scene({"opacity": 0.5}, {"opacity": 0.5, "mean": (0, 0, 3)})
    pair = twin.raw(gaussians, camera(), samples=2, frame=3, seed=9)
    for sample, frame in enumerate((6, 7)):
        single = twin.raw(gaussians, camera(), frame=frame, seed=9)
        np.testing.assert_array_equal(pair.primitive_id[sample], single.primitive_id[0])
        np.testing.assert_array_equal(pair.depth[sample], single.depth[0])
    assert (pair.primitive_id[0] != pair.primitive_id[1]).any()
    assert (twin.raw(gaussians, camera(), samples=2, frame=3, seed=8).primitive_id != pair.primitive_id).any()
    depths = np.choose(pair.primitive_id + 1, [0, 2, 3])
    np.testing.assert_allclose(pair.depth, depths, rtol=1e-6)


@pytest.mark.parametrize("sampler", ["independent", "stratified"])
def test_the_pattern_moves_with_the_gaussian(sampler):
    gaussians = scene({"opacity": 0.5, "scales": (1, 1)}, {"opacity": 0.5, "scales": (1, 1), "mean": (0, 0, 3)})
    here = twin.raw(gaussians, camera(cx=4.75, cy=4.75), sampler=sampler).primitive_id[0]
    moved = twin.raw(gaussians, camera(cx=6.75, cy=7.75), sampler=sampler).primitive_id[0]
    np.testing.assert_array_equal(moved[3:, 2:], here[:-3, :-2])
    assert len(np.unique(here)) == 3


def test_stratified_samples_count_alpha_to_one_part_of_the_block():
    lone = scene({"opacity": 0.7})
    alpha = twin.exact(lone, camera()).alpha
    hits = (twin.raw(lone, camera(), samples=256, frame=3, sampler="stratified").primitive_id == 0).mean(axis=0)
    assert np.abs(hits - alpha).max() <= 1 / 256 + 1e-6
    hits = (twin.raw(lone, camera(), samples=256, frame=3, sampler="independent").primitive_id == 0).mean(axis=0)
    assert np.abs(hits - alpha).max() > 4 / 256


def test_an_unknown_sampler_is_refused():
    with pytest.raises(RenderError, match="sampler must be one of"):
        twin.raw(scene({}), camera(), sampler="blue")
