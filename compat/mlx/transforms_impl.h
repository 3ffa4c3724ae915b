#pragma once

#include <holdfast/transforms_impl.h>

#include "mlx/core.h"
