#pragma once

#include <holdfast/compile.h>

#include "mlx/core.h"
