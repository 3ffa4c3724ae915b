#pragma once

#include <holdfast/allocator.h>

#include "mlx/core.h"
