#pragma once

#include <holdfast/device.h>

#include "mlx/core.h"
