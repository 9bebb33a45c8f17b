"""Places along the Morton curve."""

import numpy as np

from hushsplat.types.morton import BITS, morton_codes


def test_codes_take_the_bits_of_the_coordinates_in_turn() -> None:
    cells = np.random.default_rng(0).integers(0, 2**BITS, size=(50, 3))
    cells[:2] = [[0], [2**BITS - 1]]
    expected = [
        sum(((int(cell[axis]) >> bit) & 1) << (3 * bit + axis) for bit in range(BITS) for axis in range(3))
        for cell in cells
    ]
    np.testing.assert_array_equal(morton_codes(cells), np.array(expected, dtype=np.uint64))
