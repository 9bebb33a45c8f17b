"""Real spherical harmonics of degree 0 to 3, with the signs and the order of the 3DGS reference code."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

SH_C0 = 0.28209479177387814  # 1 / (2 sqrt(pi))
SH_C1 = 0.4886025119029199
SH_C2 = (1.0925484305920792, -1.0925484305920792, 0.31539156525252005, -1.0925484305920792, 0.5462742152960396)
SH_C3 = (
    -0.5900435899266435,
    2.890611442640554,
    -0.4570457994644658,
    0.3731763325901154,
    -0.4570457994644658,
    1.445305721320277,
    -0.5900435899266435,
)


def sh_basis(directions: Float[Array, "n 3"], degree: int) -> Float[Array, "n k"]:
    """The (degree + 1)² basis values for unit directions."""
    x, y, z = directions.T
    columns = [np.full_like(x, SH_C0)]
    if degree >= 1:
        columns += [-SH_C1 * y, SH_C1 * z, -SH_C1 * x]
    if degree >= 2:
        xx, yy, zz = x * x, y * y, z * z
        columns += [
            SH_C2[0] * x * y,
            SH_C2[1] * y * z,
            SH_C2[2] * (2 * zz - xx - yy),
            SH_C2[3] * x * z,
            SH_C2[4] * (xx - yy),
        ]
    if degree >= 3:
        columns += [
            SH_C3[0] * y * (3 * xx - yy),
            SH_C3[1] * x * y * z,
            SH_C3[2] * y * (4 * zz - xx - yy),
            SH_C3[3] * z * (2 * zz - 3 * xx - 3 * yy),
            SH_C3[4] * x * (4 * zz - xx - yy),
            SH_C3[5] * z * (xx - yy),
            SH_C3[6] * x * (xx - 3 * yy),
        ]
    return np.stack(columns, axis=1)


def sh_colors(
    sh: Float[Array, "n k 3"],
    means: Float[Array, "n 3"],
    eye: Float[Array, " 3"],
) -> Float[Array, "n 3"]:
    """The colour of each Gaussian seen from `eye`: 0.5 + basis · sh, clamped at 0 from below as in 3DGS."""
    directions = means - eye
    directions = directions / np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-12)
    basis = sh_basis(directions, int(np.sqrt(sh.shape[1])) - 1)
    return np.maximum(0.5 + np.einsum("nk,nkc->nc", basis, sh), 0)
