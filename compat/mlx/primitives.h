#pragma once

#include <holdfast/primitive.h>

#include "mlx/core.h"
