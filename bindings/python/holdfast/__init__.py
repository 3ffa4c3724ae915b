"""Arrays for machine learning whose command buffers own what they refer to.

``import holdfast.core as mx`` gives the names of ``mlx.core``.
"""

from holdfast import core

__all__ = ["core"]
__version__ = core.__version__
