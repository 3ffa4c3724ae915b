#pragma once

#include "mlx/backend/common/copy.h"
