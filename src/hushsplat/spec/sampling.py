"""Random numbers of the stochastic renderer: 32-bit hashes and one table of keep levels per sample.

A fragment of opacity o and squared Mahalanobis distance D² is kept iff u < o·exp(-D²/2), which is
D² < 2·ln(o) + level with level = -2·ln(u). The levels of one sample lie in a table; a primitive enters it at a place
of its own (its key) and walks through it with the pixel, measured from its projected centre, so that the pattern
moves with the primitive. The engine gets table and salt from here and repeats only the integer arithmetic.

`independent` draws anew for each sample. `stratified` lets a fragment stay with one table entry for an epoch, and
each entry's draws over time are a sequence of its own that fills strata evenly.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32, Float64, Int32, Integer, UInt32
from numpy import ndarray as Array

from hushsplat.types.errors import RenderError

SAMPLERS = ("independent", "stratified")
TABLE_SIZE = 4096  # entries, a power of two: the index is a mask
ROW_STEP = 1087  # entries between two rows of pixels: odd, and neighbouring pixels do not meet in one entry
EPOCH_BITS = 8
EPOCH_FRAMES = 1 << EPOCH_BITS  # samples after which a stratified fragment moves to another entry
MIN_ALPHA = 1 / 255  # a fragment below this is nothing, as in 3DGS
MAX_LEVEL = float(2 * np.log(255))  # -2·ln(MIN_ALPHA): a level above it would keep fragments that are nothing
MAX_CENTER_PX = 1e6  # projected centres are clamped here, so that their floor fits an int32

GOLDEN = 0x9E3779B9  # 2^32 / golden ratio: spreads consecutive integers
_MASK = 0xFFFFFFFF
ENTRY_STREAM, TIME_STREAM, SHUFFLE_STREAM, JITTER_STREAM = 1, 2, 3, 4  # tell hashes of different purpose apart
_ENTRIES = np.arange(TABLE_SIZE, dtype=np.uint32)
_SPLITS = np.arange(EPOCH_BITS + 1, dtype=np.uint32)  # levels of the dyadic tree of strata; the last one is the jitter


def mix32(x: UInt32[Array, "*shape"]) -> UInt32[Array, "*shape"]:
    """Wellons' lowbias32: a bijection of the 32-bit integers in which every input bit flips every output bit."""
    x = x ^ (x >> np.uint32(16))
    x *= np.uint32(0x7FEB352D)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x846CA68B)
    x ^= x >> np.uint32(16)
    return x


def hash_words(*words: int | UInt32[Array, " ..."]) -> UInt32[Array, " n"]:
    """One hash of several 32-bit words, element by element; integers wrap around."""
    state = np.zeros(1, dtype=np.uint32)
    for word in words:
        if isinstance(word, int):
            word = np.array([word & _MASK], dtype=np.uint32)
        state = mix32(state + word + np.uint32(GOLDEN))
    return state


def sequence_index(frame: int, samples: int, sample: int) -> int:
    """The place t of one sample of one frame in the sequence of all samples."""
    return (frame * samples + sample) & _MASK


def key_salt(sampler: str, seed: int, t: int) -> int:
    """What the keys of all primitives are hashed with at this t: new each sample, or each epoch if stratified."""
    _check_sampler(sampler)
    period = t if sampler == "independent" else t // EPOCH_FRAMES
    return int(mix32(np.array([(seed + GOLDEN * period) & _MASK], dtype=np.uint32))[0])


def primitive_keys(sampler: str, seed: int, t: int, primitive_id: Integer[Array, "*shape"]) -> UInt32[Array, "*shape"]:
    """Where each primitive enters the table: the entry of its anchor pixel, before the mask."""
    return mix32(primitive_id.astype(np.uint32) ^ np.uint32(key_salt(sampler, seed, t)))


def anchor_pixels(center_px: Float64[Array, "*n 2"]) -> Int32[Array, "*n 2"]:
    """The pixel (column, row) that a primitive's walk through the table is measured from."""
    return np.floor(np.clip(center_px, -MAX_CENTER_PX, MAX_CENTER_PX)).astype(np.int32)


