#pragma once

#include <holdfast/memory.h>

#include "mlx/core.h"
