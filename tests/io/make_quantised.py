#!/usr/bin/env python3
"""Makes tests/io/data/quantised.gguf and its expected values with the packages `gguf` and `numpy` from PyPI.

The test reads both; this script is only needed to make them anew.
"""

import pathlib

import gguf
import numpy as np

FOLDER = pathlib.Path(__file__).parent / "data"
# Type, bytes of a block, values of a block, places of float16 scales in a block.
TYPES = {
    "Q4_0": (18, 32, [0]),
    "Q4_1": (20, 32, [0, 2]),
    "Q5_0": (22, 32, [0]),
    "Q5_1": (24, 32, [0, 2]),
    "Q8_0": (34, 32, [0]),
    "Q2_K": (84, 256, [80, 82]),
    "Q3_K": (110, 256, [108]),
    "Q4_K": (144, 256, [0, 2]),
    "Q5_K": (176, 256, [0, 2]),
    "Q6_K": (210, 256, [208]),
}


def main():
    random = np.random.default_rng(7)
    writer = gguf.GGUFWriter(FOLDER / "quantised.gguf", "test")
    for name, (size, values, scales) in TYPES.items():
        blocks = random.integers(0, 256, (2, 1, size), dtype=np.uint8)
        for place in scales:
            scale = random.uniform(0.01, 0.1, (2, 1)).astype(np.float16)
            blocks[:, :, place : place + 2] = scale.view(np.uint8).reshape(2, 1, 2)
        kind = getattr(gguf.GGMLQuantizationType, name)
        rows = blocks.reshape(2, size)
        writer.add_tensor(f"{name}.weight", rows, raw_dtype=kind)
        np.save(FOLDER / f"{name}.npy", gguf.quants.dequantize(rows, kind))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
