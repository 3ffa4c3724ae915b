#pragma once

#include <holdfast/graph_utils.h>

#include "mlx/core.h"
