"""Arrays for machine learning whose command buffers own what they refer to.

``import holdfast.core as mx`` gives the names of ``mlx.core``.
"""

import sys

if sys.version_info < (3, 11):
    raise ImportError(f"holdfast needs Python 3.11 or newer, and {sys.executable} is Python {sys.version.split()[0]}")

from holdfast import core  # noqa: E402

__all__ = ["core"]
__version__ = core.__version__