def table_index(
    key: UInt32[Array, " ..."],
    row: Integer[Array, " ..."],
    column: Integer[Array, " ..."],
    anchor: Int32[Array, "*n 2"],  # column, row
) -> Integer[Array, " ..."]:
    """The table entry of a fragment; all arguments broadcast. Unsigned 32-bit arithmetic, wrapping around."""
    rows = (row - anchor[..., 1]).astype(np.uint32)
    columns = (column - anchor[..., 0]).astype(np.uint32)
    return ((key + np.uint32(ROW_STEP) * rows + columns) & np.uint32(TABLE_SIZE - 1)).astype(np.int64)


def level_table(sampler: str, seed: int, t: int) -> Float32[Array, " 4096"]:
    """min(-2·ln(u), 2·ln(255)) for the u of each table entry at sequence index t."""
    return np.minimum(-2 * np.log(uniforms(sampler, seed, t)), MAX_LEVEL).astype(np.float32)


def uniforms(sampler: str, seed: int, t: int) -> Float64[Array, " 4096"]:
    """The u of each table entry at sequence index t, strictly between 0 and 1."""
    _check_sampler(sampler)
    return _independent(seed, t) if sampler == "independent" else _stratified(seed, t)


def _independent(seed: int, t: int) -> Float64[Array, " 4096"]:
    """A random permutation of 4096 strata with jitter: each table is as uniform as a table can be.

    A table of plain independent draws is off by 1/64 of a standard deviation everywhere in the picture at once.
    """
    # The entry is hashed before t, so that it goes through two rounds: after one, the order of consecutive integers
    # is still measurably correlated (6 sigma at lag 2 over 2000 tables). Hashes are distinct: mix32 is a bijection.
    stratum = np.argsort(hash_words(seed, SHUFFLE_STREAM, _ENTRIES, t))
    jitter = hash_words(seed, JITTER_STREAM, _ENTRIES, t)
    return (stratum + (jitter + 0.5) * 2.0**-32) / TABLE_SIZE


def _stratified(seed: int, t: int) -> Float64[Array, " 4096"]:
    """Each entry's own nested stratified sequence at time t.

    Bit i of u, from the top, is bit i of t, from the bottom, flipped by a hash of the entry, of the block of 2^(i+1)
    samples that t lies in, and of the bits of u above it. Two halves of a block therefore take opposite children of
    each stratum: every aligned block of 2^m samples visits each of its 2^m strata once, in an order that is new for
    each block and each entry (an Owen scramble of a shuffled van der Corput sequence, every flip drawn by a full
    hash). Bits below the finest strata of an epoch are jitter.
    """
    entry = hash_words(seed, ENTRY_STREAM, _ENTRIES)
    *flip_salts, jitter_salt = hash_words(seed, TIME_STREAM, _SPLITS, _blocks(t))
    bits = np.zeros(TABLE_SIZE, dtype=np.uint32)
    for level, salt in enumerate(flip_salts):
        flip = mix32((entry + bits * np.uint32(GOLDEN)) ^ salt) >> np.uint32(31)
        bits = (bits << np.uint32(1)) | (flip ^ np.uint32(t >> level & 1))
    jitter = mix32(entry ^ jitter_salt) >> np.uint32(EPOCH_BITS)
    return (((bits << np.uint32(32 - EPOCH_BITS)) | jitter) + 0.5) * 2.0**-32


def _blocks(t: int) -> UInt32[Array, " splits"]:
    """The aligned blocks of 2, 4, 8, ... samples that t lies in, and for the jitter t itself."""
    blocks = [t >> (level + 1) for level in range(EPOCH_BITS)]
    return np.array([*blocks, t], dtype=np.uint32)


def _check_sampler(sampler: str) -> None:
    if sampler not in SAMPLERS:
        raise RenderError(f"sampler must be one of {', '.join(SAMPLERS)}, got '{sampler}'.")
