"""Where the package is: HOLDFAST_PYTHON_PACKAGE, or what is installed."""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
if "HOLDFAST_PYTHON_PACKAGE" in os.environ:
    sys.path.insert(0, os.environ["HOLDFAST_PYTHON_PACKAGE"])
