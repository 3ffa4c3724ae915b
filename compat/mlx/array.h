#pragma once

#include <holdfast/array.h>

#include "mlx/core.h"
