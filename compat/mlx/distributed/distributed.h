#pragma once

#include <holdfast/distributed.h>

#include "mlx/core.h"
