#pragma once

#include <holdfast/compile_impl.h>

#include "mlx/core.h"
