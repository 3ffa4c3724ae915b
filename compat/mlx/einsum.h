#pragma once

#include <holdfast/einsum.h>

#include "mlx/core.h"
#include "mlx/utils.h"
