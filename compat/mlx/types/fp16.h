#pragma once

#include "mlx/types/half_types.h"
