#pragma once

#include "mlx/backend/metal/device.h"
