"""Numbers of files as arrays that are mapped into memory, for as long as the arrays live."""

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt


def map_numbers(
    file: Any, dtype: Any, shape: tuple[int, ...], offset: int, *, ahead: bool = False
) -> npt.NDArray[Any]:
    """Return numbers of an open file as an array that cannot be written to.

    ``ahead``: let the file be read now, by this thread, rather than when the numbers are used.
    """
    count = int(np.prod(shape, dtype=np.int64))
    if not count:
        return np.empty(shape, dtype)
    begin = offset // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
    length = offset - begin + count * np.dtype(dtype).itemsize
    options: dict[str, Any] = {"access": mmap.ACCESS_READ}
    if ahead and hasattr(mmap, "MAP_POPULATE"):
        options = {"flags": mmap.MAP_SHARED | mmap.MAP_POPULATE, "prot": mmap.PROT_READ}
    held = mmap.mmap(file.fileno(), length, offset=begin, **options)
    return np.frombuffer(held, dtype, count, offset - begin).reshape(shape)
