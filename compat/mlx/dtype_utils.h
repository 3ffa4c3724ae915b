#pragma once

#include <holdfast/dtype.h>

#include "mlx/core.h"
