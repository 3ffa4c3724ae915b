#pragma once

#include "mlx/backend/common/binary.h"
#include "mlx/backend/cpu/encoder.h"
