#pragma once

#include <holdfast/export.h>

#include "mlx/core.h"
