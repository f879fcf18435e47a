"""Downsampling of curves that keeps every peak."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

MAX_POINTS = 2_000


def kept_points(*curves: npt.NDArray[np.int64], limit: int = MAX_POINTS) -> npt.NDArray[np.intp]:
    """Indices to keep of curves of one length, in order: both ends, and of each stretch every curve's extremes.

    At most about `limit` of them; all where there are no more. Between two kept points no curve leaves the range of
    what is kept of their stretch.
    """
    length = len(curves[0])
    if length <= limit:
        return np.arange(length)
    stretches = max(limit // (2 * len(curves)), 1)
    starts = np.unique(np.linspace(0, length, stretches, endpoint=False).astype(np.intp))
    kept = [np.array([0, length - 1])]
    for begin, end in zip(starts, [*starts[1:], length], strict=True):
        for curve in curves:
            part = curve[begin:end]
            kept.append(np.array([begin + part.argmax(), begin + part.argmin()]))
    # The very first maximum of each curve: what `argmax` calls the peak.
    kept.append(np.array([curve.argmax() for curve in curves]))
    return np.unique(np.concatenate(kept))
