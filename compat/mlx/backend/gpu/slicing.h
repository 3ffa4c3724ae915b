#pragma once

#include "mlx/backend/common/slicing.h"
