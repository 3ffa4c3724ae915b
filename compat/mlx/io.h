#pragma once

#include <holdfast/io.h>

#include "mlx/core.h"
#include "mlx/io/load.h"
