#pragma once

#include <holdfast/stream.h>

#include "mlx/core.h"
