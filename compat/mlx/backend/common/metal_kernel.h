#pragma once

#include <holdfast/fast.h>

#include "mlx/core.h"
