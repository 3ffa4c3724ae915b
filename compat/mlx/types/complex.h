#pragma once

#include <holdfast/types.h>

#include "mlx/core.h"
