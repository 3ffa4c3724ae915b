#pragma once

#include <holdfast/metal.h>

#include "mlx/core.h"
