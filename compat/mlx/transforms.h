#pragma once

#include <holdfast/transforms.h>

#include "mlx/core.h"
