#pragma once

#include <holdfast/utils.h>

#include "mlx/core.h"
