#pragma once

#include <holdfast/small_vector.h>

#include "mlx/core.h"
